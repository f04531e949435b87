//! Decide, save, do: the loop that turns one delivery into steps.
//!
//! Intent is on record before its effect. Only this loop calls [`World`]; only `decide` chooses. What does not wait for
//! one another is awaited together: a piece of work and its card, and a write with what the next effect needs to be ready.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use crate::decide::{Context, Decision, Next, decide};
use crate::event::Event;
use crate::failure::Failure;
use crate::ids::Ms;
use crate::limits::Limits;
use crate::message::Message;
use crate::ports::{Saved, World};
use crate::run::RunEnd;
use crate::schema::wait_ms;
use crate::session::Session;

/// What to do with the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Delete it: it ended, visibly.
    Done,
    /// Give it back: it comes again after the delay.
    Hold {
        /// Milliseconds.
        delay_ms: u64,
        /// Why, for the log.
        why: String,
    },
    /// Give it back for a newer worker: something of it, or of its thread, is of a shape that this one does not read.
    Newer {
        /// Milliseconds.
        delay_ms: u64,
        /// What, for the log.
        seen: String,
    },
}

impl Verdict {
    /// What becomes of a message that this worker is too old for; `receive` counts its deliveries, from 1.
    #[must_use]
    pub fn newer(seen: String, receive: u32, limits: &Limits) -> Self {
        Self::Newer {
            delay_ms: wait_ms(limits, receive),
            seen,
        }
    }
}

/// One delivery of a message, and how it is driven.
#[derive(Debug, Clone)]
pub struct Delivery<'a> {
    /// The message.
    pub message: &'a Message,
    /// Names this delivery: message id and receive count.
    pub id: String,
    /// Counts the deliveries of this message, from 1.
    pub receive: u32,
    /// Stop following at this time.
    pub slice_until_ms: Ms,
    /// Model of turns for which none is chosen, as provider/model.
    pub model: &'a str,
    /// Providers whose models can be chosen: there is a key for them.
    pub providers: &'a [String],
    /// The bounds.
    pub limits: &'a Limits,
    /// Cuts an answer into parts that fit this platform's messages.
    pub split: fn(&str) -> Vec<String>,
}

/// More steps than any message takes: what goes on longer is given back, so that no delivery spins.
pub const STEPS_MAX: u32 = 20_000;

/// Drives one delivery to its verdict.
pub async fn drive<W: World>(world: &W, delivery: &Delivery<'_>) -> Verdict {
    let thread = &delivery.message.thread;
    let (mut session, mut marks, settings) =
        match world.load(thread, delivery.message.about()).await {
            Ok(found) => {
                let mut session = found
                    .session
                    .unwrap_or_else(|| Session::new(thread.clone(), world.now_ms()));
                session.seen.in_ledger = found.in_ledger;
                (session, found.marks, found.settings)
            }
            Err(Failure::Newer { seen }) => return newer(delivery, seen),
            Err(failure) => {
                return unrecorded(delivery, &failure, "read");
            }
        };
    let mut event = Event::Delivered;
    for _ in 0..STEPS_MAX {
        // Whether a run was stopped by a person is judged by the marks as they stand when it is over: the abort can be
        // quicker than the next look at them. One that came to its own end was not.
        if matches!(&event, Event::Finished(answer) if answer.end != RunEnd::Completed)
            && let Ok(now) = world.load(thread, delivery.message.about()).await
        {
            marks = now.marks;
        }
        let context = Context {
            now_ms: world.now_ms(),
            visible_until_ms: world.visible_until_ms(),
            delivery,
            marks: &marks,
            settings: &settings,
        };
        let Decision {
            session: mut decided,
            next,
        } = decide(session.clone(), event, &context);
        if !decided.same_record(&session) {
            let entries = std::mem::take(&mut decided.seen.entries);
            let written = world.save(&decided, session.version, &entries);
            let ready = async {
                match &next {
                    Next::Do(effect) | Next::Together { work: effect, .. } => {
                        world.prepare(thread, effect).await;
                    }
                    Next::Done | Next::Hold { .. } => {}
                }
            };
            match both(written, ready).await.0 {
                Ok(Saved::Written(now)) => {
                    decided.version = session.version + 1;
                    marks = now;
                }
                // Never at once: two losers that retry immediately can undo each other for ever.
                Ok(Saved::Conflict) => {
                    return Verdict::Hold {
                        delay_ms: delivery.limits.backoff_ms,
                        why: "another worker wrote the record".to_owned(),
                    };
                }
                Err(Failure::Newer { seen }) => return newer(delivery, seen),
                Err(failure) => {
                    return unrecorded(delivery, &failure, "written");
                }
            }
        }
        session = decided;
        event = match next {
            // Who has outlived its visibility does nothing more: somebody else may have the message, and what is done
            // now, an edit of the card above all, could undo what they did.
            Next::Do(_) | Next::Together { .. } if world.visible_until_ms() <= world.now_ms() => {
                return Verdict::Hold {
                    delay_ms: delivery.limits.backoff_ms,
                    why: "the message has become visible to others".to_owned(),
                };
            }
            Next::Do(effect) => world.perform(thread, &effect).await,
            Next::Together { work, card } => {
                let work = world.perform(thread, &work);
                let (work, card) = both(work, world.perform(thread, &card)).await;
                Event::Both(Box::new(work), Box::new(card))
            }
            Next::Done => return Verdict::Done,
            Next::Hold { delay_ms, why } => return Verdict::Hold { delay_ms, why },
        };
        // Nothing is decided on what cannot be read.
        if let Some(seen) = too_new(&event) {
            return newer(delivery, seen);
        }
    }
    Verdict::Hold {
        delay_ms: delivery.limits.backoff_ms_max,
        why: "the delivery took too many steps".to_owned(),
    }
}

fn too_new(event: &Event) -> Option<String> {
    match event {
        Event::Failed(Failure::Newer { seen }) => Some(seen.clone()),
        Event::Both(work, card) => too_new(work).or_else(|| too_new(card)),
        _ => None,
    }
}

/// Awaits two at the same time.
async fn both<A: Future, B: Future>(a: A, b: B) -> (A::Output, B::Output) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    let (mut of_a, mut of_b) = (None, None);
    poll_fn(|context| {
        if of_a.is_none()
            && let Poll::Ready(output) = a.as_mut().poll(context)
        {
            of_a = Some(output);
        }
        if of_b.is_none()
            && let Poll::Ready(output) = b.as_mut().poll(context)
        {
            of_b = Some(output);
        }
        match (of_a.take(), of_b.take()) {
            (Some(of_a), Some(of_b)) => Poll::Ready((of_a, of_b)),
            (a, b) => {
                (of_a, of_b) = (a, b);
                Poll::Pending
            }
        }
    })
    .await
}

/// The record could not be read or written. A table that does not answer is waited for, however long that takes; what it
/// refuses comes to its end by the queue's count, and is told then.
fn unrecorded(delivery: &Delivery<'_>, failure: &Failure, what: &str) -> Verdict {
    let Delivery {
        limits, receive, ..
    } = delivery;
    let delay_ms = match failure {
        Failure::Outage { after_ms, .. } | Failure::Wait { after_ms, .. } => {
            limits.outage_backoff(*receive).max(*after_ms)
        }
        _ => limits.backoff(*receive),
    };
    Verdict::Hold {
        delay_ms,
        why: format!("the record could not be {what}: {failure:?}"),
    }
}

fn newer(delivery: &Delivery<'_>, seen: String) -> Verdict {
    Verdict::newer(seen, delivery.receive, delivery.limits)
}
