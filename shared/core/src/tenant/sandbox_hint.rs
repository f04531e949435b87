//! Cached status of a named sandbox, for autocomplete in ingress, which may not read records.

use serde::{Deserialize, Serialize};

use crate::base::ids::Ms;
use crate::text::span;

/// Status shown beside a sandbox's name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct SandboxHint {
    /// Its state in a word or two: `running`.
    pub state: String,
    /// When a turn last began or ended in it; 0 means never.
    pub last_used_ms: Ms,
    /// Number of turns that use it.
    #[serde(default)]
    pub in_use: usize,
}

impl SandboxHint {
    /// The status as text: state and last use.
    #[must_use]
    pub fn words(&self, now_ms: Ms) -> String {
        format!("{} · {}", self.state, used(self.in_use, self.last_used_ms, now_ms))
    }
}

/// The last use as text.
#[must_use]
pub fn used(in_use: usize, last_used_ms: Ms, now_ms: Ms) -> String {
    match (in_use, last_used_ms) {
        (0, 0) => "never used".to_owned(),
        (0, at_ms) => format!("used {} ago", span(now_ms.saturating_sub(at_ms))),
        (1, _) => "one task works in it".to_owned(),
        (n, _) => format!("{n} tasks work in it"),
    }
}
