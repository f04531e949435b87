//! Watching a pull request that Bobbin opened.

use serde::{Deserialize, Serialize};

use super::{MINUTE_MS, all_hold};

/// The bounds of watching pull requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchLimits {
    /// Time between two polls of a pull request, if no webhook brings one forward.
    #[serde(rename = "pull_request_poll_ms")]
    pub poll_ms: u64,
    /// Time for which checks have to be the same before they count as settled. Also the time until the next poll of one
    /// that is about to settle, and in which any number of webhooks bring at most one poll.
    #[serde(rename = "pull_request_quiet_ms")]
    pub quiet_ms: u64,
    /// Polls that may fail one after another before the card says so.
    #[serde(rename = "pull_request_failures")]
    pub failures: u32,
}

/// Failed polls after which the delay grows no more.
const DOUBLINGS_MAX: u32 = 4;

impl WatchLimits {
    /// The design's defaults.
    pub const DEFAULT: Self = Self { poll_ms: 15 * MINUTE_MS, quiet_ms: MINUTE_MS, failures: 3 };

    /// The delay after this many failed polls.
    #[must_use]
    pub fn retry_ms(&self, failures: u32) -> u64 {
        let doubled = 1_u64 << failures.saturating_sub(1).min(DOUBLINGS_MAX);
        self.quiet_ms.saturating_mul(doubled).max(self.quiet_ms)
    }

    pub(super) fn check(&self) -> Result<(), String> {
        all_hold(&[
            (
                self.quiet_ms > 0 && self.failures > 0,
                "pull_request_quiet_ms and pull_request_failures must be above 0",
            ),
            (
                self.quiet_ms <= self.poll_ms,
                "pull_request_quiet_ms must be at most pull_request_poll_ms",
            ),
        ])
    }
}
