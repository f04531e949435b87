//! Faults that a test arms: each is something that Daytona is known to do.
//!
//! A call's word is that of its path: `create`, `get`, `list`, `start`, `stop`, `archive`, `delete`, `exec`, `files`, `session`,
//! `preview-url`, …

use serde::{Deserialize, Serialize};

use crate::state::SandboxState;

/// What goes wrong besides what goes wrong with any call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub(crate) enum Fault {
    /// A sandbox stays so long in this state of transition.
    HoldState { state: SandboxState, ms: u64 },
    /// The next build of a sandbox or a snapshot fails.
    FailBuild {
        #[serde(default)]
        recoverable: bool,
    },
    /// The next snapshot of a sandbox comes to nothing, and nobody is told, as Daytona does it (its issue 4990).
    LoseSnapshot,
    /// The next start of a sandbox fails, as a create or a start tells.
    FailStart {
        #[serde(default)]
        recoverable: bool,
    },
    /// The next sandbox that is made never gets its secrets put in, whatever becomes of it.
    LeaveSecrets,
    /// The list shows what was so long ago.
    ListLag { ms: u64 },
    /// After the next start the old preview token holds for so long, and the new one is refused.
    StalePreview { ms: u64 },
    /// The next `POST` through a preview reaches the server twice.
    ReplayPost,
    /// The next streamed answer through a preview breaks off after so many bytes.
    CutStream { after_bytes: u64 },
    /// Toolbox and preview answer 400 "failed to get runner info".
    RunnerInfo,
    /// The sandbox is lost right before this operation.
    Vanish { operation: String },
}

/// The faults of this provider.
pub(crate) type Faults = bobbin_local_sandbox::faults::Faults<Fault>;
/// One of them, with its reach.
pub(crate) type Armed = bobbin_local_sandbox::faults::Armed<Fault>;
