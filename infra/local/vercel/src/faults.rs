//! Faults that a test arms.
//!
//! A call's word is `create`, `get`, `list`, `update`, `delete`, `cmd`, `fs`, `stop`, `extend-timeout`, `snapshot` or
//! `network-policy`. A fault's scope is a sandbox's name, or the id of one of its sessions.

use serde::{Deserialize, Serialize};

/// Faults beyond those of every call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub(crate) enum Fault {
    /// A session stays this long in its next transition state.
    Hold { ms: u64 },
    /// A route answers an unrelated page with this status.
    Page { status: u16 },
}

/// The faults of this provider.
pub(crate) type Faults = bobbin_local_sandbox::faults::Faults<Fault>;
/// One of them, with its scope.
pub(crate) type Armed = bobbin_local_sandbox::faults::Armed<Fault>;
