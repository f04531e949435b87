//! How far a turn is, with what belongs to each stage.
//!
//! Stored as before there were stages with contents: a tag beside the prompt's ids, generation and time. What cannot be, a
//! prompt that the agent may have without the ids that it was sent under, does not decode.

use serde::{Deserialize, Serialize};

use crate::base::ids::{Ms, PromptIds};
use crate::records::outcome::Outcome;
use crate::records::usage::Usage;

/// How far a turn is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub enum Stage {
    /// On record; the agent has not been given the prompt.
    Received {
        /// The ids of a sending that was taken back: the next one goes out under the same.
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
        /// What the agent had of it; none where the turn ended before that.
        prompted: Option<Prompted>,
    },
}

/// A prompt that an agent may have.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Prompted {
    /// Its ids at the agent.
    pub ids: PromptIds,
    /// The generation of the sandbox whose agent was given it.
    pub generation: u32,
    /// When it was first sent.
    pub at_ms: Ms,
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

/// The fields of a turn's item that a stage is made of.
#[derive(Serialize, Deserialize)]
struct Stored {
    stage: Tag,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prompt_ids: Option<PromptIds>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prompted_generation: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prompted_at_ms: Option<Ms>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
enum Tag {
    Received,
    Prompting,
    Running,
    Ending { outcome: Outcome, usage: Usage },
}

/// A stage without what belongs to it.
#[derive(Debug, thiserror::Error)]
#[error("a prompt that was sent has no ids, no generation or no time")]
struct Incomplete;

impl TryFrom<Stored> for Stage {
    type Error = Incomplete;

    fn try_from(stored: Stored) -> Result<Self, Incomplete> {
        let Stored { stage, prompt_ids, prompted_generation, prompted_at_ms } = stored;
        let ids = prompt_ids.clone();
        let prompted = (|| {
            Some(Prompted {
                ids: prompt_ids?,
                generation: prompted_generation?,
                at_ms: prompted_at_ms?,
            })
        })();
        Ok(match stage {
            Tag::Received => Self::Received { ids },
            Tag::Prompting => Self::Prompting(prompted.ok_or(Incomplete)?),
            Tag::Running => Self::Running(prompted.ok_or(Incomplete)?),
            Tag::Ending { outcome, usage } => Self::Ending { outcome, usage, prompted },
        })
    }
}

impl From<Stage> for Stored {
    fn from(stage: Stage) -> Self {
        let ids = stage.ids().cloned();
        let prompted = stage.prompted();
        Self {
            prompted_generation: prompted.map(|prompted| prompted.generation),
            prompted_at_ms: prompted.map(|prompted| prompted.at_ms),
            prompt_ids: ids,
            stage: match stage {
                Stage::Received { .. } => Tag::Received,
                Stage::Prompting(_) => Tag::Prompting,
                Stage::Running(_) => Tag::Running,
                Stage::Ending { outcome, usage, .. } => Tag::Ending { outcome, usage },
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_that_was_sent_is_never_without_its_ids() {
        let text = r#"{"stage":{"stage":"running"},"prompted_generation":2,"prompted_at_ms":5}"#;
        let told = serde_json::from_str::<Stage>(text).expect_err("no ids");
        assert_eq!(told.to_string(), "a prompt that was sent has no ids, no generation or no time");
    }

    #[test]
    fn what_was_taken_back_goes_out_again_under_the_same_ids() {
        let ids = PromptIds { message: "msg_1".to_owned(), part: "prt_1".to_owned() };
        let mut stage = Stage::Prompting(Prompted { ids: ids.clone(), generation: 3, at_ms: 7 });
        assert!(stage.withdrawn());
        let text = serde_json::to_string(&stage).expect("JSON");
        assert_eq!(
            text,
            r#"{"stage":{"stage":"received"},"prompt_ids":{"message":"msg_1","part":"prt_1"}}"#
        );
        let read: Stage = serde_json::from_str(&text).expect("a stage");
        assert_eq!(read, Stage::Received { ids: Some(ids) });
    }
}
