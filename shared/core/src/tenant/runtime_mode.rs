//! How agents are run in a sandbox: as the stack says (`SANDBOX_RUNTIME_MODE`), a tenant, a channel, or whoever has one made.
//!
//! Promised: a sandbox goes on with the way that it began with, which its record names where somebody chose it or where it is
//! not one of the two to OpenCode's server. Changing the stack between those keeps the conversations, because it is the same
//! server over the same store, in whose sessions they are.

/// Agents that can be chosen by name in the mode that has several, besides the one that every mode has.
pub const AGENTS: [&str; 3] = ["claude", "codex", "amp"];

/// What the tools are called, in the order in which they are told. An agent puts the server's name before each.
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

/// One of the ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RuntimeMode {
    /// OpenCode's own server, spoken to directly.
    #[default]
    OpenCode,
    /// The same server, started and guarded by the daemon of the sandbox, spoken to through it.
    Compat,
    /// Agents of any kind, in the daemon's own sessions.
    Native,
    /// OpenCode's server in a sandbox that holds nothing else: it works by tools in a second sandbox, which has the code and
    /// neither model key nor conversation.
    Outside,
    /// No agent at all: what is worked in by tools. Nobody chooses it; sandboxes of [`Self::Outside`] have one of this way each.
    Bare,
}

/// A name that is none of a way's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no way to run agents; there are opencode, compat, native and outside")]
pub struct UnknownMode(String);

impl RuntimeMode {
    /// All that can be chosen, the first one first.
    pub const ALL: [Self; 4] = [Self::OpenCode, Self::Compat, Self::Native, Self::Outside];

    /// The name that settings and records know it by.
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

    /// The mode of this name.
    ///
    /// # Errors
    /// [`UnknownMode`], which says which there are.
    pub fn named(name: &str) -> Result<Self, UnknownMode> {
        let found = Self::ALL.into_iter().find(|mode| mode.name() == name);
        found.ok_or_else(|| UnknownMode(crate::text::shorten(&crate::text::one_line(name), 60)))
    }

    /// The mode of a sandbox whose record says this, in a stack of this mode. A record that says nothing is of a sandbox that
    /// began with one of the two ways to OpenCode's server, and those follow the stack.
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

    /// The mode that a record names; none: it names none, or one that this build does not know.
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

    /// The mode that an agent of this name needs, with a mode of its own or without; none: any.
    #[must_use]
    pub fn of_agent(chosen: &str) -> Option<Self> {
        let name = chosen.split_once(':').map_or(chosen, |(name, _)| name);
        AGENTS.contains(&name).then_some(Self::Native)
    }

    /// What the record of a sandbox says that begins in a stack of this mode, where nobody chose.
    #[must_use]
    pub const fn recorded(self) -> Option<&'static str> {
        match self {
            Self::OpenCode | Self::Compat => None,
            Self::Native | Self::Outside | Self::Bare => Some(self.name()),
        }
    }

    /// Whether there are several agents, of which a thread has one.
    #[must_use]
    pub const fn has_agents(self) -> bool {
        matches!(self, Self::Native)
    }

    /// Whether its agent works in another sandbox than its own.
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
                "\"Compat\" is no way to run agents; there are opencode, compat, native and outside"
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
