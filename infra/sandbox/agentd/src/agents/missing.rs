//! Errors for a missing agent.

use std::fmt;
use std::path::PathBuf;

/// Why an agent is missing, with advice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MissingAgent {
    Unsupported { id: String, known: Vec<String> },
    NotInstalled { id: String, program: String, folder: PathBuf },
}

/// The package with which a person installs an agent.
fn package(id: &str) -> Option<&'static str> {
    match id {
        "opencode" => Some("opencode-ai"),
        "claude" => Some("@anthropic-ai/claude-code"),
        "codex" => Some("@openai/codex"),
        _ => None,
    }
}

impl MissingAgent {
    /// The API's error type.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Unsupported { .. } => "unsupported_agent",
            Self::NotInstalled { .. } => "agent_not_installed",
        }
    }
}

impl fmt::Display for MissingAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported { id, known } => {
                write!(f, "there is no agent {id}; this daemon knows {}", known.join(", "))
            }
            Self::NotInstalled { id, program, folder } => {
                write!(f, "{id} is not installed: no program {program} on PATH")?;
                match package(id) {
                    Some(package) => write!(f, "; install it with `npm i -g {package}`"),
                    None => {
                        let folder = folder.join("bin");
                        let folder = folder.display();
                        write!(f, " or in {folder}; put it there, or into the sandbox's image")
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_agent_error_explains_installation() {
        let missing = |id: &str| MissingAgent::NotInstalled {
            id: id.to_owned(),
            program: id.to_owned(),
            folder: PathBuf::from("/state/agents"),
        };
        assert_eq!(
            missing("opencode").to_string(),
            "opencode is not installed: no program opencode on PATH; install it with `npm i -g opencode-ai`"
        );
        assert_eq!(
            missing("mine").to_string(),
            "mine is not installed: no program mine on PATH or in /state/agents/bin; put it there, or into the sandbox's image"
        );
    }
}
