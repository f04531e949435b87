//! How agents are run in the sandboxes of a stack (`SANDBOX_RUNTIME_MODE`).
//!
//! Promised: changing between `opencode` and `compat` keeps the conversations, because it is the same server over the same
//! store, in whose sessions they are; a server of the other way ends when one of this way is started.

use std::sync::Arc;

use bobbin_agent::Runtime;
use bobbin_agent::opencode::models::ModelSettings;
use bobbin_agent::opencode::{OpenCodeRuntime, Via};

/// One of the ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RuntimeMode {
    /// OpenCode's own server, spoken to directly.
    #[default]
    OpenCode,
    /// The same server, started and guarded by the daemon of the sandbox, spoken to through it.
    Compat,
}

impl RuntimeMode {
    const ALL: [(&'static str, Self); 2] = [("opencode", Self::OpenCode), ("compat", Self::Compat)];

    /// The mode of this name; the first one where there is no name.
    ///
    /// # Errors
    /// A sentence that says which there are.
    pub fn named(name: &str) -> Result<Self, String> {
        if name.is_empty() {
            return Ok(Self::default());
        }
        let found = Self::ALL.into_iter().find(|(known, _)| *known == name);
        found.map(|(_, mode)| mode).ok_or_else(|| {
            let known = Self::ALL.map(|(name, _)| name).join(", ");
            format!("SANDBOX_RUNTIME_MODE is {name:?}; it can be {known}")
        })
    }

    /// What runs agents in this way.
    ///
    /// # Errors
    /// What is wrong with a model's name.
    pub fn runtime(self, models: &ModelSettings) -> Result<Arc<dyn Runtime>, String> {
        let via = match self {
            Self::OpenCode => Via::Server,
            Self::Compat => Via::Daemon,
        };
        Ok(Arc::new(OpenCodeRuntime::new(models)?.reached(via)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_that_there_is_not_is_one_sentence_with_those_that_there_are() {
        assert_eq!(RuntimeMode::named(""), Ok(RuntimeMode::OpenCode));
        assert_eq!(RuntimeMode::named("compat"), Ok(RuntimeMode::Compat));
        assert_eq!(
            RuntimeMode::named("Compat"),
            Err("SANDBOX_RUNTIME_MODE is \"Compat\"; it can be opencode, compat".to_owned())
        );
    }
}
