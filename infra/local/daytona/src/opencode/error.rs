//! Why an installation can fail, in words for the person at the terminal.

use std::path::PathBuf;

/// Why OpenCode could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// A program that the installer calls is missing.
    #[error("`{program}` is not installed; {advice}")]
    Missing {
        /// The name under which it is looked for.
        program: &'static str,
        /// How to get it, for the systems that we know.
        advice: &'static str,
    },
    /// There is no OpenCode for this machine.
    #[error("there is no OpenCode package for {0}")]
    Platform(String),
    /// A program that a step needs failed.
    #[error("{step} failed: {said}")]
    Step {
        /// What was done, in words.
        step: String,
        /// The last of what the program said about it.
        said: String,
    },
    /// The package is not the one that was pinned.
    #[error(
        "{package} does not have the pinned hash (expected {expected}, got {found}); the download was discarded"
    )]
    Integrity {
        /// Its name and version, as npm takes them.
        package: String,
        /// The hash that is pinned for it.
        expected: String,
        /// The hash of what came.
        found: String,
    },
    /// The cache folder cannot be used.
    #[error("the cache folder {path} cannot be used: {source}")]
    Cache {
        /// The folder that was asked for.
        path: PathBuf,
        /// What the system says about the folder.
        source: std::io::Error,
    },
}
