//! The status of a thread's agent session. Best effort: a refusal is remembered and never stands in a turn's way.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use bobbin_core::ids::ThreadKey;
use bobbin_core::wire::slack::render::Status;
use serde_json::{Value, json};

use super::{Slack, SlackError};

/// A status is worth this long and no longer.
const STATUS_MS_MAX: u64 = 3_000;
/// Threads whose last status is remembered, so that a card's edits do not repeat it.
const THREADS_MAX: usize = 256;

/// The way that this installation takes a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Way {
    /// `agents.sessions.setStatus`: apps with `agent_view`.
    #[default]
    Session,
    /// `assistant.threads.setStatus`: the older one.
    Assistant,
    /// Neither.
    None,
}

/// What was last said, and how it can be said.
#[derive(Debug, Default)]
pub(super) struct Statuses {
    way: Way,
    last: BTreeMap<String, Status>,
}

impl Slack {
    /// Shows in the thread's header what the agent is doing. A status never clears itself: the last card of a turn sets
    /// it back.
    pub async fn set_status(&self, thread: &ThreadKey, status: Status) {
        let ThreadKey::Slack {
            channel, root_ts, ..
        } = thread
        else {
            return;
        };
        let key = thread.to_string();
        loop {
            let way = {
                let statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
                if statuses.last.get(&key) == Some(&status) {
                    return;
                }
                statuses.way
            };
            let outcome = match way {
                Way::None => return,
                Way::Session => {
                    let arguments = json!({ "channel_id": channel, "thread_ts": root_ts, "status": status.word() });
                    self.say_status("agents.sessions.setStatus", &arguments)
                        .await
                }
                Way::Assistant => {
                    let arguments = json!({ "channel_id": channel, "thread_ts": root_ts, "status": status.line() });
                    self.say_status("assistant.threads.setStatus", &arguments)
                        .await
                }
            };
            let mut statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
            match outcome {
                Ok(_) => {
                    if statuses.last.len() == THREADS_MAX {
                        statuses.last.clear();
                    }
                    statuses.last.insert(key, status);
                    return;
                }
                // The installation does not know the method: the next one, for good.
                Err(
                    error @ (SlackError::Scope { .. }
                    | SlackError::Refused { .. }
                    | SlackError::Invalid { .. }),
                ) => {
                    tracing::info!(%error, "Slack does not take the status this way");
                    statuses.way = if way == Way::Session {
                        Way::Assistant
                    } else {
                        Way::None
                    };
                }
                Err(error) => {
                    tracing::debug!(%error, "the status was not set");
                    return;
                }
            }
        }
    }

    async fn say_status(
        &self,
        method: &'static str,
        arguments: &Value,
    ) -> Result<Value, SlackError> {
        self.asked(method, STATUS_MS_MAX, |request| request.json(arguments))
            .await
    }
}
