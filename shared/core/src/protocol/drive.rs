//! Decide, save, do: what a [`Machine`] asks for is awaited here, and what came of it goes back to it.
//!
//! Only this loop calls [`World`]. What does not wait for one another is awaited together: a piece of work and its card,
//! and a write with what the next effect needs to be ready.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

pub use crate::protocol::delivery::{Delivery, Verdict};
use crate::protocol::machine::{Machine, Now, Outcome, Step};
use crate::protocol::ports::World;

/// Drives one delivery to its verdict.
pub async fn drive<W: World>(world: &W, delivery: &Delivery<'_>) -> Verdict {
    let thread = &delivery.message.thread;
    let now = || Now { ms: world.now_ms(), visible_until_ms: world.visible_until_ms() };
    let mut machine = Machine::Start;
    loop {
        let outcome = match machine.step(now(), delivery) {
            Step::Read => Outcome::Loaded(world.load(thread, delivery.message.about()).await),
            Step::Write { session, expected, entries, prepare } => {
                let written = world.save(session, expected, entries);
                let ready = async {
                    if let Some(effect) = prepare {
                        world.prepare(thread, effect).await;
                    }
                };
                Outcome::Saved(both(written, ready).await.0)
            }
            Step::Park(parked) => Outcome::Parked(world.park(thread, &parked).await),
            Step::Perform(effect) => Outcome::Done(world.perform(thread, effect).await),
            Step::PerformBoth { work, card } => {
                let work = world.perform(thread, work);
                let (work, card) = both(work, world.perform(thread, card)).await;
                Outcome::BothDone { work, card }
            }
            Step::End(Verdict::Done) if delivery.message.is_marked() => {
                return swept(world, delivery).await;
            }
            Step::End(verdict) => return verdict,
        };
        machine = machine.after(outcome, now(), delivery);
    }
}

/// What the sweeper waits for stands before the sweep is acknowledged: whoever dies in between is delivered it again.
async fn swept<W: World>(world: &W, delivery: &Delivery<'_>) -> Verdict {
    let message = delivery.message;
    match world.swept(&message.thread, &message.id).await {
        Ok(()) => Verdict::Done,
        Err(failure) => {
            let why = format!("that it is done could not be written: {failure:?}");
            Verdict::given_back(&failure, why, delivery.receive, &delivery.limits.retry)
        }
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
