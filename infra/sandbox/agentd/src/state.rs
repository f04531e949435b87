//! A session's state: a fold over the changes in its log, and the requests that it allows.
//!
//! Promised: pure and total. A change is on disk before it is applied; its effects (orders to the agent) come after
//! that. A turn id means one run, however often it is sent. Deliberately absent: clocks, files, agents.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, VecDeque};

use bobbin_agent_events::{PermissionRequest, QuestionRequest, TurnOutcome};
use serde::{Deserialize, Serialize};

use crate::limits::{ASKS_MAX, QUEUED_MAX, TURNS_MAX};

/// Parameters of a session's creation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionParameters {
    pub(crate) agent: String,
    pub(crate) agent_mode: Option<String>,
    pub(crate) permission_mode: PermissionMode,
    pub(crate) model: Option<String>,
    pub(crate) variant: Option<String>,
    /// Absolute path of the agent's working directory.
    pub(crate) directory: String,
    /// The agent's own session to resume.
    #[serde(default)]
    pub(crate) resumes: Option<String>,
    /// A title, for agents that keep one.
    #[serde(default)]
    pub(crate) title: Option<String>,
    /// Instructions besides the prompts, for agents that support them: OpenCode, Claude Code and Codex.
    #[serde(default)]
    pub(crate) instructions: Option<String>,
    pub(crate) at_ms: u64,
}

/// What an agent may do without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PermissionMode {
    /// Its own configuration.
    Default,
    /// Nothing that changes anything.
    Plan,
    /// Everything.
    Bypass,
}

impl PermissionMode {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Plan => "plan",
            Self::Bypass => "bypass",
        }
    }
}

/// A person's prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TurnPrompt {
    pub(crate) text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) attachments: Vec<PromptAttachment>,
    /// The turn's model, if not the session's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// The turn's mode, if not the session's. Only OpenCode changes it between turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<String>,
}

/// A file in the sandbox, attached to a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PromptAttachment {
    /// Absolute, or relative to the session's directory.
    pub(crate) path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mime: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) filename: Option<String>,
}

/// An ask that waits for a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum WaitingAsk {
    Permission(PermissionRequest),
    Question(QuestionRequest),
}

impl WaitingAsk {
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Permission(ask) => &ask.id,
            Self::Question(ask) => &ask.id,
        }
    }
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum AskAnswer {
    Once,
    Always,
    Reject,
    /// For each question its labels, or free text.
    Answers(Vec<Vec<String>>),
    /// The questions were declined.
    Declined,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TurnEnd {
    pub(crate) outcome: TurnOutcome,
    /// The reason: the agent's word, or one of the API's error types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// For a person; `None` if all went well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

impl TurnEnd {
    pub(crate) fn of(outcome: TurnOutcome, reason: &str, message: Option<String>) -> Self {
        Self { outcome, reason: Some(reason.to_owned()), message }
    }
}

/// A change of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum SessionChange {
    Created(SessionParameters),
    /// An agent process is about to be started.
    Launched,
    /// The agent's own id of the session.
    AgentSession(String),
    /// A prompt was accepted and will run once.
    Accepted {
        turn: String,
        prompt: TurnPrompt,
    },
    /// It is about to be given to the agent: from now on it must not be given again.
    Submitted {
        turn: String,
    },
    Asked(WaitingAsk),
    /// The answer is about to be sent to the agent.
    Answered {
        ask: String,
        answer: AskAnswer,
    },
    /// The agent no longer waits for it.
    Closed {
        ask: String,
    },
    CancelAsked {
        turn: String,
    },
    Ended {
        turn: String,
        ended: TurnEnd,
    },
    Terminated,
}

impl SessionChange {
    /// Whether it ends something, or requests that: then it takes effect even if the disk is full.
    pub(crate) const fn ends(&self) -> bool {
        matches!(self, Self::CancelAsked { .. } | Self::Ended { .. } | Self::Terminated)
    }
}

/// Phase of a turn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TurnPhase {
    /// Waits for its run.
    Queued(TurnPrompt),
    Running {
        prompt: TurnPrompt,
        is_cancelled: bool,
    },
    Ended(TurnEnd),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SessionTurn {
    pub(crate) phase: TurnPhase,
    /// Digest of its prompt, to tell a repeat from another prompt with its id.
    digest: u64,
}

/// Result of sending a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Acceptance {
    Accepted,
    AlreadyKnown,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestRefusal {
    Terminated,
    /// The turn id was used for another prompt.
    OtherPrompt,
    /// Too many turns are queued.
    QueueFull,
    /// The session has had too many turns.
    SessionFull,
    UnknownTurn,
    /// No such ask is open: unknown, answered, or gone with its turn.
    AskGone,
    /// A permission was answered like a question, or the reverse.
    WrongAnswer,
}

/// A session.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionState {
    pub(crate) created: Option<SessionParameters>,
    pub(crate) agent_session: Option<String>,
    /// Agent processes started so far.
    pub(crate) launches: u64,
    turns: HashMap<String, SessionTurn>,
    queue: VecDeque<String>,
    running: Option<String>,
    asks: BTreeMap<String, WaitingAsk>,
    pub(crate) is_terminated: bool,
}

