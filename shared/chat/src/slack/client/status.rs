//! The status of a thread's agent session. Best effort: a refusal is remembered and never blocks a turn.
//!
//! A status never clears itself, so the end of a turn always sets it, whatever this process believes is set: another
//! process may have set something else meanwhile. Only the worker that holds the thread's group sets a status.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use bobbin_core::base::ids::{ThreadKey, TurnId};
use serde_json::{Value, json};

use super::wanted::direct_place;
use super::{Slack, SlackError};
use crate::slack::render::AgentSessionStatus;

/// Longest time spent on a status.
const STATUS_MS_MAX: u64 = 3_000;
/// After this time an unchanged status is set again: another process may have set a different one.
const REPEAT_MS: u64 = 60_000;
/// Maximum number of threads whose last status is remembered, so that a card's edits do not repeat it.
const THREADS_MAX: usize = 256;
/// Maximum number of tenants whose method is remembered.
const TENANTS_MAX: usize = 256;

/// The method by which a tenant's status is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum StatusMethod {
    /// `agents.sessions.setStatus`: apps with `agent_view`.
    #[default]
    Session,
    /// `assistant.threads.setStatus`: the older method.
    Assistant,
    /// The tenant refused both: its threads get no status.
    None,
}

/// The last status set for a thread.
#[derive(Debug)]
struct LastStatus {
    turn: TurnId,
    status: AgentSessionStatus,
    at: Instant,
}

/// The last statuses, and the methods for setting them.
#[derive(Debug, Default)]
pub(super) struct Statuses {
    ways: BTreeMap<String, StatusMethod>,
    last: BTreeMap<String, LastStatus>,
}

impl Statuses {
    fn stands(&self, thread: &str, turn: &TurnId, status: AgentSessionStatus) -> bool {
        status != AgentSessionStatus::Active
            && self.last.get(thread).is_some_and(|said| {
                (said.turn.as_str(), said.status) == (turn, status)
                    && said.at.elapsed() < Duration::from_millis(REPEAT_MS)
            })
    }

    fn keep(&mut self, thread: String, turn: &TurnId, status: AgentSessionStatus) {
        if self.last.len() >= THREADS_MAX {
            self.last.clear();
        }
        let turn = turn.to_owned();
        let at = Instant::now();
        self.last.insert(thread, LastStatus { turn, status, at });
    }

    fn downgrade(&mut self, tenant: &str, from: StatusMethod) {
        if self.ways.len() >= TENANTS_MAX {
            self.ways.clear();
        }
        let next = match from {
            StatusMethod::Session => StatusMethod::Assistant,
            StatusMethod::Assistant | StatusMethod::None => StatusMethod::None,
        };
        self.ways.insert(tenant.to_owned(), next);
    }
}

impl Slack {
    /// Shows in the thread's header what the agent is doing in this turn. A status never clears itself: the end of a
    /// turn resets it.
    pub(super) async fn show_status(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        status: AgentSessionStatus,
    ) {
        let (team, channel, root_ts) = match thread {
            ThreadKey::Slack { team, channel, root_ts } => {
                (team, channel.as_str(), root_ts.as_str())
            }
            // A status belongs to a message: the one that is being worked on. A turn without a message has no status.
            ThreadKey::SlackDirect { team, .. } => match direct_place(turn) {
                Some((channel, ts)) => (team, channel, ts),
                None => return,
            },
            _ => return,
        };
        let is_direct = matches!(thread, ThreadKey::SlackDirect { .. });
        let key = thread.to_string();
        loop {
            let way = {
                let statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
                if statuses.stands(&key, turn, status) {
                    return;
                }
                statuses.ways.get(team).copied().unwrap_or_default()
            };
            let outcome = match way {
                StatusMethod::None => return,
                StatusMethod::Session => {
                    let arguments = json!({ "channel_id": channel, "thread_ts": root_ts, "status": status.word() });
                    self.say_status("agents.sessions.setStatus", &arguments).await
                }
                StatusMethod::Assistant => {
                    let arguments = json!({ "channel_id": channel, "thread_ts": root_ts, "status": status.line() });
                    self.say_status("assistant.threads.setStatus", &arguments).await
                }
            };
            let mut statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
            match outcome {
                Ok(_) => {
                    statuses.keep(key, turn, status);
                    return;
                }
                // The message may be a reply in a thread, or gone: that says nothing about the installation.
                Err(SlackError::Refused { .. } | SlackError::Invalid { .. }) if is_direct => return,
                // The installation does not know the method: use the next one from now on.
                Err(
                    error @ (SlackError::Scope { .. }
                    | SlackError::Refused { .. }
                    | SlackError::Invalid { .. }),
                ) => {
                    tracing::info!(event = "slack.status.refused", %error, "Slack does not accept the status this way");
                    statuses.downgrade(team, way);
                }
                Err(error) => {
                    tracing::debug!(event = "slack.status.failed", %error, "the status was not set");
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
        self.asked(method, STATUS_MS_MAX, |request| request.json(arguments)).await
    }
}
