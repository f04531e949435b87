//! Life cycle of a sandbox: until it runs, is paused or is deleted; and what watches over that.

use serde::{Deserialize, Serialize};

use super::retry::WEEKEND_MS;
use super::{MINUTE_MS, all_hold};

/// The bounds of a sandbox's life cycle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxLimits {
    /// An active sandbox without a turn for this long is paused.
    pub idle_pause_ms: u64,
    /// How late the sweeper may find an idle sandbox before it counts as stale.
    pub stale_grace_ms: u64,
    /// A paused sandbox is destroyed after this long.
    pub paused_ttl_ms: u64,
    /// A paused sandbox with a name is destroyed after this long.
    pub named_ttl_ms: u64,
    /// A sandbox must run within this time after it was requested.
    pub create_ms: u64,
    /// A stopped sandbox must run within this time after its start.
    pub start_ms: u64,
    /// A stop or delete must have taken effect within this time.
    pub stop_ms: u64,
    /// Longest time of one life-cycle call at the provider.
    pub lifecycle_call_ms: u64,
    /// A new sandbox may not be found at the provider for this long, because it is still being created.
    pub appear_ms: u64,
    /// A sandbox that was not found is looked for once more after this time, before that is believed.
    pub gone_apart_ms: u64,
    /// A sandbox that its record gave up as vanished, and that is seen alive beside its next generation, is kept for
    /// this long, because somebody may want its files.
    pub vanished_grace_ms: u64,
    /// If the provider keeps a new sandbox's secrets, it must put them into requests within this time.
    pub put_in_ms: u64,
    /// How often the sweeper looks for records whose sandbox the provider does not list.
    pub reconcile_ms: u64,
    /// Daytona's own auto-stop, as the last safety net (minutes).
    pub auto_stop_min: u32,
    /// Daytona's own lifetime of a sandbox in any state, as the last safety net (minutes).
    pub auto_destroy_min: u32,
}

/// A sweep that the queue has accepted is not sent again for this long. By then it is done, or is held by an outage
/// longer than any expected, or was lost with its queue.
pub const SWEEP_OUT_MS: u64 = WEEKEND_MS;
/// The sweeper repeats a sweep after this time if it does not know whether the queue accepted it: soon enough for the
/// queue to deduplicate it by its id.
pub const SWEEP_UNSENT_MS: u64 = 2 * MINUTE_MS;

impl SandboxLimits {
    /// The design's defaults.
    pub const DEFAULT: Self = Self {
        // docs/COSTS.md, "Sandbox minutes".
        idle_pause_ms: 5 * MINUTE_MS,
        stale_grace_ms: 5 * MINUTE_MS,
        paused_ttl_ms: 180 * MINUTE_MS,
        named_ttl_ms: 6 * 24 * 60 * MINUTE_MS,
        create_ms: 180_000,
        start_ms: 180_000,
        stop_ms: 60_000,
        lifecycle_call_ms: 45_000,
        appear_ms: MINUTE_MS,
        gone_apart_ms: 5_000,
        vanished_grace_ms: 24 * 60 * MINUTE_MS,
        put_in_ms: 30_000,
        reconcile_ms: 10 * MINUTE_MS,
        auto_stop_min: 120,
        auto_destroy_min: 7 * 24 * 60,
    };

    pub(super) fn check(&self) -> Result<(), String> {
        all_hold(&[(
            u64::from(self.auto_stop_min) * MINUTE_MS > self.idle_pause_ms,
            "auto_stop_min must be longer than idle_pause_ms",
        )])
    }
}

const _: () = {
    let l = SandboxLimits::DEFAULT;
    assert!(l.auto_stop_min as u64 * MINUTE_MS > l.idle_pause_ms);
};
