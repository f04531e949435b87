//! Stages of a turn, with what belongs to each.

use serde::{Deserialize, Serialize};

use crate::base::ids::{Ms, PostRef};
use crate::base::names::PromptIds;
use crate::records::artifacts::Artifact;
use crate::records::outcome::Outcome;
use crate::records::usage::Usage;

/// Stage of a turn. An impossible state does not decode, such as a prompt that the agent may have without the ids that
/// it was sent under.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum Stage {
    /// Recorded; the agent has not been given the prompt.
    Received {
        /// The ids of a sending that was taken back: the next sending uses the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ids: Option<PromptIds>,
    },
    /// The intent to prompt is recorded: from here on the agent may have the prompt.
    Prompting(Prompted),
    /// The agent has taken the prompt.
    Running(Prompted),
    /// The outcome is recorded and is being told.
    Ending {
        /// The outcome to tell.
        outcome: Outcome,
        /// Usage of the run.
        usage: Usage,
        /// The prompt that the agent had; `None` if the turn ended before that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompted: Option<Prompted>,
        /// How much has been told.
        #[serde(default)]
        told: EndProgress,
    },
}

/// A prompt that an agent may have.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Prompted {
    /// Its ids at the agent.
    pub ids: PromptIds,
    /// The generation of the sandbox whose agent was given it.
    pub generation: u32,
    /// When it was first sent.
    pub at_ms: Ms,
    /// It begins with a digest of the thread so far.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_digest: bool,
    /// It tells of the project's secrets and network: their name when this session was told of them before
    /// ([`crate::records::session::Conversation::told`]), empty if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_before: Option<String>,
    /// Times that it was sent again.
    #[serde(default)]
    pub resends: u32,
    /// Deliveries that followed the run to the end of their time, in stacks where every delivery follows.
    #[serde(default)]
    pub windows: u32,
    /// A delivery let go of the run early, because other work waited.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub let_go: bool,
    /// Why Bobbin aborts the run; `None` if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aborting: Option<String>,
    /// It does because the model's vendor takes no more: its account or key has no money left.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_spent: bool,
}

impl Prompted {
    /// A prompt that is about to be sent for the first time.
    #[must_use]
    pub const fn new(ids: PromptIds, generation: u32, at_ms: Ms) -> Self {
        Self {
            ids,
            generation,
            at_ms,
            with_digest: false,
            told_before: None,
            resends: 0,
            windows: 0,
            let_go: false,
            aborting: None,
            is_spent: false,
        }
    }
}

/// What the thread has been told of a turn's end.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct EndProgress {
    /// Posted parts of the answer, by index.
    #[serde(default)]
    pub posted: Vec<PostRef>,
    /// Number of parts of the answer, once known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<usize>,
    /// The requester was mentioned, because there is no answer that would have done so.
    #[serde(default)]
    pub called: bool,
    /// Files to show, once they are listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<Vec<Artifact>>,
    /// How many of them are posted or given up, in order.
    #[serde(default)]
    pub artifacts_done: usize,
    /// Files that could not be shown, one line each, until the thread has been told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unshown: Vec<String>,
}

impl Stage {
    /// The prompt that the agent may have; `None` before the intent to prompt.
    #[must_use]
    pub const fn prompted(&self) -> Option<&Prompted> {
        match self {
            Self::Received { .. } => None,
            Self::Prompting(prompted) | Self::Running(prompted) => Some(prompted),
            Self::Ending { prompted, .. } => prompted.as_ref(),
        }
    }

    /// As [`Stage::prompted`], mutable.
    pub const fn prompted_mut(&mut self) -> Option<&mut Prompted> {
        match self {
            Self::Received { .. } => None,
            Self::Prompting(prompted) | Self::Running(prompted) => Some(prompted),
            Self::Ending { prompted, .. } => prompted.as_mut(),
        }
    }

    /// What the thread has been told of the end; `None` before the end.
    #[must_use]
    pub const fn told(&self) -> Option<&EndProgress> {
        match self {
            Self::Ending { told, .. } => Some(told),
            Self::Received { .. } | Self::Prompting(_) | Self::Running(_) => None,
        }
    }

    /// As [`Stage::told`], mutable.
    pub const fn told_mut(&mut self) -> Option<&mut EndProgress> {
        match self {
            Self::Ending { told, .. } => Some(told),
            Self::Received { .. } | Self::Prompting(_) | Self::Running(_) => None,
        }
    }

