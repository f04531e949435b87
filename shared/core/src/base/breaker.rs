//! The breaker of a provider: when many calls fail, all callers leave the provider alone for a while; then one caller
//! probes whether it is back.
//!
//! Promised: it opens only after [`BreakerLimits::failures`] outages within [`BreakerLimits::window_ms`], whichever
//! callers saw them. While it is open, no call is admitted. After that, exactly one caller at a time probes, provided
//! that the claim ([`Breaker::claimed`]) is written conditionally. A probe without a result costs
//! [`BreakerLimits::probe_ms`] and nothing else. Deliberately absent: where the state is stored, and which failures are
//! outages (the shell decides both).

use serde::{Deserialize, Serialize};

use crate::base::ids::Ms;
use crate::base::limits::BreakerLimits;

/// The state of one provider's breaker. The default is closed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Breaker {
    /// Outages seen since `since_ms`, while closed.
    pub failures: u32,
    /// When the first of them was seen.
    pub since_ms: Ms,
    /// Open until this time, then half open; `None` means closed.
    pub open_until_ms: Option<Ms>,
    /// How long it was last opened for, in milliseconds; 0 while closed.
    pub open_ms: u64,
    /// A caller is probing, and has until this time to report the result.
    pub probing: Option<Ms>,
}

/// Whether a call may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallAdmission {
    /// The call may be made.
    Yes,
    /// Yes, as the one caller that probes whether the provider is back. Claim the probe before making the call.
    Probe,
    /// The call is not made: the provider has failed too often recently.
    No {
        /// Milliseconds until it is worth asking again; at least 1.
        retry_in_ms: u64,
    },
}

