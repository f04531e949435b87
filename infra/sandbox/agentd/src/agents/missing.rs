//! Why there is no such agent.

use std::fmt;
use std::path::PathBuf;

/// Why there is no such agent, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Missing {
    Unsupported {
        id: String,
        known: Vec<String>,
    },
    NotInstalled {
        id: String,
        program: String,
        folder: PathBuf,
        can_install: bool,
    },
}

impl Missing {
    /// The API's kind of error.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Unsupported { .. } => "unsupported_agent",
            Self::NotInstalled { .. } => "agent_not_installed",
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported { id, known } => write!(
                f,
                "there is no agent {id}; this daemon knows {}",
                known.join(", ")
            ),
            Self::NotInstalled {
                id,
                program,
                folder,
                can_install,
            } => {
                let folder = folder.join("bin");
                let folder = folder.display();
                write!(
                    f,
                    "{id} is not installed: no program {program} on PATH or in {folder}; "
                )?;
                if *can_install {
                    write!(
                        f,
                        "POST /v1/agents/{id}/install fetches it, or put it there"
                    )
                } else {
                    write!(f, "put it there, or into the sandbox's image")
                }
            }
        }
    }
}
