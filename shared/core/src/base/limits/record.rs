//! Data that the table keeps of a thread: its queue, its past, and its untold posts.

use serde::{Deserialize, Serialize};

use super::{MINUTE_MS, all_hold};

/// The bounds of stored data. An item of the table holds 400 KB.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordLimits {
    /// Prompts that may wait in one thread.
    pub thread_queue: usize,
    /// Waiting prompts that may be sent into one running turn.
    pub steers: usize,
    /// Bytes (as JSON) of a waiting prompt that is kept beside the record, so that it can be sent at once.
    pub steer_bytes: usize,
    /// Bytes (as JSON) of all waiting prompts of a thread that are kept.
    pub queued_bytes: usize,
    /// Bytes of untold posts in a record; the oldest are dropped first.
    pub untold_bytes: usize,
    /// Ended turns kept in the session for deduplication.
    pub ended_turns: usize,
    /// Entries of the timeline kept in the session.
    pub timeline: usize,
    /// How long the ledger keeps a turn.
    pub ledger_ms: u64,
    /// Bytes of a turn's patch that the ledger keeps.
    pub patch_bytes: usize,
}

/// Bytes of prompts in a record, and beside it: both together, with everything else, stay far below an item's 400 KB.
const KEPT_BYTES_MAX: usize = 128 * 1024;

impl RecordLimits {
    /// The design's defaults.
    pub const DEFAULT: Self = Self {
        thread_queue: 20,
        steers: 8,
        steer_bytes: 8 * 1024,
        queued_bytes: 96 * 1024,
        untold_bytes: 64 * 1024,
        ended_turns: 40,
        timeline: 20,
        ledger_ms: 30 * 24 * 60 * MINUTE_MS,
        patch_bytes: 200_000,
    };

    pub(super) fn check(&self) -> Result<(), String> {
        all_hold(&[
            (
                self.steers.saturating_mul(self.steer_bytes) <= KEPT_BYTES_MAX
                    && self.queued_bytes <= KEPT_BYTES_MAX,
                "steers times steer_bytes, and queued_bytes, must be at most 131072",
            ),
            (self.untold_bytes <= KEPT_BYTES_MAX, "untold_bytes must be at most 131072"),
        ])
    }
}

const _: () = {
    let l = RecordLimits::DEFAULT;
    assert!(l.steers * l.steer_bytes <= KEPT_BYTES_MAX && l.queued_bytes <= KEPT_BYTES_MAX);
    assert!(l.untold_bytes <= KEPT_BYTES_MAX);
};
