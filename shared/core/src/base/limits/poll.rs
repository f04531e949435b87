//! Following a run: first a delivery holds it, then deliveries poll it now and then.

use serde::{Deserialize, Serialize};

use crate::base::ids::Ms;

use super::{MINUTE_MS, all_hold};

/// The bounds of following a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PollLimits {
    /// Time between two polls of a sandbox, or of a run that is held.
    pub poll_ms: u64,
    /// A delivery follows a run until this long after its prompt was sent; after that, deliveries poll it now and then,
    /// and none holds it in between. At its maximum ([`HOLD_MS_MAX`]) every delivery follows for that long, and none
    /// only polls.
    pub hold_ms: u64,
    /// Shortest time between two polls of a run that is not held. The time grows with the turn's age.
    pub look_ms_min: u64,
    /// Longest time between two such polls.
    pub look_ms_max: u64,
    /// Visibility timeout that a worker asks for; a crash costs the thread this long.
    pub visibility_ms: u64,
    /// Time between two renewals of the visibility.
    pub heartbeat_ms: u64,
}

/// Messages that a FIFO queue can have in flight; beyond that it silently hands out none. A running turn is one of
/// them, also while its message waits invisibly for the next poll, so this is also the most turns that a stack can run
/// at once.
pub const IN_FLIGHT_MAX: u64 = 120_000;
/// Longest time that one delivery follows a run: a function has 15 minutes.
pub const HOLD_MS_MAX: u64 = 13 * MINUTE_MS;
/// The delay between two polls is this fraction of the turn's age, within its bounds: a long wait gets only a little
/// longer.
const LOOK_SHARE: u64 = 12;
/// Deliveries of one message in which polls come quickly and can be brought forward. After these, polls come only every
/// `look_ms_max`, so that neither many requests nor many asks use up the deliveries that the queue allows.
pub const LOOKS_EAGER: u32 = 400;
/// The part of those that a sandbox's daemon can bring forward. The longest turn needs fewer polls by itself, and the
/// rest is left for people's requests.
pub const LOOKS_NUDGED: u32 = 300;
/// Shortest time between a poll and the next one that a daemon brings forward, however often it asks. Within this time
/// the last delivery may still be returning the message; and it bounds how fast a program in a sandbox can use up
/// polls.
pub const NUDGE_APART_MS: u64 = 1_000;
/// Time between two checks by a delivery that holds a run, whether other work waits and no worker is free for it.
pub const OTHERS_MS: u64 = 10_000;
/// A message that waits for less than this is not brought forward.
pub const LOOK_SOON_MS: u64 = 500;

impl PollLimits {
    /// The design's defaults.
    pub const DEFAULT: Self = Self {
        poll_ms: 2_000,
        hold_ms: MINUTE_MS,
        look_ms_min: 5_000,
        look_ms_max: 20_000,
        visibility_ms: 120_000,
        heartbeat_ms: 40_000,
    };

    /// End of the time for which a run is held, given when its prompt was sent; without end at the maximum of
    /// `hold_ms`.
    #[must_use]
    pub const fn held_until(&self, sent_at_ms: Ms) -> Ms {
        if !self.gives_way() {
            return Ms::MAX;
        }
        sent_at_ms.saturating_add(self.hold_ms)
    }

    /// Whether a held run is returned if other work waits; `false` if every delivery follows.
    #[must_use]
    pub const fn gives_way(&self) -> bool {
        self.hold_ms < HOLD_MS_MAX
    }

    /// The delay until the next poll of a run of this age; `receive` counts the deliveries of its message.
    #[must_use]
    pub fn next_poll_after(&self, age_ms: u64, receive: u32) -> u64 {
        if receive >= LOOKS_EAGER {
            return self.look_ms_max;
        }
        (age_ms / LOOK_SHARE).clamp(self.look_ms_min, self.look_ms_max)
    }

    /// The longest that a turn's message can be out of sight while nothing is wrong: held, or waiting for the next
    /// poll.
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
        let at = |seconds: u64| limits.next_poll_after(seconds * 1_000, 1);
        assert_eq!([0, 60, 120, 240, 5_000].map(at), [5_000, 5_000, 10_000, 20_000, 20_000]);
        let (mut age_ms, mut looks) = (limits.hold_ms, 0);
        while age_ms < 5 * MINUTE_MS {
            age_ms += limits.next_poll_after(age_ms, looks);
            looks += 1;
        }
        assert_eq!(looks, 21, "of a turn of five minutes");

        // However often each poll is brought forward.
        let (mut left_ms, mut receive) = (turn_ms, LOOKS_EAGER);
        while left_ms > 0 {
            left_ms = left_ms.saturating_sub(limits.next_poll_after(0, receive));
            receive += 1;
        }
        assert!(u64::from(receive) <= LOOKS_EAGER as u64 + turn_ms.div_ceil(limits.look_ms_max));
    }
}
