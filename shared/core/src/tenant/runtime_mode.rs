//! How agents are run in a sandbox: chosen by the stack (`SANDBOX_RUNTIME_MODE`), a tenant, a channel, or the person
//! who has the sandbox created.
//!
//! Promised: a sandbox keeps the mode that it began with. Its record names the mode if somebody chose it, or if it is
//! not one of the two for OpenCode's server. Changing the stack between those two keeps the conversations, because the
//! sessions are in the same server over the same store.

/// Agents that can be chosen by name in the mode with several agents, besides the one that every mode has.
pub const AGENTS: [&str; 3] = ["claude", "codex", "amp"];

/// Names of the tools, in display order. An agent puts the server's name before each.
pub const TOOLS: [&str; 8] = [
    "run_command",
    "read_file",
    "write_file",
    "edit_file",
    "list_files",
    "search",
    "get_url",
    "upload_file",
];

/// A runtime mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RuntimeMode {
    /// OpenCode's own server, called directly.
    #[default]
    OpenCode,
    /// The same server, started and guarded by the sandbox's daemon, and called through it.
    Compat,
    /// Agents of any kind, in the daemon's own sessions.
    Native,
    /// OpenCode's server in a sandbox with nothing else in it: it works by tools in a tool sandbox, which has the code,
    /// but neither model key nor conversation.
    Outside,
    /// No agent at all: a tool sandbox. Nobody chooses this mode; each sandbox in mode [`Self::Outside`] has one tool
    /// sandbox, which is in this mode.
    Bare,
}

/// A name that is not a mode's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a runtime; the runtimes are opencode, compat, native and outside")]
pub struct UnknownMode(String);

impl RuntimeMode {
    /// All modes that can be chosen, the first one first.
    pub const ALL: [Self; 4] = [Self::OpenCode, Self::Compat, Self::Native, Self::Outside];

    /// Their names.
    pub const NAMES: [&'static str; 4] =
        [Self::OpenCode.name(), Self::Compat.name(), Self::Native.name(), Self::Outside.name()];

    /// The name in settings and records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenCode => "opencode",
            Self::Compat => "compat",
            Self::Native => "native",
            Self::Outside => "outside",
            Self::Bare => "bare",
        }
    }

    /// The mode with this name.
    ///
    /// # Errors
    /// [`UnknownMode`], which lists the modes.
    pub fn named(name: &str) -> Result<Self, UnknownMode> {
        let found = Self::ALL.into_iter().find(|mode| mode.name() == name);
        found.ok_or_else(|| UnknownMode(crate::text::shorten(&crate::text::one_line(name), 60)))
    }

    /// The mode of a sandbox, from its record and the stack's mode. A record without a mode belongs to a sandbox that
    /// began in one of the two modes for OpenCode's server, and those follow the stack.
    ///
    /// # Errors
    /// [`UnknownMode`].
    pub fn of(stack: Self, recorded: Option<&str>) -> Result<Self, UnknownMode> {
        match (recorded, stack) {
            (Some(name), _) => Self::read(name),
            (None, mode @ (Self::OpenCode | Self::Compat)) => Ok(mode),
            (None, _) => Ok(Self::OpenCode),
        }
    }

    /// The mode that a record names; `None` if it names none, or one that this build does not know.
    #[must_use]
    pub fn recorded_as(name: Option<&str>) -> Option<Self> {
        Self::read(name?).ok()
    }

    fn read(name: &str) -> Result<Self, UnknownMode> {
        if name == Self::Bare.name() {
            return Ok(Self::Bare);
        }
        Self::named(name)
    }

    /// The mode that an agent needs, named with or without its own mode; `None` if any mode will do.
    #[must_use]
    pub fn of_agent(chosen: &str) -> Option<Self> {
        let name = chosen.split_once(':').map_or(chosen, |(name, _)| name);
        AGENTS.contains(&name).then_some(Self::Native)
    }

    /// What the record of a sandbox says that begins in a stack of this mode, if nobody chose a mode.
    #[must_use]
    pub const fn recorded(self) -> Option<&'static str> {
        match self {
            Self::OpenCode | Self::Compat => None,
            Self::Native | Self::Outside | Self::Bare => Some(self.name()),
        }
    }

    /// Whether there are several agents, one of which each thread uses.
    #[must_use]
    pub const fn has_agents(self) -> bool {
        matches!(self, Self::Native)
    }

    /// Whether its agent works in a sandbox other than its own.
    #[must_use]
    pub const fn works_elsewhere(self) -> bool {
        matches!(self, Self::Outside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_runtime_mode_lists_known_ones() {
        assert_eq!(RuntimeMode::named("compat"), Ok(RuntimeMode::Compat));
        let told = RuntimeMode::named("Compat").map_err(|unknown| unknown.to_string());
        assert_eq!(
            told,
            Err(
                "\"Compat\" is not a runtime; the runtimes are opencode, compat, native and outside"
                    .to_owned()
            )
        );
    }

    #[test]
    fn native_agent_selects_native_runtime() {
        for (chosen, mode) in [
            ("claude", Some(RuntimeMode::Native)),
            ("codex:plan", Some(RuntimeMode::Native)),
            ("plan", None),
            ("opencode:plan", None),
        ] {
            assert_eq!(RuntimeMode::of_agent(chosen), mode, "{chosen}");
        }
    }

    #[test]
    fn bare_runtime_cannot_be_chosen() {
        assert!(RuntimeMode::named("bare").is_err());
        assert_eq!(RuntimeMode::recorded_as(Some("bare")), Some(RuntimeMode::Bare));
    }

    #[test]
    fn sandbox_keeps_its_recorded_runtime() {
        use RuntimeMode::{Bare, Compat, Native, OpenCode, Outside};
        for (stack, recorded, mode) in [
            (OpenCode, None, OpenCode),
            (Compat, None, Compat),
            (Native, None, OpenCode),
            (Native, Some("native"), Native),
            (OpenCode, Some("native"), Native),
            (Compat, Some("opencode"), OpenCode),
            (Native, Some("compat"), Compat),
            (Outside, None, OpenCode),
            (OpenCode, Some("outside"), Outside),
            (OpenCode, Some("bare"), Bare),
        ] {
            assert_eq!(RuntimeMode::of(stack, recorded), Ok(mode), "{stack:?}, {recorded:?}");
        }
        for mode in RuntimeMode::ALL {
            assert_eq!(RuntimeMode::of(mode, mode.recorded()), Ok(mode));
        }
    }
}
