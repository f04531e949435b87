//! Every bound of the product, grouped by what it bounds; each name includes the unit.

mod breaker;
mod budget;
mod chat;
mod files;
mod poll;
mod record;
mod retry;
mod sandbox;
mod set_up;
mod share;
mod tenant;
mod turn;
mod watch;

use serde::de::MapAccess;
use serde::{Deserialize, Deserializer, Serialize};

use crate::base::flat::{self, Flat, FlatEntry};

pub use breaker::BreakerLimits;
pub use budget::BudgetLimits;
pub use chat::{ChatLimits, REPLY_TOKEN_MS};
pub use files::FileLimits;
pub use poll::{
    HOLD_MS_MAX, IN_FLIGHT_MAX, LOOK_SOON_MS, LOOKS_EAGER, LOOKS_NUDGED, NUDGE_APART_MS, OTHERS_MS,
    PollLimits,
};
pub use record::RecordLimits;
pub use retry::{CONTROL_DELIVERIES_MAX, DELIVERIES_MAX, RetryLimits};
pub use sandbox::{SWEEP_OUT_MS, SWEEP_UNSENT_MS, SandboxLimits};
pub use set_up::SetUpLimits;
pub use share::ShareLimits;
pub use tenant::{SECRETS_AGES, TenantLimits};
pub use turn::TurnLimits;
pub use watch::WatchLimits;

use retry::OUTAGE_DELAYS_GROWING;

const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;

/// The bounds. Each can be set by `limits` in the template's parameter `Overrides`: one JSON object with the names of
/// all groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Life cycle of a sandbox.
    #[serde(flatten)]
    pub sandbox: SandboxLimits,
    /// Resources that several threads share.
    #[serde(flatten)]
    pub share: ShareLimits,
    /// A turn and its agent.
    #[serde(flatten)]
    pub turn: TurnLimits,
    /// Following and polling a run.
    #[serde(flatten)]
    pub poll: PollLimits,
    /// Retries: how often and how long.
    #[serde(flatten)]
    pub retry: RetryLimits,
    /// Data kept in the table.
    #[serde(flatten)]
    pub record: RecordLimits,
    /// Posts in a thread.
    #[serde(flatten)]
    pub chat: ChatLimits,
    /// Files, in and out.
    #[serde(flatten)]
    pub files: FileLimits,
    /// Breakers of providers.
    #[serde(flatten)]
    pub breaker: BreakerLimits,
    /// Tenants, their keys and settings.
    #[serde(flatten)]
    pub tenant: TenantLimits,
    /// Making a project ready.
    #[serde(flatten)]
    pub set_up: SetUpLimits,
    /// Watching pull requests.
    #[serde(flatten)]
    pub watch: WatchLimits,
    /// Money.
    #[serde(flatten)]
    pub budget: BudgetLimits,
}

impl Limits {
    /// The design's defaults.
    pub const DEFAULT: Self = Self {
        sandbox: SandboxLimits::DEFAULT,
        share: ShareLimits::DEFAULT,
        turn: TurnLimits::DEFAULT,
        poll: PollLimits::DEFAULT,
        retry: RetryLimits::DEFAULT,
        record: RecordLimits::DEFAULT,
        chat: ChatLimits::DEFAULT,
        files: FileLimits::DEFAULT,
        breaker: BreakerLimits::DEFAULT,
        tenant: TenantLimits::DEFAULT,
        set_up: SetUpLimits::DEFAULT,
        watch: WatchLimits::DEFAULT,
        budget: BudgetLimits::DEFAULT,
    };

    /// Most deliveries that one message can take, for all reasons together.
    #[must_use]
    pub const fn deliveries(&self) -> u64 {
        let (poll, retry, turn_ms) = (&self.poll, &self.retry, self.turn.turn_ms);
        let looks = LOOKS_EAGER as u64 + turn_ms.div_ceil(poll.look_ms_max);
        let windows = turn_ms.div_ceil(poll.hold_ms);
        let following = if poll.gives_way() { looks } else { windows };
        let outage = retry.outage_ms / retry.backoff_ms_max + 6;
        let telling = retry.telling_ms / retry.outage_backoff_ms_max + OUTAGE_DELAYS_GROWING;
        // Waiting for a workspace: often, then now and then, then every quarter of an hour.
        let in_line = 120 + self.share.workspace_wait_ms / (15 * MINUTE_MS);
        let set_up = self.set_up.deliveries();
        retry.attempts as u64
            + retry.refusals as u64
            + following
            + outage
            + telling
            + in_line
            + set_up
    }

