//! A task that has no thread yet: creates the thread, then passes the prompt on into its group.
//!
//! Every step can be repeated: the anchor is the deferred answer itself (or bears a nonce), the thread's id is the
//! anchor's, and the prompt keeps its id, so a crash in between costs nothing. Transient failures are waited out. Once
//! the interaction's token has expired, the anchor, or the notice that the thread could not be created, is a message of
//! the bot in the channel.

use bobbin_chat::{Chats, Say};
use bobbin_cloud::store::Store;
use bobbin_core::base::failure::Failure;
use bobbin_core::protocol::drive::Verdict;
use bobbin_core::records::message::{Body, Message, Open, Work};

use crate::arrival::Arrival;
use crate::control::{Lane, dropped};

/// Opens the thread and enqueues the prompt.
pub async fn open(lane: &Lane<'_>, open: &Open, arrival: Arrival) -> Verdict {
    match step(lane, open, arrival).await {
        Ok(()) => Verdict::Done,
        Err(failure) => {
            match arrival.held(&failure, lane.limits.retry.telling_ms, &lane.limits.retry) {
                Some(held) => held,
                None => refused(lane, open, failure, arrival).await,
            }
        }
    }
}

async fn step(lane: &Lane<'_>, open: &Open, arrival: Arrival) -> Result<(), Failure> {
    admitted(lane.store, open).await?;
    let opened = match lane.chat.of_reply(&open.reply)? {
        Some(chat) => chat.open(open, arrival.now_ms).await?,
        None => {
            return Err(Failure::NonRecoverable {
                advice: "the task does not say where its answer goes".to_owned(),
            });
        }
    };
    let message = Message {
        id: open.id.clone(),
        thread: opened,
        accepted_at_ms: open.accepted_at_ms,
        work: Work::Prompt(open.prompt.clone()),
    };
    let sent = lane.queues.send(&Body::Message(message)).await;
    sent.map_err(|e| Failure::Outage { after_ms: 0, seen: e.to_string() })
}

async fn refused(lane: &Lane<'_>, open: &Open, failure: Failure, arrival: Arrival) -> Verdict {
    // Somebody who may not start a task is only told so.
    let by_rule = matches!(failure, Failure::TurnFailed { .. });
    let words = match failure {
        Failure::Wait { seen, .. } | Failure::Outage { seen, .. } => {
            format!("No thread could be started: {seen}. Send the task again.")
        }
        Failure::ThreadClosed { seen } | Failure::ThreadGone { seen } => {
            format!("No thread could be started here: {seen}")
        }
        Failure::TurnFailed { reason } => reason,
        Failure::NonRecoverable { advice } => format!("No thread could be started: {advice}"),
        other => format!("No thread could be started: {other}"),
    };
    tracing::warn!(event = "thread.open.failed", interaction.id = %open.id, channel = %open.channel, "{words}");
    let verdict = notify(lane, open, &words, arrival).await;
    if verdict == Verdict::Done && !by_rule {
        dropped(lane.metrics);
    }
    verdict
}

/// Tells the requester that no thread was created for their task.
pub async fn notify(lane: &Lane<'_>, open: &Open, words: &str, arrival: Arrival) -> Verdict {
    let told = lane.chat.answer(&open.reply, Say::Unopened { open, words });
    let Err(failure) = told.await else {
        return Verdict::Done;
    };
    let held = arrival.held(
        &failure,
        lane.limits.retry.telling_ms + lane.limits.retry.owed_ms,
        &lane.limits.retry,
    );
    held.unwrap_or_else(|| {
        tracing::error!(event = "thread.open.notice.failed", interaction.id = %open.id, ?failure, "the person could not be notified that no thread was started");
        Verdict::Done
    })
}

/// No thread is created for a task that would only be refused in it.
async fn admitted(store: &Store, open: &Open) -> Result<(), Failure> {
    let settings = store.settings(&Chats::tenant_of(open)).await.map_err(|e| e.failure())?;
    let prompt = &open.prompt;
    settings
        .admit(&prompt.membership, &prompt.by.id)
        .map_err(|refusal| Failure::TurnFailed { reason: refusal.to_string() })
}