    /// Records the outcome. Posts for an earlier outcome stay in the thread.
    pub fn ended(&mut self, outcome: Outcome, usage: Usage) {
        let told = self.told_mut().map(std::mem::take).unwrap_or_default();
        *self = Self::Ending { outcome, usage, prompted: self.prompted().cloned(), told };
    }

    /// The ids that the prompt has been sent under, even if the sending was taken back.
    #[must_use]
    pub const fn ids(&self) -> Option<&PromptIds> {
        match self {
            Self::Received { ids } => ids.as_ref(),
            Self::Prompting(Prompted { ids, .. }) | Self::Running(Prompted { ids, .. }) => {
                Some(ids)
            }
            Self::Ending { prompted: Some(prompted), .. } => Some(&prompted.ids),
            Self::Ending { prompted: None, .. } => None,
        }
    }

    /// Whether the agent has not been given the prompt.
    #[must_use]
    pub const fn is_received(&self) -> bool {
        matches!(self, Self::Received { .. })
    }

    /// Whether the agent may have the prompt without having been seen to take it.
    #[must_use]
    pub const fn is_prompting(&self) -> bool {
        matches!(self, Self::Prompting(_))
    }

    /// Whether the agent has taken the prompt, and no end of the run has been seen.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        matches!(self, Self::Running(_))
    }

    /// Whether the agent may be working on the prompt.
    #[must_use]
    pub const fn is_with_agent(&self) -> bool {
        matches!(self, Self::Prompting(_) | Self::Running(_))
    }

    /// Whether the outcome is recorded.
    #[must_use]
    pub const fn is_ending(&self) -> bool {
        matches!(self, Self::Ending { .. })
    }

    /// The agent has the prompt. No effect if there was no intent, or if the turn has ended.
    pub fn taken(&mut self) {
        if let Self::Prompting(prompted) = self {
            *self = Self::Running(prompted.clone());
        }
    }

    /// The prompt tells of the project's secrets and network from now on; the agent had been told this before.
    pub fn tells(&mut self, before: String) {
        if let Self::Prompting(prompted) | Self::Running(prompted) = self {
            prompted.told_before.get_or_insert(before);
        }
    }

    /// The agent may have lost the prompt: back to the intent, which has to be carried out again.
    pub fn doubted(&mut self) {
        if let Self::Running(prompted) = self {
            *self = Self::Prompting(prompted.clone());
        }
    }

    /// The agent certainly does not have the prompt. The ids stay, so that even a proxy that delivers what it has
    /// refused duplicates nothing. Returns whether there was an intent to take back.
    pub fn withdrawn(&mut self) -> bool {
        let Self::Prompting(prompted) = self else {
            return false;
        };
        *self = Self::Received { ids: Some(prompted.ids.clone()) };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sent_prompt_never_lacks_its_ids() {
        let text = r#"{"stage":"running","generation":2,"at_ms":5}"#;
        let told = serde_json::from_str::<Stage>(text).expect_err("no ids");
        assert_eq!(told.to_string(), "missing field `ids`");
    }

    #[test]
    fn a_withdrawn_prompt_keeps_its_ids() {
        let ids = PromptIds { message: "msg_1".to_owned(), part: "prt_1".to_owned() };
        let mut stage = Stage::Prompting(Prompted::new(ids.clone(), 3, 7));
        assert!(stage.withdrawn());
        let text = serde_json::to_string(&stage).expect("JSON");
        assert_eq!(text, r#"{"stage":"received","ids":{"message":"msg_1","part":"prt_1"}}"#);
        let read: Stage = serde_json::from_str(&text).expect("a stage");
        assert_eq!(read, Stage::Received { ids: Some(ids) });
    }

    #[test]
    fn another_outcome_keeps_what_was_posted() {
        let mut stage = Stage::Received { ids: None };
        stage.ended(Outcome::Answered, Usage::default());
        if let Some(told) = stage.told_mut() {
            told.posted.push(PostRef { channel: "c".to_owned(), id: "1".to_owned() });
        }
        stage.ended(Outcome::Failed { reason: "x".to_owned() }, Usage::default());
        assert_eq!(stage.told().map(|told| told.posted.len()), Some(1));
    }
}