    /// Checks the relations that the protocol relies on.
    ///
    /// # Errors
    /// A sentence that names the two bounds that conflict.
    pub fn check(&self) -> Result<(), String> {
        self.poll.check()?;
        self.retry.check()?;
        self.sandbox.check()?;
        self.chat.check()?;
        self.record.check()?;
        self.breaker.check()?;
        self.files.check()?;
        self.tenant.check()?;
        self.set_up.check()?;
        self.watch.check()?;
        // Last, because it divides by bounds that the groups have checked to be above 0.
        all_hold(&[
            (
                self.sandbox.lifecycle_call_ms < self.poll.visibility_ms,
                "lifecycle_call_ms must be below visibility_ms",
            ),
            (
                self.deliveries() < DELIVERIES_MAX as u64,
                "turn_ms divided by look_ms_max (or by the largest hold_ms), plus all other deliveries, must stay below the queue's 1000 deliveries",
            ),
        ])
    }
}

/// The first rule that does not hold is the error.
fn all_hold(rules: &[(bool, &str)]) -> Result<(), String> {
    match rules.iter().find(|(holds, _)| !holds) {
        Some((_, rule)) => Err(format!("limits: {rule}")),
        None => Ok(()),
    }
}

const _: () = {
    let l = Limits::DEFAULT;
    assert!(l.sandbox.lifecycle_call_ms < l.poll.visibility_ms);
    assert!(l.breaker.probe_ms > l.sandbox.lifecycle_call_ms);
    assert!(l.deliveries() < DELIVERIES_MAX as u64);
    assert!(l.turn.turn_ms.div_ceil(l.poll.look_ms_max) < LOOKS_NUDGED as u64);
    // The former way: every delivery follows for as long as a function can.
    let held = Limits { poll: PollLimits { hold_ms: HOLD_MS_MAX, ..l.poll }, ..l };
    assert!(held.deliveries() < DELIVERIES_MAX as u64);
};

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Flat for Limits {
    const EXPECTED: &'static str = "struct Limits";

    fn take<'de, A: MapAccess<'de>>(
        &mut self,
        entry: &mut FlatEntry<'_, A>,
    ) -> Result<bool, A::Error> {
        Ok(entry.into_group(&mut self.sandbox)?
            || entry.into_group(&mut self.share)?
            || entry.into_group(&mut self.turn)?
            || entry.into_group(&mut self.poll)?
            || entry.into_group(&mut self.retry)?
            || entry.into_group(&mut self.record)?
            || entry.into_group(&mut self.chat)?
            || entry.into_group(&mut self.files)?
            || entry.into_group(&mut self.breaker)?
            || entry.into_group(&mut self.tenant)?
            || entry.into_group(&mut self.set_up)?
            || entry.into_group(&mut self.watch)?
            || entry.into_group(&mut self.budget)?)
    }
}

impl<'de> Deserialize<'de> for Limits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        flat::deserialize(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_limits_can_be_set() {
        let limits: Limits = serde_json::from_str(r#"{"idle_pause_ms": 1000}"#).expect("valid");
        assert_eq!(limits.sandbox.idle_pause_ms, 1000);
        assert_eq!(limits.poll.poll_ms, Limits::DEFAULT.poll.poll_ms);
        assert!(serde_json::from_str::<Limits>(r#"{"idle_pause": 1}"#).is_err());
    }

    #[test]
    fn every_bound_keeps_one_flat_name() {
        let mut all = serde_json::to_value(Limits::DEFAULT).expect("JSON");
        let bounds = all.as_object_mut().expect("an object");
        for (nth, value) in (1_000_000_u32..).zip(bounds.values_mut()) {
            *value = nth.into();
        }
        let read: Limits = serde_json::from_str(&all.to_string()).expect("valid");
        assert_eq!(serde_json::to_value(read).expect("JSON"), all);
    }

    #[test]
    fn contradictory_limits_are_named() {
        let poll = PollLimits { heartbeat_ms: 100_000, ..PollLimits::DEFAULT };
        let limits = Limits { poll, ..Limits::DEFAULT };
        assert_eq!(
            limits.check().expect_err("contradiction"),
            "limits: heartbeat_ms must be at most half of visibility_ms"
        );
        assert!(Limits::DEFAULT.check().is_ok());
    }

    #[test]
    fn limits_exhausting_deliveries_are_refused() {
        let with = |poll| Limits { poll, ..Limits::DEFAULT };
        let too_often = with(PollLimits { look_ms_max: 5_000, ..PollLimits::DEFAULT });
        assert!(too_often.check().expect_err("too often").contains("1000 deliveries"));
        let too_long = with(PollLimits { hold_ms: HOLD_MS_MAX + 1, ..PollLimits::DEFAULT });
        assert!(too_long.check().expect_err("too long").contains("hold_ms must be at most 780000"));
        let as_before = with(PollLimits { hold_ms: HOLD_MS_MAX, ..PollLimits::DEFAULT });
        assert_eq!(as_before.check(), Ok(()));
        assert_eq!(as_before.poll.held_until(5), crate::base::ids::Ms::MAX);
    }
}