impl Breaker {
    /// Whether every call is admitted.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.open_until_ms.is_none()
    }

    /// Whether a call may be made now.
    #[must_use]
    pub fn admits(&self, now_ms: Ms) -> CallAdmission {
        let Some(open_until_ms) = self.open_until_ms else {
            return CallAdmission::Yes;
        };
        let until_ms = open_until_ms.max(self.probing.unwrap_or(0));
        if now_ms < until_ms {
            CallAdmission::No { retry_in_ms: until_ms - now_ms }
        } else {
            CallAdmission::Probe
        }
    }

    /// The state that makes the caller with [`CallAdmission::Probe`] the only one that probes.
    #[must_use]
    pub fn claimed(&self, now_ms: Ms, limits: &BreakerLimits) -> Self {
        Self { probing: Some(now_ms.saturating_add(limits.probe_ms)), ..self.clone() }
    }

    /// A call failed with an outage.
    #[must_use]
    pub fn failed(&self, now_ms: Ms, limits: &BreakerLimits) -> Self {
        match self.open_until_ms {
            // The call began before the breaker opened, and says nothing new.
            Some(until_ms) if now_ms < until_ms => self.clone(),
            // It cannot be told whether the failed call was the probe: the claim stays, so that there is never a second
            // probe.
            Some(_) => Self {
                probing: self.probing,
                ..Self::opened(now_ms, self.open_ms.saturating_mul(2), limits)
            },
            None => {
                let adds_up =
                    self.failures > 0 && now_ms.saturating_sub(self.since_ms) <= limits.window_ms;
                let (failures, since_ms) = if adds_up {
                    (self.failures.saturating_add(1), self.since_ms)
                } else {
                    (1, now_ms)
                };
                if failures >= limits.failures {
                    return Self::opened(now_ms, limits.open_ms, limits);
                }
                Self { failures, since_ms, ..Self::default() }
            }
        }
    }

    /// A call was answered. Closes the breaker, unless it is still open: a call that began before it opened says
    /// nothing about now.
    #[must_use]
    pub fn succeeded(&self, now_ms: Ms) -> Self {
        match self.open_until_ms {
            Some(until_ms) if now_ms >= until_ms => Self::default(),
            _ => self.clone(),
        }
    }

    fn opened(now_ms: Ms, for_ms: u64, limits: &BreakerLimits) -> Self {
        let open_ms = for_ms.min(limits.open_ms_max);
        Self { open_until_ms: Some(now_ms.saturating_add(open_ms)), open_ms, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashSet, VecDeque};

    use super::*;

    const LIMITS: BreakerLimits = BreakerLimits {
        failures: 3,
        window_ms: 4,
        open_ms: 2,
        open_ms_max: 7,
        probe_ms: 3,
        ..BreakerLimits::DEFAULT
    };

    fn failed(breaker: &Breaker, times: &[Ms]) -> Breaker {
        let fail = |breaker: Breaker, at: &Ms| breaker.failed(*at, &LIMITS);
        times.iter().fold(breaker.clone(), fail)
    }

    #[test]
    fn only_clustered_outages_open_breaker() {
        let opened = failed(&Breaker::default(), &[10, 12, 14]);
        assert_eq!(opened.open_until_ms, Some(16));
        assert_eq!(opened.admits(14), CallAdmission::No { retry_in_ms: 2 });
        let scattered = failed(&Breaker::default(), &[10, 12, 15, 20, 25]);
        assert!(scattered.is_closed(), "{scattered:?}");
        assert_eq!(scattered.admits(25), CallAdmission::Yes);
    }

    #[test]
    fn success_between_outages_hides_none() {
        let seen = failed(&Breaker::default(), &[10, 11]).succeeded(12);
        assert!(!failed(&seen, &[13]).is_closed());
    }

    #[test]
    fn single_probe_is_replaced_if_lost() {
        let open = failed(&Breaker::default(), &[1, 1, 1]);
        assert_eq!(open.admits(3), CallAdmission::Probe);
        let probing = open.claimed(3, &LIMITS);
        assert_eq!(probing.admits(3), CallAdmission::No { retry_in_ms: 3 });
        assert_eq!(probing.admits(6), CallAdmission::Probe);
    }

    #[test]
    fn failed_probe_doubles_open_time() {
        let mut breaker = failed(&Breaker::default(), &[0, 0, 0]);
        let mut lengths = vec![breaker.open_ms];
        for _ in 0..3 {
            let now_ms = breaker.open_until_ms.expect("open");
            breaker = breaker.claimed(now_ms, &LIMITS).failed(now_ms, &LIMITS);
            lengths.push(breaker.open_ms);
        }
        assert_eq!(lengths, [2, 4, 7, 7]);
        let now_ms = breaker.open_until_ms.expect("open");
        assert_eq!(breaker.succeeded(now_ms), Breaker::default());
    }

    #[test]
    fn calls_from_before_opening_are_ignored() {
        let open = failed(&Breaker::default(), &[5, 5, 5]);
        assert_eq!(open.failed(6, &LIMITS), open);
        assert_eq!(open.succeeded(6), open);
    }

    #[test]
    fn backward_clock_neither_panics_nor_opens() {
        let breaker = failed(&Breaker::default(), &[10, 3]);
        assert!(breaker.is_closed());
        let late = failed(&Breaker::default(), &[u64::MAX; 3]);
        assert_eq!(late.open_until_ms, Some(u64::MAX));
    }

    #[test]
    fn breaker_reads_other_versions() {
        let read: Breaker = serde_json::from_str(r#"{"failures":2,"fresh":true}"#).expect("valid");
        assert_eq!(read.failures, 2);
        assert!(read.is_closed());
    }

    /// One history: the breaker, and what an observer knows of it.
    #[derive(Clone, PartialEq, Eq, Hash)]
    struct World {
        now_ms: Ms,
        breaker: Breaker,
        /// Outages reported while it was closed, as far back as the window reaches.
        outages: Vec<Ms>,
        /// When the claims without a report end.
        probes: BTreeSet<Ms>,
        /// Calls in progress other than probes.
        calls: u8,
    }

    const CALLS_MAX: u8 = 3;
    const END_MS: Ms = 18;

    impl World {
        fn with(&self, breaker: Breaker) -> Self {
            Self { breaker, ..self.clone() }
        }

        /// All possible next events.
        fn next(&self) -> Vec<Self> {
            let mut next = Vec::new();
            if self.now_ms < END_MS {
                let mut later = self.clone();
                later.now_ms += 1;
                let now_ms = later.now_ms;
                later.outages.retain(|at| now_ms - at <= LIMITS.window_ms);
                later.probes.retain(|until| *until > now_ms);
                next.push(later);
            }
            match self.breaker.admits(self.now_ms) {
                CallAdmission::Yes if self.calls < CALLS_MAX => {
                    let mut called = self.clone();
                    called.calls += 1;
                    next.push(called);
                }
                CallAdmission::Yes | CallAdmission::No { .. } => {}
                CallAdmission::Probe => {
                    let mut claimed = self.with(self.breaker.claimed(self.now_ms, &LIMITS));
                    claimed.probes.insert(self.now_ms + LIMITS.probe_ms);
                    next.push(claimed);
                }
            }
            let under_way = (self.calls > 0)
                .then(|| {
                    let mut ended = self.clone();
                    ended.calls -= 1;
                    ended
                })
                .into_iter()
                .chain((!self.probes.is_empty()).then(|| {
                    let mut ended = self.clone();
                    ended.probes.clear();
                    ended
                }));
            for ended in under_way {
                let mut out = ended.with(ended.breaker.failed(self.now_ms, &LIMITS));
                if self.breaker.is_closed() {
                    out.outages.push(self.now_ms);
                }
                if !out.breaker.is_closed() {
                    out.outages.clear();
                }
                next.push(out);
                let mut answered = ended.with(ended.breaker.succeeded(self.now_ms));
                // Once it is closed, a probe in progress is an ordinary call.
                if answered.breaker.is_closed() && !answered.probes.is_empty() {
                    answered.probes.clear();
                    answered.calls = (answered.calls + 1).min(CALLS_MAX);
                }
                next.push(answered);
            }
            next
        }

        fn check(&self, after: &Self) {
            let (breaker, now_ms) = (&self.breaker, self.now_ms);
            assert!(after.probes.len() <= 1, "two probes at once");
            if after.breaker.is_closed() && !breaker.is_closed() {
                assert!(breaker.open_until_ms.is_some_and(|until| until <= now_ms));
            }
            let opened =
                after.breaker.open_until_ms != breaker.open_until_ms && !after.breaker.is_closed();
            if opened {
                let length = after.breaker.open_ms;
                assert_eq!(after.breaker.open_until_ms, Some(now_ms + length));
                if breaker.is_closed() {
                    let seen = self.outages.len() + 1;
                    assert!(seen >= 3, "opened after {seen} outages");
                    assert_eq!(length, LIMITS.open_ms);
                } else {
                    let doubled = (breaker.open_ms * 2).min(LIMITS.open_ms_max);
                    assert_eq!(length, doubled);
                }
            }
            if let Some(until) = after.breaker.open_until_ms
                && after.now_ms < until
            {
                let CallAdmission::No { retry_in_ms } = after.breaker.admits(after.now_ms) else {
                    panic!("a call was admitted while it is open");
                };
                assert!(retry_in_ms >= until - after.now_ms);
            }
            // Without further calls, it admits one within its longest time, and one answer closes it.
            let later = after.now_ms + LIMITS.open_ms_max.max(LIMITS.probe_ms);
            assert!(!matches!(after.breaker.admits(later), CallAdmission::No { .. }));
            assert!(after.breaker.succeeded(later).is_closed());
            let text = serde_json::to_string(&after.breaker).expect("always JSON");
            let read: Breaker = serde_json::from_str(&text).expect("its own text");
            assert_eq!(read, after.breaker);
        }
    }

    #[test]
    fn every_history_keeps_breaker_invariants() {
        let first = World {
            now_ms: 0,
            breaker: Breaker::default(),
            outages: Vec::new(),
            probes: BTreeSet::new(),
            calls: 0,
        };
        let mut seen = HashSet::from([first.clone()]);
        let mut open = VecDeque::from([first]);
        let (mut longest, mut reclosed, mut reprobed) = (0, false, false);
        while let Some(world) = open.pop_front() {
            for after in world.next() {
                world.check(&after);
                longest = longest.max(after.breaker.open_ms);
                reclosed |= !world.breaker.is_closed() && after.breaker.is_closed();
                reprobed |= world.breaker.probing.is_some_and(|at| at <= world.now_ms)
                    && world.breaker.probing < after.breaker.probing;
                if seen.insert(after.clone()) {
                    open.push_back(after);
                }
            }
        }
        println!("{} states", seen.len());
        assert!(seen.len() > 10_000, "only {} states", seen.len());
        assert_eq!(longest, LIMITS.open_ms_max);
        assert!(reclosed && reprobed);
    }
}
