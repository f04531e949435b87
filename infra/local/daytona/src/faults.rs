//! Faults that a test arms: each one is known from Daytona.
//!
//! A call is named after its path: `create`, `get`, `list`, `start`, `stop`, `archive`, `delete`, `exec`, `files`,
//! `session`, `preview-url`, …

use serde::{Deserialize, Serialize};

use crate::state::DaytonaState;

/// Faults beyond those of every call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub(crate) enum Fault {
    /// A sandbox stays this long in this transition state.
    HoldState { state: DaytonaState, ms: u64 },
    /// The next build of a sandbox or a snapshot fails.
    FailBuild {
        #[serde(default)]
        recoverable: bool,
    },
    /// The next snapshot of a sandbox fails silently, as at Daytona (its issue 4990).
    LoseSnapshot,
    /// The next start of a sandbox fails, within a create or a start.
    FailStart {
        #[serde(default)]
        recoverable: bool,
    },
    /// The next sandbox never gets its secrets injected.
    LeaveSecrets,
    /// The list shows the state of this long ago.
    ListLag { ms: u64 },
    /// After the next start the old preview token stays valid for this long, and the new one is refused.
    StalePreview { ms: u64 },
    /// The next `POST` through a preview reaches the server twice.
    ReplayPost,
    /// The next streamed answer through a preview is cut off after this many bytes.
    CutStream { after_bytes: u64 },
    /// Toolbox and preview answer 400 "failed to get runner info".
    RunnerInfo,
    /// The sandbox is lost just before this operation.
    Vanish { operation: String },
}

/// The faults of this provider.
pub(crate) type Faults = bobbin_local_sandbox::faults::Faults<Fault>;
/// One of them, with its scope.
pub(crate) type Armed = bobbin_local_sandbox::faults::Armed<Fault>;
