//! A Discord task that has no thread yet: make the thread, then pass the prompt on into its group.
//!
//! Repeatable as a whole: the anchor is the deferred answer itself (or bears a nonce), the thread's id is the
//! anchor's, and the prompt keeps its id, so that a crash in between costs nothing.

use bobbin_core::drive::Verdict;
use bobbin_core::failure::Failure;
use bobbin_core::ids::Ms;
use bobbin_core::message::{Body, Message, Open, Work};

use crate::control::{Lane, dropped};
use crate::store::Store;

/// Opens the thread and enqueues the prompt. `receive` counts the deliveries of this message, from 1.
pub async fn open(lane: &Lane<'_>, open: &Open, receive: u32, now_ms: Ms) -> Verdict {
    let Lane { chat, limits, .. } = *lane;
    let opened = match (admitted(lane.store, open).await, chat.discord()) {
        (Ok(()), Ok(discord)) => discord.open(open, now_ms).await.map_err(|e| e.failure()),
        (Err(failure), _) | (_, Err(failure)) => Err(failure),
    };
    match opened {
        Ok(thread) => {
            let message = Message {
                id: open.id.clone(),
                thread,
                accepted_at_ms: open.accepted_at_ms,
                work: Work::Prompt(open.prompt.clone()),
            };
            match lane.queues.send(&Body::Message(message)).await {
                Ok(()) => Verdict::Done,
                Err(e) => Verdict::Hold {
                    delay_ms: limits.backoff(receive),
                    why: e.to_string(),
                },
            }
        }
        Err(Failure::Wait { after_ms, seen }) if receive <= limits.attempts => Verdict::Hold {
            delay_ms: limits.backoff(receive).max(after_ms),
            why: seen,
        },
        Err(Failure::Newer { seen }) => Verdict::newer(seen, receive, limits),
        Err(failure) => {
            // Who may not start one is only told so.
            if !matches!(failure, Failure::TurnFailed { .. }) {
                dropped(lane.metrics);
            }
            let words = match failure {
                Failure::Wait { seen, .. } => {
                    format!("No thread could be started: {seen}. Try again in a few minutes.")
                }
                Failure::ThreadGone { seen } => format!("No thread could be started here: {seen}"),
                Failure::TurnFailed { reason } => reason,
                Failure::NonRecoverable { advice } => {
                    format!("No thread could be started: {advice}")
                }
                other => format!("No thread could be started: {other:?}"),
            };
            tracing::warn!(event = "thread.open.failed", interaction.id = %open.id, channel = %open.channel, "{words}");
            if let Err(failure) = chat.tell(&open.reply, &words).await {
                tracing::error!(event = "thread.open.untold", interaction.id = %open.id, ?failure, "the person could not be told that no thread was started");
            }
            Verdict::Done
        }
    }
}

/// Nobody gets a thread for a task that would only be refused in it.
async fn admitted(store: &Store, open: &Open) -> Result<(), Failure> {
    let tenant = format!("discord:{}", open.guild);
    let settings = store.settings(&tenant).await.map_err(|e| e.failure())?;
    let prompt = &open.prompt;
    settings
        .admit(&prompt.standing, &prompt.by.id)
        .map_err(|refusal| Failure::TurnFailed {
            reason: refusal.to_string(),
        })
}
