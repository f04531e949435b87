//! How agents are run in the sandboxes of a stack (`SANDBOX_RUNTIME_MODE`).
//!
//! Promised: a sandbox goes on with the runtime that it began with, which its record names where it is not the first one.
//! Changing between `opencode` and `compat` keeps the conversations, because it is the same server over the same store, in
//! whose sessions they are; a server of the other way ends when one of this way is started.

use std::sync::Arc;

use bobbin_agent::Runtime;
use bobbin_agent::opencode::models::ModelSettings;
use bobbin_agent::opencode::{OpenCodeRuntime, Via};
use bobbin_agent_native::NativeRuntime;
use bobbin_core::artifacts::told_to_agent;
use bobbin_core::limits::Limits;

/// One of the ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RuntimeMode {
    /// OpenCode's own server, spoken to directly.
    #[default]
    OpenCode,
    /// The same server, started and guarded by the daemon of the sandbox, spoken to through it.
    Compat,
    /// Agents of any kind, in the daemon's own sessions.
    Native,
}

impl RuntimeMode {
    const ALL: [(&'static str, Self); 3] = [
        ("opencode", Self::OpenCode),
        ("compat", Self::Compat),
        ("native", Self::Native),
    ];

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

    /// The mode of a sandbox whose record says this, in a stack that is configured so. A record says nothing of the two ways
    /// to the same server, so that those follow the stack.
    ///
    /// # Errors
    /// As [`RuntimeMode::named`].
    pub fn of(configured: &str, recorded: Option<&str>) -> Result<Self, String> {
        match (recorded, Self::named(configured)?) {
            (Some(name), _) => Self::named(name),
            (None, Self::Native) => Ok(Self::OpenCode),
            (None, mode) => Ok(mode),
        }
    }

    /// What the record of a sandbox says that begins in this mode.
    #[must_use]
    pub const fn recorded(self) -> Option<&'static str> {
        match self {
            Self::OpenCode | Self::Compat => None,
            Self::Native => Some("native"),
        }
    }

    /// What runs agents in this way.
    ///
    /// # Errors
    /// What is wrong with a model's name.
    pub fn runtime(
        self,
        models: &ModelSettings,
        limits: &Limits,
    ) -> Result<Arc<dyn Runtime>, String> {
        let via = match self {
            Self::OpenCode => Via::Server,
            Self::Compat => Via::Daemon,
            Self::Native => {
                let runtime = NativeRuntime::new(models, &told_to_agent(limits))?;
                return Ok(Arc::new(runtime));
            }
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
            Err(
                "SANDBOX_RUNTIME_MODE is \"Compat\"; it can be opencode, compat, native".to_owned()
            )
        );
    }

    #[test]
    fn a_sandbox_goes_on_with_what_it_began_with_and_the_two_ways_to_one_server_follow_the_stack() {
        for (configured, recorded, mode) in [
            ("opencode", None, RuntimeMode::OpenCode),
            ("compat", None, RuntimeMode::Compat),
            ("native", None, RuntimeMode::OpenCode),
            ("native", Some("native"), RuntimeMode::Native),
            ("opencode", Some("native"), RuntimeMode::Native),
        ] {
            assert_eq!(
                RuntimeMode::of(configured, recorded),
                Ok(mode),
                "{configured}, {recorded:?}"
            );
        }
        for (_, mode) in RuntimeMode::ALL {
            let configured = RuntimeMode::ALL.iter().find(|(_, one)| *one == mode);
            let name = configured.map_or("", |(name, _)| *name);
            assert_eq!(RuntimeMode::of(name, mode.recorded()), Ok(mode));
        }
    }
}
