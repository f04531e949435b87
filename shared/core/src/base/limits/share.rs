//! Resources that several threads share: a sandbox, its checkout, its snapshots.

use serde::{Deserialize, Serialize};

use super::MINUTE_MS;

/// The bounds of a shared sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareLimits {
    /// Threads that may share a sandbox.
    pub sandbox_threads: usize,
    /// Longest time to make a thread's own workspace.
    pub workspace_ms: u64,
    /// Longest time that a prompt waits for the common checkout of a shared sandbox.
    pub workspace_wait_ms: u64,
    /// Longest time that stopping or deleting a sandbox waits for the turns in it, after they were told to end.
    pub busy_ms: u64,
    /// Longest time to make a snapshot.
    pub snapshot_ms: u64,
    /// Snapshots kept of a sandbox: the oldest makes room for the next.
    pub snapshots: usize,
}

impl ShareLimits {
    /// The design's defaults.
    pub const DEFAULT: Self = Self {
        sandbox_threads: 50,
        workspace_ms: MINUTE_MS,
        workspace_wait_ms: 8 * 60 * MINUTE_MS,
        busy_ms: 3 * MINUTE_MS,
        snapshot_ms: 15 * MINUTE_MS,
        snapshots: 5,
    };
}
