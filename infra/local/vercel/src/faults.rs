//! Faults that a test arms.
//!
//! A call's word is `create`, `get`, `list`, `update`, `delete`, `cmd`, `fs`, `stop`, `extend-timeout`, `snapshot` or
//! `network-policy`. A fault reaches a sandbox by its name, or by the id of a session of it.

use serde::{Deserialize, Serialize};

/// What goes wrong besides what goes wrong with any call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub(crate) enum Fault {
    /// A session stays so long in its next state of transition.
    Hold { ms: u64 },
    /// A route answers a page of somebody else's, with this status.
    Page { status: u16 },
}

/// The faults of this provider.
pub(crate) type Faults = bobbin_local_sandbox::faults::Faults<Fault>;
/// One of them, with its reach.
pub(crate) type Armed = bobbin_local_sandbox::faults::Armed<Fault>;
