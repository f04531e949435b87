//! Brings the next poll of a thread's run forward, so that nobody who acts on the run waits for the message's time.

use bobbin_core::base::ids::{ThreadKey, TurnId};
use bobbin_core::records::parked::{Forward, PollRequester};

use crate::clock::now_ms;
use crate::queue::Queues;
use crate::store::{Store, StoreError};

/// Makes the waiting message of this turn visible now. Best effort, and harmless however often and by whomever it is
/// called: it does nothing where [`bobbin_core::records::parked::Parked::forward`] says so, and the queue refuses an
/// outdated receipt, whose message does not wait. With the mark of a nudge it acts for the daemon; without one, for a
/// person.
///
/// # Errors
/// [`StoreError`]; nothing was done, and the poll comes at its scheduled time.
pub async fn bring_forward(
    store: &Store,
    queues: &Queues,
    thread: &ThreadKey,
    turn: &TurnId,
    mark: Option<&str>,
) -> Result<Forward, StoreError> {
    // A delivery that polls at this moment learns of a person's wish from the flag; for a nudge nothing is written.
    let (wish, found) = match mark {
        None => (PollRequester::Person, store.want_poll(thread, now_ms()).await),
        Some(mark) => (PollRequester::Daemon, store.parked(thread, mark).await),
    };
    let found = found.inspect_err(|error| {
        tracing::info!(event = "poll.not_forward", %thread, %error, "the next poll comes at its own time");
    })?;
    let Some((parked, receipt)) = found else {
        return Ok(Forward::NotWaiting);
    };
    let forward = parked.forward(turn, wish, now_ms());
    let Forward::Now { waits_ms } = forward else {
        return Ok(forward);
    };
    match queues.show_message(&receipt).await {
        Ok(()) => {
            tracing::info!(event = "poll.forward", %thread, %turn, waits_ms, ?wish, "the next poll comes now");
            Ok(forward)
        }
        Err(error) => {
            tracing::info!(event = "poll.not_forward", %thread, %error, "the next poll comes at its own time");
            Ok(Forward::NotWaiting)
        }
    }
}
