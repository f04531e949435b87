//! What somebody chose for a turn.

use serde::{Deserialize, Serialize};

/// Repository, model and agent of a turn, as far as somebody chose them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Selection {
    /// Repository to clone, `owner/name` or an https address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// The model, as `provider/model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The agent's own mode or persona, by its name there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

impl Selection {
    /// Whether nothing was chosen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// This, and where nothing was chosen what `other` says.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let first = |a: &Option<String>, b: &Option<String>| a.clone().or_else(|| b.clone());
        Self {
            repo: first(&self.repo, &other.repo),
            model: first(&self.model, &other.model),
            agent: first(&self.agent, &other.agent),
        }
    }
}