impl SessionState {
    /// Applies a change that is on disk.
    pub(crate) fn apply(&mut self, change: SessionChange) {
        match change {
            SessionChange::Created(created) => {
                self.agent_session.clone_from(&created.resumes);
                self.created = Some(created);
            }
            SessionChange::Launched => self.launches += 1,
            SessionChange::AgentSession(id) => self.agent_session = Some(id),
            SessionChange::Accepted { turn, prompt } => {
                let digest = digest(&prompt);
                let phase = TurnPhase::Queued(prompt);
                self.queue.push_back(turn.clone());
                self.turns.insert(turn, SessionTurn { phase, digest });
            }
            SessionChange::Submitted { turn } => self.submitted(turn),
            SessionChange::Asked(ask) => {
                self.asks.insert(ask.id().to_owned(), ask);
            }
            SessionChange::Answered { ask, .. } | SessionChange::Closed { ask } => {
                self.asks.remove(&ask);
            }
            SessionChange::CancelAsked { turn } => {
                if let Some(TurnPhase::Running { is_cancelled, .. }) = self.phase_mut(&turn) {
                    *is_cancelled = true;
                }
            }
            SessionChange::Ended { turn, ended } => self.ended(&turn, ended),
            SessionChange::Terminated => self.is_terminated = true,
        }
    }

    fn submitted(&mut self, turn: String) {
        // One at a time: the previous one's end could not be written.
        if let Some(before) = self.running.take().filter(|before| *before != turn) {
            self.ended(&before, TurnEnd::of(TurnOutcome::Lost, "cut", None));
        }
        self.queue.retain(|queued| *queued != turn);
        if let Some(phase) = self.phase_mut(&turn)
            && let TurnPhase::Queued(prompt) = phase
        {
            let prompt = std::mem::take(prompt);
            *phase = TurnPhase::Running { prompt, is_cancelled: false };
        }
        self.running = Some(turn);
    }

    fn ended(&mut self, turn: &str, ended: TurnEnd) {
        self.queue.retain(|queued| queued != turn);
        if self.running.as_deref() == Some(turn) {
            self.running = None;
            // Nobody is left to take an answer.
            self.asks.clear();
        }
        if let Some(phase) = self.phase_mut(turn) {
            *phase = TurnPhase::Ended(ended);
        }
    }

    fn phase_mut(&mut self, turn: &str) -> Option<&mut TurnPhase> {
        self.turns.get_mut(turn).map(|turn| &mut turn.phase)
    }

    pub(crate) fn phase(&self, turn: &str) -> Option<&TurnPhase> {
        self.turns.get(turn).map(|turn| &turn.phase)
    }

    /// Whether it is queued or running.
    pub(crate) fn is_open(&self, turn: &str) -> bool {
        matches!(self.phase(turn), Some(TurnPhase::Queued(_) | TurnPhase::Running { .. }))
    }

    pub(crate) fn running(&self) -> Option<&str> {
        self.running.as_deref()
    }

