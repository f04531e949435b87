//! Where in its sandbox an agent works.

use serde::{Deserialize, Serialize};

/// The folder of the common checkout, in the sandbox's working directory.
pub const COMMON_FOLDER: &str = "project";
/// The folder for files attached to messages, below a workspace.
pub const ATTACHMENTS_FOLDER: &str = ".bobbin/attachments";
/// Bytes of a directory's path (Linux: `PATH_MAX`).
const PATH_BYTES_MAX: usize = 4096;

/// A directory in a sandbox in which turns work, one at a time.
///
/// One agent server serves all of them. Measured with OpenCode 1.18.33 and two git worktrees of a repository: each
/// directory has its own event stream, statuses, permissions and questions, and sees nothing of the other's. Aborting a
/// session, or ending one directory's instance, leaves the others alone. They share one process, and end with it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Workspace {
    /// The common checkout, in which the agent's server was started.
    #[default]
    Common,
    /// A thread's own workspace.
    Own {
        /// Its absolute path in the sandbox, as the sandbox reported it; it differs between sandboxes.
        directory: String,
    },
}

impl Workspace {
    /// The workspace in this directory; `None` if that is not an absolute path, or cannot be written in one line.
    #[must_use]
    pub fn own(directory: &str) -> Option<Self> {
        let plain = directory.starts_with('/')
            && directory.len() <= PATH_BYTES_MAX
            && !directory.contains(char::is_control);
        plain.then(|| Self::Own { directory: directory.to_owned() })
    }

    /// The absolute path that the agent is told; `None` for its default directory.
    #[must_use]
    pub fn directory(&self) -> Option<&str> {
        match self {
            Self::Common => None,
            Self::Own { directory } => Some(directory),
        }
    }

    /// The path to its files: relative to the sandbox's working directory, or absolute.
    #[must_use]
    pub fn path(&self) -> &str {
        self.directory().unwrap_or(COMMON_FOLDER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_workspace_needs_absolute_path() {
        let own = Workspace::own("/home/daytona/workspaces/ab").expect("an absolute path");
        assert_eq!(own.directory(), Some("/home/daytona/workspaces/ab"));
        assert_eq!(own.path(), "/home/daytona/workspaces/ab");
        for bad in ["", "workspaces/ab", "/a\nb"] {
            assert_eq!(Workspace::own(bad), None, "{bad:?}");
        }
        assert_eq!(Workspace::own(&format!("/{}", "a".repeat(4096))), None);
        assert_eq!((Workspace::Common.path(), Workspace::Common.directory()), ("project", None));
    }
}
