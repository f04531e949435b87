//! Usage of a turn.

use serde::{Deserialize, Serialize};

/// Usage of a turn, and the size of its file changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens in and out, as OpenCode reports them.
    pub tokens: u64,
    /// Cost in millionths of a US dollar, as OpenCode reports it.
    pub cost_micro_usd: u64,
    /// Files changed, added or deleted.
    #[serde(default)]
    pub files: u32,
    /// Lines added in them.
    #[serde(default)]
    pub added: u64,
    /// Lines removed from them.
    #[serde(default)]
    pub removed: u64,
    /// There may be more changed files than these: not all could be read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub files_unknown: bool,
}
