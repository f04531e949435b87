//! What several threads have together: a sandbox, its checkout, its snapshots.

use serde::{Deserialize, Serialize};

use super::MINUTE_MS;

/// The bounds of a sandbox that threads share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareLimits {
    /// Threads that may share a sandbox.
    pub sandbox_threads: usize,
    /// Making a workspace of a thread's own takes no longer than this.
    pub workspace_ms: u64,
    /// A prompt waits for the common checkout of a shared sandbox no longer than this.
    pub workspace_wait_ms: u64,
    /// Who wants a sandbox stopped or deleted waits for the turns in it no longer than this, once they were told to end.
    pub busy_ms: u64,
    /// Making a snapshot takes no longer than this.
    pub snapshot_ms: u64,
    /// Snapshots of a sandbox that are kept: the oldest makes room for the next.
    pub snapshots: usize,
}

impl ShareLimits {
    /// The defaults of the design.
    pub const DEFAULT: Self = Self {
        sandbox_threads: 50,
        workspace_ms: MINUTE_MS,
        workspace_wait_ms: 8 * 60 * MINUTE_MS,
        busy_ms: 3 * MINUTE_MS,
        snapshot_ms: 15 * MINUTE_MS,
        snapshots: 5,
    };
}