    /// Whether the turn is running and being cancelled.
    pub(crate) fn is_cancelled(&self, turn: &str) -> bool {
        matches!(self.phase(turn), Some(TurnPhase::Running { is_cancelled: true, .. }))
    }

    /// Whether this change ends something that has not ended.
    pub(crate) fn is_ended_by(&self, change: &SessionChange) -> bool {
        match change {
            SessionChange::CancelAsked { turn } => {
                self.running() == Some(turn) && !self.is_cancelled(turn)
            }
            SessionChange::Ended { turn, .. } => self.is_open(turn),
            SessionChange::Terminated => !self.is_terminated,
            _ => false,
        }
    }

    pub(crate) fn asks(&self) -> impl Iterator<Item = &WaitingAsk> {
        self.asks.values()
    }

    pub(crate) fn ask(&self, id: &str) -> Option<&WaitingAsk> {
        self.asks.get(id)
    }

    /// Whether another ask can be kept.
    pub(crate) fn takes_asks(&self) -> bool {
        self.asks.len() < ASKS_MAX
    }

    /// The next prompt for the agent, if it is free.
    pub(crate) fn next(&self) -> Option<&str> {
        match &self.running {
            Some(_) => None,
            None => self.queue.front().map(String::as_str),
        }
    }

    /// Open turns, the running one first.
    pub(crate) fn open_turns(&self) -> Vec<String> {
        self.running.iter().chain(&self.queue).cloned().collect()
    }

    /// Accepts a prompt.
    pub(crate) fn accept(
        &self,
        turn: &str,
        prompt: &TurnPrompt,
    ) -> Result<(Acceptance, Option<SessionChange>), RequestRefusal> {
        if let Some(known) = self.turns.get(turn) {
            return if known.digest == digest(prompt) {
                Ok((Acceptance::AlreadyKnown, None))
            } else {
                Err(RequestRefusal::OtherPrompt)
            };
        }
        if self.is_terminated {
            return Err(RequestRefusal::Terminated);
        }
        if self.turns.len() >= TURNS_MAX {
            return Err(RequestRefusal::SessionFull);
        }
        if self.queue.len() >= QUEUED_MAX {
            return Err(RequestRefusal::QueueFull);
        }
        let change = SessionChange::Accepted { turn: turn.to_owned(), prompt: prompt.clone() };
        Ok((Acceptance::Accepted, Some(change)))
    }

    /// Accepts a person's answer.
    pub(crate) fn answer(
        &self,
        ask: &str,
        answer: AskAnswer,
    ) -> Result<SessionChange, RequestRefusal> {
        let open = self.asks.get(ask).ok_or(RequestRefusal::AskGone)?;
        let fits = match open {
            WaitingAsk::Permission(_) => {
                matches!(answer, AskAnswer::Once | AskAnswer::Always | AskAnswer::Reject)
            }
            WaitingAsk::Question(_) => {
                matches!(answer, AskAnswer::Answers(_) | AskAnswer::Declined)
            }
        };
        if !fits {
            return Err(RequestRefusal::WrongAnswer);
        }
        Ok(SessionChange::Answered { ask: ask.to_owned(), answer })
    }

    /// Cancels a turn; no-op for one that has ended or is being cancelled.
    pub(crate) fn cancel(&self, turn: &str) -> Result<Option<SessionChange>, RequestRefusal> {
        match self.phase(turn) {
            None => Err(RequestRefusal::UnknownTurn),
            Some(TurnPhase::Queued(_)) => Ok(Some(SessionChange::Ended {
                turn: turn.to_owned(),
                ended: TurnEnd::of(TurnOutcome::Cancelled, "cancelled", None),
            })),
            Some(TurnPhase::Running { is_cancelled: false, .. }) => {
                Ok(Some(SessionChange::CancelAsked { turn: turn.to_owned() }))
            }
            Some(TurnPhase::Running { .. } | TurnPhase::Ended(_)) => Ok(None),
        }
    }
}

/// The same for the same prompt in every start of the daemon.
fn digest(prompt: &TurnPrompt) -> u64 {
    use sha2::{Digest, Sha256};
    let json = serde_json::to_vec(prompt).unwrap_or_default();
    let hash = Sha256::digest(&json);
    hash.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}
