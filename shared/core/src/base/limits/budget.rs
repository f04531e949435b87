//! The operator's own budget.

use serde::{Deserialize, Serialize};

/// What the operator lets the whole stack spend.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetLimits {
    /// In each month, in hundredths of a US dollar; 0 means no bound.
    pub stack_month_cents: u64,
}

impl BudgetLimits {
    /// The design's defaults.
    pub const DEFAULT: Self = Self { stack_month_cents: 0 };

    /// In each month, in millionths of a US dollar; `None`: no bound.
    #[must_use]
    pub const fn stack_month(&self) -> Option<u64> {
        match self.stack_month_cents {
            0 => None,
            cents => Some(cents.saturating_mul(10_000)),
        }
    }
}
