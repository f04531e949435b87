//! How a run is followed: first a delivery holds it, then one looks at it now and then.

use serde::{Deserialize, Serialize};

use crate::base::ids::Ms;

use super::{MINUTE_MS, all_hold};

/// The bounds of following a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PollLimits {
    /// Between two looks at a sandbox or a run that is held.
    pub poll_ms: u64,
    /// A delivery follows a run until this long after its prompt was sent; from then on one looks at it now and then, and
    /// nobody holds it in between. At its largest ([`HOLD_MS_MAX`]) every delivery follows for so long, and none only looks.
    pub hold_ms: u64,
    /// Shortest time between two looks at a run that nobody holds. It grows with the turn's age.
    pub look_ms_min: u64,
    /// Longest time between two such looks.
    pub look_ms_max: u64,
    /// Visibility that a worker asks for; a crash costs the thread this long.
    pub visibility_ms: u64,
    /// The visibility is renewed this often.
    pub heartbeat_ms: u64,
}

/// Messages that a FIFO queue can have in flight; beyond it hands out none, and says nothing. A running turn is one of them,
/// also while its message waits invisibly for the next look: so many turns can run in a stack at the same time.
pub const IN_FLIGHT_MAX: u64 = 120_000;
/// The longest that one delivery follows a run: a function has 15 minutes.
pub const HOLD_MS_MAX: u64 = 13 * MINUTE_MS;
/// Between two looks lies this part of the turn's age, within their bounds: who waits long waits little longer.
const LOOK_SHARE: u64 = 12;
/// Deliveries of one message in which looks come quickly, and are brought forward by whoever wants one. Beyond them they
/// come every `look_ms_max` alone, so that no crowd of wishes and no series of asks uses up what the queue allows.
pub const LOOKS_EAGER: u32 = 400;
/// The part of those that the daemon in a sandbox can bring forward: a turn of the longest looks at itself less often, and
/// people's wishes have the rest.
pub const LOOKS_NUDGED: u32 = 300;
/// Looks that a daemon brings forward come no sooner than this after the one before, however often it asks: so long who gave
/// the message back may still be about it, and so fast may what runs in a sandbox use up looks.
pub const NUDGE_APART_MS: u64 = 1_000;
/// Who holds a run looks this often whether work waits for which nobody has room.
pub const OTHERS_MS: u64 = 10_000;
/// What waits for less than this comes about as soon by itself.
pub const LOOK_SOON_MS: u64 = 500;

impl PollLimits {
    /// The defaults of the design.
    pub const DEFAULT: Self = Self {
        poll_ms: 2_000,
        hold_ms: MINUTE_MS,
        look_ms_min: 5_000,
        look_ms_max: 20_000,
        visibility_ms: 120_000,
        heartbeat_ms: 40_000,
    };

    /// Until when a run is followed whose prompt was sent then; at its largest without end.
    #[must_use]
    pub const fn held_until(&self, sent_at_ms: Ms) -> Ms {
        if !self.gives_way() {
            return Ms::MAX;
        }
        sent_at_ms.saturating_add(self.hold_ms)
    }

    /// Whether a run that is held is given back where other work waits: not where every delivery follows.
    #[must_use]
    pub const fn gives_way(&self) -> bool {
        self.hold_ms < HOLD_MS_MAX
    }

    /// The time until the next look at a run that has gone on for so long; `receive` counts the deliveries of its message.
    #[must_use]
    pub fn look_after(&self, age_ms: u64, receive: u32) -> u64 {
        if receive >= LOOKS_EAGER {
            return self.look_ms_max;
        }
        (age_ms / LOOK_SHARE).clamp(self.look_ms_min, self.look_ms_max)
    }

    /// The longest that a turn's message may be out of sight while nothing is amiss: held, or waiting for the next look.
    #[must_use]
    pub fn out_of_sight_ms(&self) -> u64 {
        self.hold_ms.max(self.look_ms_max) + self.visibility_ms
    }

    pub(super) fn check(&self) -> Result<(), String> {
        all_hold(&[
            (
                self.heartbeat_ms.saturating_mul(2) <= self.visibility_ms,
                "heartbeat_ms must be at most half of visibility_ms",
            ),
            (
                self.hold_ms > 0 && self.poll_ms > 0 && self.heartbeat_ms > 0,
                "hold_ms, poll_ms and heartbeat_ms must be above 0",
            ),
            (
                self.hold_ms <= HOLD_MS_MAX,
                "hold_ms must be at most 780000: a function has 15 minutes",
            ),
            (
                self.look_ms_min > 0 && self.look_ms_min <= self.look_ms_max,
                "look_ms_min must be above 0 and at most look_ms_max",
            ),
        ])
    }
}

const _: () = {
    let l = PollLimits::DEFAULT;
    assert!(l.heartbeat_ms * 2 <= l.visibility_ms);
    assert!(HOLD_MS_MAX + 60_000 < 15 * MINUTE_MS);
    assert!(l.hold_ms <= HOLD_MS_MAX && l.look_ms_min <= l.look_ms_max);
    assert!(LOOKS_NUDGED < LOOKS_EAGER);
    assert!(LOOK_SOON_MS < NUDGE_APART_MS && NUDGE_APART_MS < l.look_ms_min);
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::limits::TurnLimits;

    #[test]
    fn poll_interval_grows_within_delivery_limit() {
        let (limits, turn_ms) = (PollLimits::DEFAULT, TurnLimits::DEFAULT.turn_ms);
        let at = |seconds: u64| limits.look_after(seconds * 1_000, 1);
        assert_eq!([0, 60, 120, 240, 5_000].map(at), [5_000, 5_000, 10_000, 20_000, 20_000]);
        let (mut age_ms, mut looks) = (limits.hold_ms, 0);
        while age_ms < 5 * MINUTE_MS {
            age_ms += limits.look_after(age_ms, looks);
            looks += 1;
        }
        assert_eq!(looks, 21, "of a turn of five minutes");

        // However often each is brought forward.
        let (mut left_ms, mut receive) = (turn_ms, LOOKS_EAGER);
        while left_ms > 0 {
            left_ms = left_ms.saturating_sub(limits.look_after(0, receive));
            receive += 1;
        }
        assert!(u64::from(receive) <= LOOKS_EAGER as u64 + turn_ms.div_ceil(limits.look_ms_max));
    }
}
