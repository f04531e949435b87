//! Brings the next look at a thread's run forward: whoever has said something about it does not wait for the message's time.

use bobbin_core::base::ids::{ThreadKey, TurnId};
use bobbin_core::records::parked::{Forward, Wish};

use crate::clock::now_ms;
use crate::queue::Queues;
use crate::store::{Store, StoreError};

/// Has the waiting message of this turn delivered now. Best effort, and harmless however often and by whomever it is asked
/// for: what [`bobbin_core::records::parked::Parked::forward`] leaves alone is left alone, and the queue refuses a receipt that is not
/// the last one, which is then none that waits. With the mark of a daemon's nudge, it is that one's wish; else a person's.
///
/// # Errors
/// [`StoreError`]; nothing was done, and the look comes by its time.
pub async fn bring_forward(
    store: &Store,
    queues: &Queues,
    thread: &ThreadKey,
    turn: &TurnId,
    mark: Option<&str>,
) -> Result<Forward, StoreError> {
    // Who looks at this moment hears of a person's wish, who has set a flag; for a daemon's word nothing is written.
    let (wish, found) = match mark {
        None => (Wish::Person, store.want_look(thread, now_ms()).await),
        Some(mark) => (Wish::Daemon, store.parked(thread, mark).await),
    };
    let found = found.inspect_err(|error| {
        tracing::info!(event = "look.not_forward", %thread, %error, "the next look comes by its time");
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
            tracing::info!(event = "look.forward", %thread, %turn, waits_ms, ?wish, "the next look comes now");
            Ok(forward)
        }
        Err(error) => {
            tracing::info!(event = "look.not_forward", %thread, %error, "the next look comes by its time");
            Ok(Forward::NotWaiting)
        }
    }
}
