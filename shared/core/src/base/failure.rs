//! What a failure means: one table from what was seen to what happens.
//!
//! Clients classify (`DaytonaError::failure` and its like); only `decide` acts on the class.

use serde::{Deserialize, Serialize};

/// The class of a failure, named by what is to be done about it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "class", rename_all = "snake_case")]
pub enum Failure {
    /// OpenCode does not know the session: find it by title, else make a new one in the same sandbox.
    #[error("the agent does not know the session")]
    SessionMissing,
    /// The sandbox or its server does not answer: observe, start, restart the server; never stop.
    #[error("{seen}")]
    SandboxDown {
        /// What was seen of it, for the log and the report: no secret is in it.
        seen: String,
    },
    /// The provider does not know the sandbox: a new generation, or a lost turn.
    #[error("the provider does not know the sandbox")]
    SandboxGone,
    /// Started, but not healthy within its bound.
    #[error("{seen}")]
    ResumeFailed {
        /// What was seen of it, for the log and the report: no secret is in it.
        seen: String,
    },
    /// Repeating cannot help: report, with what to do.
    #[error("{advice}")]
    NonRecoverable {
        /// A sentence for people: what is wrong and what to do.
        advice: String,
    },
    /// The provider itself does not answer (5xx, no connection, no reply in time): hold the message without counting an
    /// attempt, bounded by time.
    #[error("{seen}")]
    Outage {
        /// Milliseconds until it may be asked again, or 0.
        after_ms: u64,
        /// What was seen of it, for the log and the report: no secret is in it.
        seen: String,
    },
    /// Not now: hold the message and try again, bounded.
    #[error("{seen}")]
    Wait {
        /// Milliseconds that the service asked for, or 0.
        after_ms: u64,
        /// What was seen of it, for the log and the report: no secret is in it.
        seen: String,
    },
    /// Something stored is of a shape that only a newer worker reads: leave it alone and hold the message for that one.
    #[error("{seen}")]
    Newer {
        /// What, and which shape.
        seen: String,
    },
    /// The thread cannot be written in now, and may be again: a right is missing, it is locked or archived, or the app was
    /// taken out of its channel. What was to be said is kept.
    #[error("{seen}")]
    ThreadClosed {
        /// What was seen of it, for people too: no secret is in it.
        seen: String,
    },
    /// The thread or its channel is deleted: nothing can be said there any more.
    #[error("{seen}")]
    ThreadGone {
        /// What was seen of it, for the log and the report: no secret is in it.
        seen: String,
    },
    /// The run itself failed: report the reason; the session stays usable.
    #[error("{reason}")]
    TurnFailed {
        /// The reason, for people.
        reason: String,
    },
}
