//! Retries: failed deliveries, outages, and the end of a turn that cannot be told.

use serde::{Deserialize, Serialize};

use super::{MINUTE_MS, all_hold};

/// The bounds of retries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryLimits {
    /// Deliveries of one message that may fail before its turn is reported as failed.
    pub attempts: u32,
    /// First delay of a retried message; doubled each time.
    pub backoff_ms: u64,
    /// Longest delay of a retried message.
    pub backoff_ms_max: u64,
    /// Longest delay of a message that is retried because of an outage of the table or the chat.
    pub outage_backoff_ms_max: u64,
    /// First delay of a message if it, or its record, can be read only by a newer worker; doubled each time.
    pub newer_ms: u64,
    /// The longest of those delays.
    pub newer_ms_max: u64,
    /// How long a turn waits for a provider that does not answer before it is reported as failed, if the agent does not
    /// have the prompt yet; otherwise it waits as long as a turn may take.
    pub outage_ms: u64,
    /// How long the chat is waited for: to tell the end of a turn (also the provider, if the answer is still to be
    /// read) before only the record says how it ended, and to open a task's thread.
    pub telling_ms: u64,
    /// How long a control message is retried before its author is told that it had no effect.
    pub control_ms: u64,
    /// How long Bobbin tries to tell people that their message had no effect.
    pub owed_ms: u64,
    /// How often the chat may ask to wait before it is told the end of a turn.
    pub refusals: u32,
    /// How often a thread may be found closed, when it is told the end of a turn, before the end is kept for later.
    pub closed_tries: u32,
}

/// Deliveries after which the message queue gives a message up: `maxReceiveCount` of `template.yaml`. SQS allows no
/// more.
pub const DELIVERIES_MAX: u32 = 1_000;
/// Deliveries after which the control queue gives a message up; its messages never poll a run.
pub const CONTROL_DELIVERIES_MAX: u32 = 150;
/// In an outage a message is retried after this fraction of its age at the latest: the number of deliveries says
/// little, because most may have been polls.
const AGE_SHARE: u64 = 20;
/// Deliveries in an outage during which the delay grows to `backoff_ms_max` at most: a brief failure is not waited out
/// for long.
const OUTAGE_QUICK: u32 = 20;
/// Deliveries in an outage until the delay has reached its maximum: each is a fifth longer than the one before.
pub(super) const OUTAGE_DELAYS_GROWING: u64 = 60;
/// After those, the number of deliveries in which the delay doubles: an outage is waited out for a fifth longer than it
/// lasts.
const OUTAGE_DOUBLING: u32 = 4;
/// An outage over a weekend, from Friday evening to Tuesday morning: no accepted work is given up sooner.
pub(super) const WEEKEND_MS: u64 = 80 * 60 * MINUTE_MS;
/// SQS can delay a message for twelve hours from its delivery at most; one hour of that may have passed.
const QUEUE_HOLD_MS_MAX: u64 = 11 * 60 * MINUTE_MS;
/// Longest delay that another service may ask for before the next try: it counts as a failed delivery, and people wait.
const ASKED_MS_MAX: u64 = 15 * MINUTE_MS;

impl RetryLimits {
    /// The design's defaults.
    pub const DEFAULT: Self = Self {
        attempts: 5,
        backoff_ms: 2_000,
        backoff_ms_max: 60_000,
        outage_backoff_ms_max: 120 * MINUTE_MS,
        newer_ms: 2_000,
        newer_ms_max: 5 * MINUTE_MS,
        outage_ms: 15 * MINUTE_MS,
        telling_ms: WEEKEND_MS,
        control_ms: super::REPLY_TOKEN_MS,
        owed_ms: 12 * 60 * MINUTE_MS,
        refusals: 15,
        closed_tries: 4,
    };

    /// The delay before attempt `n` (counted from 1) of a retried message.
    #[must_use]
    pub fn backoff(&self, attempt: u32) -> u64 {
        self.backoff_ms
            .saturating_mul(1 << attempt.saturating_sub(1).min(16))
            .min(self.backoff_ms_max)
    }

    /// As [`Self::backoff`], if the other side asked for this many milliseconds: as long as it asked, within a bound.
    #[must_use]
    pub fn backoff_asked(&self, attempt: u32, after_ms: u64) -> u64 {
        let most_ms = self.backoff_ms_max.max(after_ms.min(ASKED_MS_MAX));
        self.backoff(attempt).max(after_ms).min(most_ms)
    }

    /// As [`Self::backoff`], in an outage of a service that Bobbin depends on, by the message's deliveries: the delay
    /// grows as long as the outage lasts, so that the queue's allowed deliveries outlast it.
    #[must_use]
    pub fn outage_backoff(&self, receive: u32) -> u64 {
        /// The fourth roots of 2, in thousandths.
        const ROOTS: [u64; OUTAGE_DOUBLING as usize] = [1_000, 1_189, 1_414, 1_682];
        let Some(beyond) = receive.checked_sub(OUTAGE_QUICK) else {
            return self.backoff(receive);
        };
        let root = ROOTS[(beyond % OUTAGE_DOUBLING) as usize];
        let doubled = (self.backoff_ms_max / 1_000)
            .saturating_mul(root)
            .saturating_mul(1 << (beyond / OUTAGE_DOUBLING).min(32));
        doubled.max(self.backoff_ms_max).min(self.outage_backoff_ms_max)
    }

