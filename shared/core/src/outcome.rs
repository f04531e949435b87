//! How a turn ended.

use crate::ids::TurnId;
use serde::{Deserialize, Serialize};

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "StoredOutcome", into = "StoredOutcome")]
pub enum Outcome {
    /// The agent's answer is in the thread.
    Answered,
    /// It was sent into the run of another turn, and that one's answer is its answer too.
    Joined {
        /// The id of that turn.
        turn: TurnId,
    },
    /// It failed, and the thread was told why.
    Failed {
        /// Why, and what to do.
        reason: String,
    },
    /// Somebody stopped the turn.
    Cancelled {
        /// The name of who stopped it.
        by: String,
    },
    /// The sandbox vanished after the agent had taken the prompt.
    Lost,
}

/// An outcome as it is stored. What joined another turn is an answered one with a note, so that a worker from before there
/// was such a thing reads the record all the same.
#[derive(Clone, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
enum StoredOutcome {
    Answered {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        joined: Option<TurnId>,
    },
    Failed {
        reason: String,
    },
    Cancelled {
        by: String,
    },
    Lost,
}

impl From<StoredOutcome> for Outcome {
    fn from(stored: StoredOutcome) -> Self {
        match stored {
            StoredOutcome::Answered { joined: None } => Self::Answered,
            StoredOutcome::Answered { joined: Some(turn) } => Self::Joined { turn },
            StoredOutcome::Failed { reason } => Self::Failed { reason },
            StoredOutcome::Cancelled { by } => Self::Cancelled { by },
            StoredOutcome::Lost => Self::Lost,
        }
    }
}

impl From<Outcome> for StoredOutcome {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Answered => Self::Answered { joined: None },
            Outcome::Joined { turn } => Self::Answered { joined: Some(turn) },
            Outcome::Failed { reason } => Self::Failed { reason },
            Outcome::Cancelled { by } => Self::Cancelled { by },
            Outcome::Lost => Self::Lost,
        }
    }
}
