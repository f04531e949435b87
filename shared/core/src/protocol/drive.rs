//! Decide, save, do: awaits what a [`Machine`] asks for, and hands it the outcome.
//!
//! Only this loop calls [`World`]. Independent steps are awaited together: a piece of work and its card, or a write and
//! the preparation of the next effect.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use crate::base::failure::Failure;
pub use crate::protocol::delivery::{Delivery, Verdict};
use crate::protocol::machine::{Machine, Now, Step, StepOutcome};
use crate::protocol::ports::{Loaded, Saved, World};
use crate::records::session::Session;

/// The end of a delivery.
#[derive(Debug)]
pub struct Ended {
    /// The verdict on the message.
    pub verdict: Verdict,
    /// The records as last written; `None` if nothing was written.
    pub written: Option<Session>,
}

/// Drives one delivery to its verdict. `found` is the first read, if it was begun before.
pub async fn drive<W: World>(
    world: &W,
    delivery: &Delivery<'_>,
    mut found: Option<Result<Loaded, Failure>>,
) -> Ended {
    let mut written = None;
    let verdict = to_verdict(world, delivery, &mut found, &mut written).await;
    Ended { verdict, written }
}

async fn to_verdict<W: World>(
    world: &W,
    delivery: &Delivery<'_>,
    found: &mut Option<Result<Loaded, Failure>>,
    written: &mut Option<Session>,
) -> Verdict {
    let thread = &delivery.message.thread;
    let now = || Now { ms: world.now_ms(), visible_until_ms: world.visible_until_ms() };
    let mut machine = Machine::Start;
    loop {
        let outcome = match machine.step(now(), delivery) {
            Step::Read => StepOutcome::Loaded(match found.take() {
                Some(found) => found,
                None => world.load(thread, delivery.message.about()).await,
            }),
            Step::Write { write, prepare } => {
                let ready = async {
                    if let Some(effect) = &prepare {
                        world.prepare(effect).await;
                    }
                };
                let saved = both(world.save(write), ready).await.0;
                if let Ok(Saved::Written(_)) = saved {
                    *written = Some(write.session.clone());
                }
                StepOutcome::Saved(saved)
            }
            Step::Park(parked) => StepOutcome::Parked(world.park(thread, &parked).await),
            Step::Perform(effect) => StepOutcome::Done(world.perform(&effect).await),
            Step::PerformBoth { work, card } => {
                let (work, card) = both(world.perform(&work), world.perform(&card)).await;
                StepOutcome::BothDone { work, card }
            }
            Step::End(Verdict::Done) if delivery.message.is_marked() => {
                return swept(world, delivery).await;
            }
            Step::End(verdict) => return verdict,
        };
        machine = machine.after(outcome, now(), delivery);
    }
}

/// Records the end of a sweep before the sweep is acknowledged: after a crash in between, it is delivered again.
async fn swept<W: World>(world: &W, delivery: &Delivery<'_>) -> Verdict {
    let message = delivery.message;
    match world.swept(&message.thread, &message.id).await {
        Ok(()) => Verdict::Done,
        Err(failure) => {
            let why = format!("the completion could not be written: {failure:?}");
            Verdict::given_back(&failure, why, delivery.receive, &delivery.limits.retry)
        }
    }
}

/// Awaits two futures at the same time.
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
