//! The operator's own budget.

use serde::{Deserialize, Serialize};

const HOUR_MS: u64 = 3_600_000;

/// What the operator lets the whole stack spend.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetLimits {
    /// In each month, in hundredths of a US dollar; 0 means no bound.
    pub stack_month_cents: u64,
    /// What an hour of a running sandbox counts, in hundredths of a US dollar; 0 means that it is not counted.
    pub sandbox_hour_cents: u64,
}

impl BudgetLimits {
    /// The design's defaults.
    pub const DEFAULT: Self = Self { stack_month_cents: 0, sandbox_hour_cents: 0 };

    /// What a sandbox costs while it runs for so long, in millionths of a US dollar.
    #[must_use]
    pub const fn of_sandbox(&self, ms: u64) -> u64 {
        self.sandbox_hour_cents.saturating_mul(10_000).saturating_mul(ms) / HOUR_MS
    }

    /// In each month, in millionths of a US dollar; `None`: no bound.
    #[must_use]
    pub const fn stack_month(&self) -> Option<u64> {
        match self.stack_month_cents {
            0 => None,
            cents => Some(cents.saturating_mul(10_000)),
        }
    }
}
