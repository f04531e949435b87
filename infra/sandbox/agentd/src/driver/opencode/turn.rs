//! Decides from the status and the messages whether a turn has ended.

use std::time::Duration;

use bobbin_agent::opencode::{OpenCodeError, OpenCodeMessage, Role};
use bobbin_agent_events::TurnOutcome;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::state::TurnEnd;

/// A prompt that stays unseen for this long was rejected after being accepted (an unknown model or agent).
const UNSEEN_MS_MAX: u64 = 10_000;

/// State of a turn between polls.
#[derive(Debug)]
pub(super) struct Look {
    /// Message id.
    message: String,
    /// When it was first found missing.
    unseen_since: Option<Instant>,
    /// The agent's last error: not by itself the end.
    pub(super) error: Option<String>,
    pub(super) is_cancelled: bool,
}

/// State of a turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stand {
    Goes,
    Ended(TurnEnd),
    /// It was accepted, but never began.
    NeverBegun(TurnEnd),
}

impl Look {
    pub(super) const fn new(message: String) -> Self {
        Self { message, unseen_since: None, error: None, is_cancelled: false }
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// Judges a poll: whether the session is busy, whether it has the prompt, and its last message.
    pub(super) fn stand(
        &mut self,
        is_busy: bool,
        is_there: bool,
        last: Option<&OpenCodeMessage>,
        now: Instant,
    ) -> Stand {
        if is_busy {
            self.unseen_since = None;
            return Stand::Goes;
        }
        let is_answer = last.is_some_and(|last| last.info.role == Role::Assistant);
        let is_whole = last.is_some_and(|last| last.info.time.completed.is_some());
        match last {
            Some(last) if is_there && is_answer && is_whole => Stand::Ended(self.ended(last)),
            _ => {
                let since = *self.unseen_since.get_or_insert(now);
                if now - since < Duration::from_millis(UNSEEN_MS_MAX) {
                    return Stand::Goes;
                }
                Stand::NeverBegun(self.never_begun())
            }
        }
    }

    fn ended(&self, last: &OpenCodeMessage) -> TurnEnd {
        let error = last.info.error.as_ref();
        let said = error.map(|error| match error.data.message.as_str() {
            "" => error.name.clone(),
            said => said.to_owned(),
        });
        match (error.map(|error| error.name.as_str()), said) {
            (Some("MessageAbortedError"), _) => {
                TurnEnd::of(TurnOutcome::Cancelled, "aborted", None)
            }
            (_, Some(said)) => TurnEnd::of(TurnOutcome::Failed, "agent_failed", Some(said)),
            _ if self.is_cancelled => TurnEnd::of(TurnOutcome::Cancelled, "aborted", None),
            (_, None) => {
                let finish = last.info.finish.as_deref().unwrap_or("unexplained");
                TurnEnd::of(TurnOutcome::Done, finish, None)
            }
        }
    }

    fn never_begun(&self) -> TurnEnd {
        if self.is_cancelled {
            return TurnEnd::of(TurnOutcome::Cancelled, "aborted", None);
        }
        let said = self.error.clone();
        let said = said
            .unwrap_or_else(|| "OpenCode accepted the prompt and did nothing with it".to_owned());
        TurnEnd::of(TurnOutcome::Failed, "agent_failed", Some(said))
    }
}

/// The end of a turn whose prompt was refused.
pub(super) fn refused(error: &OpenCodeError) -> TurnEnd {
    TurnEnd::of(TurnOutcome::Failed, "agent_failed", Some(error.to_string()))
}

/// A turn's message id: the turn's own, if it is a valid one, so that a thread keeps its ids in every runtime mode;
/// else derived from session and turn, because OpenCode's ids are unique in its whole database.
pub(super) fn message_id(session: &str, turn: &str) -> String {
    let is_one = turn.len() > 4
        && turn.starts_with("msg_")
        && turn.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_one {
        return turn.to_owned();
    }
    let mut hash = Sha256::new();
    hash.update(session.as_bytes());
    hash.update([0]);
    hash.update(turn.as_bytes());
    let hex: String = hash.finalize().iter().take(13).map(|byte| format!("{byte:02x}")).collect();
    format!("msg_{hex}")
}
