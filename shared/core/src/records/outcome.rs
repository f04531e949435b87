//! Outcome of a turn.

use crate::base::ids::TurnId;
use serde::{Deserialize, Serialize};

/// Outcome of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// The agent's answer is in the thread.
    Answered,
    /// It was sent into the run of another turn, whose answer is its answer too.
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
        /// Name of the person who stopped it.
        by: String,
    },
    /// The sandbox vanished after the agent had taken the prompt.
    Lost,
}
