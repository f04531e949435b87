//! What a failure means: one table from an observation to its consequence.
//!
//! Clients classify failures (`DaytonaError::failure` and the like); only `decide` acts on the class.

use serde::{Deserialize, Serialize};

/// The class of a failure, named by its remedy.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "class", rename_all = "snake_case")]
pub enum Failure {
    /// OpenCode does not know the session: find it by title, else create one in the same sandbox.
    #[error("the agent does not know the session")]
    SessionMissing,
    /// The sandbox or its server does not answer: observe, start, restart the server; never stop.
    #[error("{seen}")]
    SandboxDown {
        /// What was seen, for the log and the report; contains no secret.
        seen: String,
    },
    /// The provider does not know the sandbox: a new generation, or a lost turn.
    #[error("the provider does not know the sandbox")]
    SandboxGone,
    /// Started, but not healthy within its bound.
    #[error("{seen}")]
    ResumeFailed {
        /// What was seen, for the log and the report; contains no secret.
        seen: String,
    },
    /// A retry cannot help: report it, with what to do.
    #[error("{advice}")]
    NonRecoverable {
        /// A sentence for people: what is wrong and what to do.
        advice: String,
    },
    /// The provider itself does not answer (5xx, no connection, no reply in time): retry the message without counting
    /// an attempt, bounded by time.
    #[error("{seen}")]
    Outage {
        /// Milliseconds until it may be asked again, or 0.
        after_ms: u64,
        /// What was seen, for the log and the report; contains no secret.
        seen: String,
    },
    /// Not now: retry the message, a bounded number of times.
    #[error("{seen}")]
    Wait {
        /// Milliseconds that the service asked for, or 0.
        after_ms: u64,
        /// What was seen, for the log and the report; contains no secret.
        seen: String,
    },
    /// Stored data has a format that only a newer worker can read: leave it alone, and retry the message for that
    /// worker.
    #[error("{seen}")]
    Newer {
        /// What could not be read, and its format.
        seen: String,
    },
    /// The thread cannot be written in now, but may be later: a permission is missing, it is locked or archived, or the
    /// app was removed from its channel. The posts are kept.
    #[error("{seen}")]
    ThreadClosed {
        /// What was seen, shown to people too; contains no secret.
        seen: String,
    },
    /// The thread or its channel is deleted: nothing can be posted there any more.
    #[error("{seen}")]
    ThreadGone {
        /// What was seen, for the log and the report; contains no secret.
        seen: String,
    },
    /// The model's vendor takes no more, because its account or key has no money left: stop the run.
    #[error("{reason}")]
    OverBudget {
        /// Whose limit, and who can raise it.
        reason: String,
    },
    /// The run itself failed: report the reason; the session stays usable.
    #[error("{reason}")]
    TurnFailed {
        /// The reason, for people.
        reason: String,
    },
}
