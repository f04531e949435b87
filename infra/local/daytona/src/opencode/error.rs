//! Installation errors, phrased for the person at the terminal.

use std::path::PathBuf;

/// Why OpenCode could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum OpenCodeInstallError {
    /// A program that the installer needs is missing.
    #[error("`{program}` is not installed; {advice}")]
    Missing {
        /// Name of the program.
        program: &'static str,
        /// How to install it, for known systems.
        advice: &'static str,
    },
    /// OpenCode does not exist for this machine.
    #[error("there is no OpenCode package for {0}")]
    Platform(String),
    /// A program failed in a step.
    #[error("{step} failed: {said}")]
    Step {
        /// The step, in words.
        step: String,
        /// The end of the program's output.
        said: String,
    },
    /// The package does not match the pinned hash.
    #[error(
        "{package} does not have the pinned hash (expected {expected}, got {found}); the download was discarded"
    )]
    Integrity {
        /// Name and version in npm's notation.
        package: String,
        /// The pinned hash.
        expected: String,
        /// The hash of the download.
        found: String,
    },
    /// The cache folder is unusable.
    #[error("the cache folder {path} cannot be used: {source}")]
    Cache {
        /// The configured folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}
