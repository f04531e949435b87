//! Brings the next look at a thread's run forward: whoever has said something about it does not wait for the message's time.

use bobbin_cloud::clock::now_ms;
use bobbin_cloud::queue::Queues;
use bobbin_cloud::store::Store;
use bobbin_core::ids::{ThreadKey, TurnId};
use bobbin_core::limits::LOOKS_EAGER;

/// What waits for less than this comes about as soon by itself.
const SOON_MS: u64 = 500;

/// Has the waiting message of this turn delivered now. Best effort, and harmless however often and by whomever it is asked
/// for: a message that is being worked on, has come back, or has been looked at very often already is left alone, and the
/// queue refuses a receipt that is not the last one.
pub async fn bring_forward(store: &Store, queues: &Queues, thread: &ThreadKey, turn: &TurnId) {
    let (parked, receipt) = match store.want_look(thread, now_ms()).await {
        Ok(Some(found)) => found,
        Ok(None) => return,
        Err(error) => {
            tracing::info!(event = "look.not_forward", %thread, %error, "the next look comes by its time");
            return;
        }
    };
    let waits_ms = parked.until_ms.saturating_sub(now_ms());
    if parked.turn != *turn || parked.receive >= LOOKS_EAGER || waits_ms < SOON_MS {
        return;
    }
    match queues.show_message(&receipt).await {
        Ok(()) => {
            tracing::info!(event = "look.forward", %thread, %turn, waits_ms, "the next look comes now");
        }
        Err(error) => {
            tracing::info!(event = "look.not_forward", %thread, %error, "the next look comes by its time");
        }
    }
}
