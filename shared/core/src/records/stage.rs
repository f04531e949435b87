//! How far a turn is, with what belongs to each stage.

use serde::{Deserialize, Serialize};

use crate::base::ids::{Ms, PostRef, PromptIds};
use crate::records::artifacts::Artifact;
use crate::records::outcome::Outcome;
use crate::records::usage::Usage;

/// How far a turn is. What cannot be, a prompt that the agent may have without the ids that it was sent under, does not decode.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum Stage {
    /// On record; the agent has not been given the prompt.
    Received {
        /// The ids of a sending that was taken back: the next one goes out under the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ids: Option<PromptIds>,
    },
    /// The intent to prompt is on record: from here on the agent may have it.
    Prompting(Prompted),
    /// The agent has taken it.
    Running(Prompted),
    /// The outcome is on record and is being told.
    Ending {
        /// What will be told.
        outcome: Outcome,
        /// What the run took.
        usage: Usage,
        /// The prompt that the agent had; `None` where the turn ended before that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompted: Option<Prompted>,
        /// How far the telling is.
        #[serde(default)]
        told: Told,
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
    /// Times that it was sent again.
    #[serde(default)]
    pub resends: u32,
    /// Deliveries that followed the run to their time's end, where every one of them follows.
    #[serde(default)]
    pub windows: u32,
    /// A delivery let go of the run before its time, because other work waited.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub let_go: bool,
    /// Why Bobbin aborts the run, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aborting: Option<String>,
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
            resends: 0,
            windows: 0,
            let_go: false,
            aborting: None,
        }
    }
}

/// What stands in the thread of a turn's end.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Told {
    /// Parts of the answer that stand there, by index.
    #[serde(default)]
    pub posted: Vec<PostRef>,
    /// How many parts the answer has, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<usize>,
    /// The person who asked was called, because there is no answer that would have done so.
    #[serde(default)]
    pub called: bool,
    /// Files to show, once they are listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<Vec<Artifact>>,
    /// How many of them are dealt with, in their order.
    #[serde(default)]
    pub artifacts_done: usize,
    /// Files that could not be shown, a line each, until the thread has been told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unshown: Vec<String>,
}

impl Stage {
    /// What the agent may have; none before the intent to prompt.
    #[must_use]
    pub const fn prompted(&self) -> Option<&Prompted> {
        match self {
            Self::Received { .. } => None,
            Self::Prompting(prompted) | Self::Running(prompted) => Some(prompted),
            Self::Ending { prompted, .. } => prompted.as_ref(),
        }
    }

    /// The same, to be changed.
    pub const fn prompted_mut(&mut self) -> Option<&mut Prompted> {
        match self {
            Self::Received { .. } => None,
            Self::Prompting(prompted) | Self::Running(prompted) => Some(prompted),
            Self::Ending { prompted, .. } => prompted.as_mut(),
        }
    }

    /// What stands in the thread of the end; `None` before it.
    #[must_use]
    pub const fn told(&self) -> Option<&Told> {
        match self {
            Self::Ending { told, .. } => Some(told),
            Self::Received { .. } | Self::Prompting(_) | Self::Running(_) => None,
        }
    }

    /// The same, to be changed.
    pub const fn told_mut(&mut self) -> Option<&mut Told> {
        match self {
            Self::Ending { told, .. } => Some(told),
            Self::Received { .. } | Self::Prompting(_) | Self::Running(_) => None,
        }
    }

    /// The outcome goes on record. What was told of another one before stands in the thread all the same.
    pub fn ended(&mut self, outcome: Outcome, usage: Usage) {
        let told = self.told_mut().map(std::mem::take).unwrap_or_default();
        *self = Self::Ending { outcome, usage, prompted: self.prompted().cloned(), told };
    }

    /// The ids that the prompt has been sent under, taken back or not.
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

    /// Whether the agent has taken the prompt, and its end has not been seen.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        matches!(self, Self::Running(_))
    }

    /// Whether the agent may be at work on it.
    #[must_use]
    pub const fn is_with_agent(&self) -> bool {
        matches!(self, Self::Prompting(_) | Self::Running(_))
    }

    /// Whether the outcome is on record.
    #[must_use]
    pub const fn is_ending(&self) -> bool {
        matches!(self, Self::Ending { .. })
    }

    /// The agent has it. Nothing where there was no intent, or where the turn has ended.
    pub fn taken(&mut self) {
        if let Self::Prompting(prompted) = self {
            *self = Self::Running(prompted.clone());
        }
    }

    /// The agent may have lost it: back to the intent, which has to be made good again.
    pub fn doubted(&mut self) {
        if let Self::Running(prompted) = self {
            *self = Self::Prompting(prompted.clone());
        }
    }

    /// The agent certainly has nothing of it. Its ids stay, so that not even a proxy that passes on what it has refused
    /// doubles anything. Whether there was an intent to take back.
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
