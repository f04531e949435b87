//! The breaker of a provider ([`crate::base::breaker`]).

use serde::{Deserialize, Serialize};

use super::{MINUTE_MS, all_hold};

/// The bounds of a breaker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakerLimits {
    /// Outages of a provider within `window_ms`, seen by any thread, that open the breaker.
    #[serde(rename = "breaker_failures")]
    pub failures: u32,
    /// Outages further apart than this do not add up.
    #[serde(rename = "breaker_window_ms")]
    pub window_ms: u64,
    /// Time for which the breaker is open at first; doubled after each failed probe.
    #[serde(rename = "breaker_open_ms")]
    pub open_ms: u64,
    /// Longest time between two probes.
    #[serde(rename = "breaker_open_ms_max")]
    pub open_ms_max: u64,
    /// A probe without a result within this time is lost, and the next caller probes.
    #[serde(rename = "breaker_probe_ms")]
    pub probe_ms: u64,
    /// Maximum age of a process's cached copy of a breaker's state.
    #[serde(rename = "breaker_cache_ms")]
    pub cache_ms: u64,
}

impl BreakerLimits {
    /// The design's defaults.
    pub const DEFAULT: Self = Self {
        failures: 5,
        window_ms: 60_000,
        open_ms: 30_000,
        open_ms_max: 5 * MINUTE_MS,
        probe_ms: 60_000,
        cache_ms: 5_000,
    };

    pub(super) fn check(&self) -> Result<(), String> {
        all_hold(&[
            (
                self.failures > 0 && self.open_ms > 0,
                "breaker_failures and breaker_open_ms must be above 0",
            ),
            (
                self.open_ms <= self.open_ms_max,
                "breaker_open_ms must be at most breaker_open_ms_max",
            ),
        ])
    }
}
