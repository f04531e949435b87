//! What every way to follow a turn by its record has.

use std::time::Duration;

/// Interval between polls of the record.
pub const POLL: Duration = Duration::from_millis(500);
/// After this long without a worker the person is told where to check.
pub const TAKEN: Duration = Duration::from_secs(45);
/// Where to check.
pub const NOT_TAKEN: &str = "No worker has taken the task yet: check the worker's log group in CloudWatch, and docs/RUNBOOK.md, WorkerErrors and OldestMessage.";
