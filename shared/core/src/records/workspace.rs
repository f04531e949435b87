//! Where in its sandbox an agent works.

use serde::{Deserialize, Serialize};

/// The folder of the checkout that every thread of a sandbox can work in, in the sandbox's working directory.
pub const COMMON_FOLDER: &str = "project";
/// Below a workspace: the folder with the files that came with messages.
pub const ATTACHMENTS_FOLDER: &str = ".bobbin/attachments";
/// Bytes of a directory's path (Linux: `PATH_MAX`).
const PATH_BYTES_MAX: usize = 4096;

/// A directory in a sandbox in which turns work, one at a time.
///
/// One server of an agent serves all of them. Of OpenCode 1.18.33 this was measured with two git worktrees of a repository:
/// each directory has its own event stream, statuses, permissions and questions, and sees nothing of the others'; the abort
/// of a session, or the end of one directory's instance, leaves the others alone; they share one process and its end.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Workspace {
    /// The common checkout, in which the agent's server was started.
    #[default]
    Common,
    /// One of a thread's own.
    Own {
        /// Its absolute path in the sandbox, as the sandbox told it: another sandbox has it elsewhere.
        directory: String,
    },
}

impl Workspace {
    /// The one in this directory; none where that is no absolute path, or one that no line of text can hold.
    #[must_use]
    pub fn own(directory: &str) -> Option<Self> {
        let plain = directory.starts_with('/')
            && directory.len() <= PATH_BYTES_MAX
            && !directory.contains(char::is_control);
        plain.then(|| Self::Own { directory: directory.to_owned() })
    }

    /// The absolute path that an agent is told; none for the one that it works in by itself.
    #[must_use]
    pub fn directory(&self) -> Option<&str> {
        match self {
            Self::Common => None,
            Self::Own { directory } => Some(directory),
        }
    }

    /// The path by which files in it are reached: in the sandbox's working directory, or absolute.
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
