//! Making a project ready.

use serde::{Deserialize, Serialize};

use super::{DAY_MS, MINUTE_MS, all_hold};

/// The bounds of making a project ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetUpLimits {
    /// A set-up step that runs longer is ended.
    #[serde(rename = "set_up_step_ms")]
    pub step_ms: u64,
    /// All set-up steps together: those behind it are not run. 0: no project is made ready.
    #[serde(rename = "set_up_ms")]
    pub all_ms: u64,
    /// The same for steps that follow from lock files, which nobody asked for.
    #[serde(rename = "set_up_lock_files_ms")]
    pub lock_files_ms: u64,
    /// How long a delivery stays with a set-up that runs.
    #[serde(rename = "set_up_hold_ms")]
    pub hold_ms: u64,
    /// Afterwards, the time between two looks, each in a delivery of its own.
    #[serde(rename = "set_up_look_ms")]
    pub look_ms: u64,
    /// Start steps that take longer go on beside the agent.
    #[serde(rename = "project_start_ms")]
    pub start_ms: u64,
    /// Prebuilds that a tenant may have. 0: none are made or used.
    pub prebuilds: u32,
    /// A prebuild that was not renewed for so long is deleted.
    pub prebuild_ttl_ms: u64,
    /// A sandbox that is not there so long after it was created from a prebuild is created again without one.
    pub prebuild_wait_ms: u64,
}

impl SetUpLimits {
    /// The design's defaults.
    pub const DEFAULT: Self = Self {
        step_ms: 10 * MINUTE_MS,
        all_ms: 30 * MINUTE_MS,
        lock_files_ms: 3 * MINUTE_MS,
        hold_ms: 3 * MINUTE_MS,
        look_ms: MINUTE_MS,
        start_ms: 30_000,
        prebuilds: 5,
        prebuild_ttl_ms: 14 * DAY_MS,
        prebuild_wait_ms: MINUTE_MS,
    };

    /// Why nothing is set up in a builder, or kept of it; `None`: it is.
    #[must_use]
    pub const fn why_no_build(&self, is_kept: bool) -> Option<&'static str> {
        match (self.all_ms, self.prebuilds) {
            (0, _) => Some("this stack makes no project ready"),
            (_, 0) if is_kept => Some("this stack makes no prebuilds"),
            _ => None,
        }
    }

    /// Most deliveries that a set-up takes.
    pub(super) const fn deliveries(&self) -> u64 {
        self.all_ms.div_ceil(self.look_ms)
    }

    pub(super) fn check(&self) -> Result<(), String> {
        all_hold(&[
            (self.look_ms > 0, "set_up_look_ms must be above 0"),
            (
                self.all_ms == 0 || self.step_ms <= self.all_ms,
                "set_up_step_ms must be at most set_up_ms",
            ),
        ])
    }
}
