//! Errors of git's protocol, and of the HTTP below it.

use bobbin_core::base::failure::Failure;
use bobbin_http::HttpError;

/// A failed exchange with a remote.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GitError {
    /// No answer; whether a push had its effect is unknown.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// An HTTP status other than 200.
    #[error("the remote answered with status {status}: {said}")]
    Status {
        /// The status.
        status: u16,
        /// The remote's own words, cleaned and bounded; may be empty.
        said: String,
        /// Requested delay in milliseconds, or 0.
        after_ms: u64,
    },
    /// The answer is not what the protocol says, or it ended early.
    #[error("the remote does not speak git's protocol: {seen}")]
    Protocol {
        /// What came instead.
        seen: &'static str,
    },
    /// The remote's own error message.
    #[error("the remote said: {said}")]
    Remote {
        /// Its words, cleaned and bounded.
        said: String,
    },
    /// The remote does not have an object that was asked for.
    #[error("the remote does not have it: {said}")]
    UnknownObject {
        /// Its words, cleaned and bounded.
        said: String,
    },
    /// The remote or the repository is of a kind that is not supported.
    #[error("{what}")]
    Unsupported {
        /// A sentence for people.
        what: &'static str,
    },
    /// More bytes than allowed.
    #[error("it has more than {bytes_max} bytes")]
    TooLarge {
        /// The bound in bytes.
        bytes_max: u64,
    },
    /// Nothing came for too long.
    #[error("the remote fell silent")]
    Silent,
    /// Whoever takes the pack failed.
    #[error(transparent)]
    Sink(Failure),
}

impl GitError {
    /// A remote's message in an `ERR` line, or on the band for errors.
    pub(super) fn told(said: &[u8]) -> Self {
        let said = clean(said);
        if said.contains("not our ref") || said.contains("unknown object") {
            Self::UnknownObject { said }
        } else {
            Self::Remote { said }
        }
    }
}

/// Longest part of a remote's message that is passed on, in characters.
const SAID_CHARS_MAX: usize = 2_000;

/// A remote's message without control characters, trailing spaces and empty lines, shortened.
pub(super) fn clean(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let plain: String = said
        .chars()
        .map(|c| if c == '\r' { '\n' } else { c })
        .filter(|c| *c == '\n' || !c.is_control())
        .take(SAID_CHARS_MAX)
        .collect();
    let lines = plain.lines().map(str::trim_end).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}
