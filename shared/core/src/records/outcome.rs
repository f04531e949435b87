//! Outcome of a turn.

use crate::base::ids::TurnId;
use crate::tenant::budgets::{BudgetKind, MicroUsd};
use crate::text::dollars;
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
    /// A budget was exhausted, before the turn began or while it ran.
    OverBudget {
        /// Whose, and when it is filled again.
        reason: String,
        /// What a person can let the thread spend in addition, in millionths of a US dollar; 0: nobody can.
        more: MicroUsd,
        /// The budget; `None`: the account or the key at the model's vendor has no money left.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<BudgetKind>,
    },
    /// Somebody stopped the turn.
    Cancelled {
        /// Name of the person who stopped it.
        by: String,
    },
    /// The sandbox vanished after the agent had taken the prompt.
    Lost,
}

impl Outcome {
    /// Label of the button that lets the turn's prompt run once more, or go on; `None` where there is none.
    #[must_use]
    pub fn again_label(&self) -> Option<String> {
        match self {
            Self::Lost | Self::Failed { .. } | Self::OverBudget { by: None, .. } => {
                Some("Run again".to_owned())
            }
            Self::OverBudget { more, .. } if *more > 0 => {
                Some(format!("Continue (+{})", dollars(*more)))
            }
            _ => None,
        }
    }
}