    /// The longest delay of a message of this age that only waits for an obstacle to pass.
    #[must_use]
    pub fn within_age(&self, age_ms: u64) -> u64 {
        (age_ms / AGE_SHARE).max(self.backoff_ms).min(self.outage_backoff_ms_max)
    }

    /// The delay in an outage known to have lasted this long: a fifth of that, within the usual bounds.
    #[must_use]
    pub fn outage_delay(&self, lasted_ms: u64) -> u64 {
        (lasted_ms / 5).max(self.backoff_ms).min(self.outage_backoff_ms_max)
    }

    /// The delay of a message that waits for another user of its sandbox. Most deliveries of a turn may have been polls
    /// of its run, so the delay is at most as long as the other's call can have lasted.
    #[must_use]
    pub fn lease_delay(&self, receive: u32, lasted_ms: u64) -> u64 {
        self.backoff(receive).min(lasted_ms.max(self.backoff_ms))
    }

    pub(super) fn check(&self) -> Result<(), String> {
        all_hold(&[
            (
                self.backoff_ms_max > 0 && self.outage_backoff_ms_max > 0,
                "backoff_ms_max and outage_backoff_ms_max must be above 0",
            ),
            (self.attempts > 0, "attempts must be at least 1"),
            (
                self.outage_backoff_ms_max <= QUEUE_HOLD_MS_MAX,
                "outage_backoff_ms_max must be at most 39600000: SQS holds a message for twelve hours at most",
            ),
        ])
    }
}

const _: () = {
    let l = RetryLimits::DEFAULT;
    assert!(l.outage_backoff_ms_max <= QUEUE_HOLD_MS_MAX);
    assert!(l.closed_tries <= l.refusals);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lease_wait_grows_up_to_bound() {
        let limits = RetryLimits::DEFAULT;
        let delay = |(receive, lasted_ms)| limits.lease_delay(receive, lasted_ms);
        assert_eq!(
            [(1, 3_600_000), (3, 3_600_000), (300, 0), (300, 7_000), (300, 3_600_000)].map(delay),
            [2_000, 8_000, 2_000, 7_000, 60_000]
        );
        let crossed = RetryLimits { backoff_ms_max: 20, ..RetryLimits::DEFAULT };
        assert_eq!(crossed.lease_delay(1, 0), 20);
    }

    #[test]
    fn weekend_outage_fits_delivery_limit() {
        let limits = RetryLimits::DEFAULT;
        for before in [0, 7, 15, 40, 100] {
            let (mut waited_ms, mut receive) = (0, before);
            while waited_ms < WEEKEND_MS {
                receive += 1;
                waited_ms += limits.outage_backoff(receive);
            }
            assert!(receive < CONTROL_DELIVERIES_MAX, "{receive} from {before}");
        }
    }

    #[test]
    fn outage_backoff_tracks_outage_length() {
        let limits = RetryLimits::DEFAULT;
        let minutes = |n| limits.outage_backoff(n) / MINUTE_MS;
        assert_eq!(limits.outage_backoff(1), 2_000);
        assert_eq!([10, 20, 24, 32, 40, 47, 48, 149].map(minutes), [1, 1, 2, 8, 32, 107, 120, 120]);
        let mut lasted_ms = 0;
        for receive in 1..CONTROL_DELIVERIES_MAX {
            let delay_ms = limits.outage_backoff(receive);
            assert!(receive <= 20 || delay_ms * 5 <= lasted_ms + MINUTE_MS, "{receive}");
            lasted_ms += delay_ms;
        }
    }

    #[test]
    fn polled_turn_retries_soon_outlasts_weekend() {
        let limits = RetryLimits::DEFAULT;
        let delay = |receive, age_ms| limits.outage_backoff(receive).min(limits.within_age(age_ms));
        let ten_minutes_old = delay(60, 10 * MINUTE_MS);
        assert_eq!(ten_minutes_old, 30_000, "not the two hours of a sixtieth try");
        for (before, age_ms) in [(0, 0), (40, 10 * MINUTE_MS), (300, 80 * MINUTE_MS)] {
            let (mut waited_ms, mut receive) = (0, before);
            while waited_ms < WEEKEND_MS {
                receive += 1;
                waited_ms += delay(receive, age_ms + waited_ms);
            }
            assert!(receive - before < 250, "{receive} from {before}");
            assert!(receive < DELIVERIES_MAX);
        }
    }

    #[test]
    fn outage_delay_follows_known_start() {
        let limits = RetryLimits::DEFAULT;
        let (mut lasted_ms, mut tries) = (0, 0);
        while lasted_ms < limits.telling_ms {
            lasted_ms += limits.outage_delay(lasted_ms);
            tries += 1;
        }
        let bound = limits.telling_ms / limits.outage_backoff_ms_max + OUTAGE_DELAYS_GROWING;
        assert!(tries <= bound, "{tries} of {bound}");
        assert_eq!(limits.outage_delay(0), 2_000);
        assert_eq!(limits.outage_delay(50 * MINUTE_MS), 10 * MINUTE_MS);
    }

    #[test]
    fn backoff_doubles_up_to_its_cap() {
        let limits = RetryLimits::DEFAULT;
        assert_eq!([1, 2, 3, 40].map(|n| limits.backoff(n)), [2_000, 4_000, 8_000, 60_000]);
    }
}
