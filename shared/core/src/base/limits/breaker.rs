//! The breaker of a provider ([`crate::base::breaker`]).

use serde::{Deserialize, Serialize};

use super::{MINUTE_MS, all_hold};

/// The bounds of a breaker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakerLimits {
    /// Outages of a provider, seen by any thread within `window_ms`, after which it is left alone.
    #[serde(rename = "breaker_failures")]
    pub failures: u32,
    /// Outages that lie further apart than this do not add up.
    #[serde(rename = "breaker_window_ms")]
    pub window_ms: u64,
    /// For how long a provider is left alone at first; doubled each time that a probe fails.
    #[serde(rename = "breaker_open_ms")]
    pub open_ms: u64,
    /// The longest time that a provider is left alone before the next probe.
    #[serde(rename = "breaker_open_ms_max")]
    pub open_ms_max: u64,
    /// A probe that has not said how it ended within this time is lost, and the next caller probes.
    #[serde(rename = "breaker_probe_ms")]
    pub probe_ms: u64,
    /// How old the state of a breaker that a process goes by may be.
    #[serde(rename = "breaker_cache_ms")]
    pub cache_ms: u64,
}

impl BreakerLimits {
    /// The defaults of the design.
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
