//! One delivery of a control message and its retry policy.

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::Ms;
use bobbin_core::base::limits::RetryLimits;
use bobbin_core::protocol::drive::Verdict;

/// Maximum difference between the clocks of functions and queue.
const CLOCKS_MS: u64 = 10_000;

/// One delivery of a message of the control queue.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// Delivery count of the message, from 1.
    pub receive: u32,
    /// When the queue accepted the message.
    pub sent_ms: Ms,
    /// When it was delivered.
    pub now_ms: Ms,
}

impl Arrival {
    /// Time since the queue accepted it.
    #[must_use]
    pub const fn age_ms(&self) -> u64 {
        self.now_ms.saturating_sub(self.sent_ms)
    }

    /// Whether the message is at least this old.
    #[must_use]
    pub const fn is_older_than(&self, within_ms: u64) -> bool {
        self.age_ms() >= within_ms
    }

    /// Whether something accepted at that time may have existed when the message was sent: a stop that was retried
    /// through an outage does not apply to later prompts.
    #[must_use]
    pub const fn may_mean(&self, accepted_at_ms: Ms) -> bool {
        accepted_at_ms <= self.sent_ms + CLOCKS_MS
    }

    /// Retries after a transient failure, limited by time and not by count: until the message is older than
    /// `within_ms`. `None`: the failure is permanent, or has lasted too long.
    #[must_use]
    pub fn held(&self, failure: &Failure, within_ms: u64, limits: &RetryLimits) -> Option<Verdict> {
        let passes = match failure {
            Failure::Newer { .. } => true,
            Failure::Wait { .. } | Failure::Outage { .. } => !self.is_older_than(within_ms),
            _ => false,
        };
        passes.then(|| self.given_back(failure, limits))
    }

    /// Retries until the queue gives up.
    #[must_use]
    pub fn given_back(&self, failure: &Failure, limits: &RetryLimits) -> Verdict {
        Verdict::given_back(failure, failure.to_string(), self.receive, limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outage() -> Failure {
        Failure::Outage { after_ms: 0, seen: "503".to_owned() }
    }

    fn arrival(receive: u32, age_ms: u64) -> Arrival {
        Arrival { receive, sent_ms: 1_000, now_ms: 1_000 + age_ms }
    }

    #[test]
    fn outages_are_held_by_age() {
        let limits = RetryLimits::DEFAULT;
        let within_ms = limits.control_ms;
        for (receive, age_ms) in [(1, 0), (9, 60_000), (40, within_ms - 1)] {
            let held = arrival(receive, age_ms).held(&outage(), within_ms, &limits);
            assert!(matches!(held, Some(Verdict::Hold { .. })), "{receive}");
        }
        let over = arrival(2, within_ms).held(&outage(), within_ms, &limits);
        assert_eq!(over, None);
    }

    #[test]
    fn late_stop_spares_later_prompts() {
        let stop = arrival(1, 5 * 3_600_000);
        assert!(stop.may_mean(900) && stop.may_mean(1_500));
        assert!(!stop.may_mean(3_600_000));
    }

    #[test]
    fn only_temporary_failures_are_held() {
        let limits = RetryLimits::DEFAULT;
        let wait = Failure::Wait { after_ms: 90_000, seen: "429".to_owned() };
        let held = arrival(1, 0).held(&wait, limits.control_ms, &limits);
        let expected = Verdict::Hold { delay_ms: 90_000, why: "429".to_owned() };
        assert_eq!(held, Some(expected));
        let gone = Failure::SandboxGone;
        assert_eq!(arrival(1, 0).held(&gone, limits.control_ms, &limits), None);
    }
}
