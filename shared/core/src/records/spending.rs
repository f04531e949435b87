//! What a turn has set aside of its budgets, and what it has spent.

use serde::{Deserialize, Serialize};

use crate::tenant::budgets::{BudgetKind, BudgetScope, MicroUsd};

/// What a turn may spend: set aside in the write that begins it, settled in the write that ends it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reservation {
    /// The amount, in millionths of a US dollar. The run is aborted once it has spent that.
    pub amount: MicroUsd,
    /// The budget that decides how much it is.
    pub by: BudgetKind,
    /// The stored sums that it is part of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<BudgetScope>,
    /// The largest sum on record that the turn was seen to have spent.
    #[serde(default)]
    pub spent: MicroUsd,
}
