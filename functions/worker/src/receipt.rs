//! One delivery of a message: hidden from other workers while it is worked on, then deleted or retried.

use std::convert::Infallible;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_lambda_events::sqs::SqsMessage;
use bobbin_app::arrival::Arrival;
use bobbin_app::visibility::Visibility;
use bobbin_cloud::clock::now_ms;
use bobbin_cloud::queue::Queues;
use bobbin_core::base::ids::Ms;
use bobbin_core::base::limits::{HOLD_MS_MAX, Limits, PollLimits};
use bobbin_core::protocol::drive::Verdict;
use bobbin_core::schema::NEWER;

/// Attempts to shorten the visibility of a message that has just arrived.
const CLAIMS_MAX: u32 = 4;
/// Pause between two attempts.
const CLAIM_PAUSE_MS: u64 = 250;

/// A poll hides its message until the next poll only if that is at least this far away: the poll then has this much
/// time, and half of it before the first heartbeat.
const LOOK_HIDDEN_MS_MIN: u64 = 5_000;
/// A message that becomes visible up to this much later or sooner than wanted is not hidden again.
const LATER_MS_MAX: u64 = 500;
const SOONER_MS_MAX: u64 = 1_500;
/// The time at which the message becomes visible is not known.
const UNKNOWN: u64 = 0;

/// The name under which one delivery takes leases. Lambda may work on one receipt twice at the same time: the random
/// part makes these two deliveries, and only one of them gets the lease.
pub(crate) fn delivery_id(message: &str, receive: u32) -> String {
    let by_chance = RandomState::new().hash_one(receive);
    format!("{message}#{receive}-{by_chance:016x}")
}

/// One receipt of one record.
pub(crate) struct Receipt<'w> {
    queues: &'w Queues,
    limits: &'w Limits,
    pub(crate) queue_url: String,
    pub(crate) handle: String,
    /// Delivery count of this message, from 1.
    pub(crate) receive: u32,
    /// When the queue accepted it, if the record says so.
    pub(crate) sent_ms: Option<Ms>,
    /// When the claim lets the message become visible again; unknown once something changed that.
    comes_ms: AtomicU64,
}

impl<'w> Receipt<'w> {
    /// `None` for a record without a receipt, or from a queue that is not the stack's.
    pub(crate) fn of(record: &SqsMessage, queues: &'w Queues, limits: &'w Limits) -> Option<Self> {
        let queue_url = queues.url_of(record.event_source_arn.as_deref()?)?.to_owned();
        let receive = record
            .attributes
            .get("ApproximateReceiveCount")
            .and_then(|count| count.parse().ok())
            .unwrap_or(1);
        Some(Self {
            queues,
            limits,
            queue_url,
            handle: record.receipt_handle.clone()?,
            receive,
            sent_ms: record.attributes.get("SentTimestamp").and_then(|sent| sent.parse().ok()),
            comes_ms: AtomicU64::new(UNKNOWN),
        })
    }

    pub(crate) fn arrival(&self) -> Arrival {
        let now_ms = now_ms();
        Arrival { receive: self.receive, sent_ms: self.sent_ms.unwrap_or(now_ms), now_ms }
    }

    /// Acts on the verdict. True: the message may be deleted.
    pub(crate) async fn conclude(&self, verdict: Verdict) -> bool {
        let receive = self.receive;
        let delay_ms = match verdict {
            Verdict::Done => {
                tracing::info!(event = "message.done", receive, "the message is done");
                return true;
            }
            Verdict::Hold { delay_ms, why } => {
                tracing::info!(
                    event = "message.held",
                    receive,
                    delay_ms,
                    "the message is retried: {why}"
                );
                if self.comes_after(delay_ms) {
                    return false;
                }
                delay_ms
            }
            Verdict::Newer { delay_ms, seen } => {
                tracing::warn!(event = NEWER, receive, delay_ms, "{seen}");
                delay_ms
            }
        };
        self.give_back(delay_ms).await;
        false
    }

    /// Makes an unreadable message visible at once. It blocks its group until the queue gives up on it, which takes
    /// days with the queue's own visibility timeout.
    pub(crate) async fn hasten(&self) {
        self.give_back(0).await;
    }

    /// Whether the claim already lets the message become visible at about that time.
    fn comes_after(&self, delay_ms: u64) -> bool {
        let comes_ms = self.comes_ms.load(Ordering::Relaxed);
        let at_ms = now_ms() + delay_ms;
        let is_about_then = comes_ms <= at_ms + LATER_MS_MAX && at_ms <= comes_ms + SOONER_MS_MAX;
        comes_ms != UNKNOWN && delay_ms >= LOOK_HIDDEN_MS_MIN && is_about_then
    }

    /// Makes the message visible again after a delay.
    async fn give_back(&self, delay_ms: u64) {
        let given_back = self.queues.set_visibility(&self.queue_url, &self.handle, delay_ms);
        if let Err(error) = given_back.await {
            tracing::warn!(event = "message.visibility.failed", %error, "it comes back when its visibility ends");
        }
    }

    /// How long this delivery hides a message accepted at that time, before it has read what to do. A message that is
    /// probably only polled is hidden until about the next poll. The claim then also schedules the retry, and a poll
    /// that dies costs the thread no more than its interval.
    pub(crate) fn hidden_ms(&self, accepted_at_ms: Ms) -> u64 {
        let PollLimits { hold_ms, visibility_ms, .. } = self.limits.poll;
        let age_ms = now_ms().saturating_sub(accepted_at_ms);
        if self.receive == 1 || hold_ms >= HOLD_MS_MAX || age_ms < hold_ms {
            return visibility_ms;
        }
        // The queue counts whole seconds.
        let next_ms =
            self.limits.poll.next_poll_after(age_ms, self.receive).div_ceil(1_000) * 1_000;
        if (LOOK_HIDDEN_MS_MIN..visibility_ms).contains(&next_ms) { next_ms } else { visibility_ms }
    }

    /// First shortening of the visibility, tried several times: without it a crash costs the thread the queue's own
    /// visibility timeout, which is six times a function's.
    pub(crate) async fn claim(&self, visibility: &Visibility, hidden_ms: u64) -> bool {
        for _ in 0..CLAIMS_MAX {
            if self.hide(visibility, hidden_ms).await {
                if hidden_ms < self.limits.poll.visibility_ms {
                    self.comes_ms.store(visibility.get(), Ordering::Relaxed);
                }
                return true;
            }
            tokio::time::sleep(Duration::from_millis(CLAIM_PAUSE_MS)).await;
        }
        false
    }

    /// Keeps the message invisible while it is worked on. Never returns.
    pub(crate) async fn heartbeat(&self, visibility: &Visibility) -> Infallible {
        let beat_ms = self.limits.poll.heartbeat_ms;
        let left_ms = visibility.get().saturating_sub(now_ms());
        let mut next_ms = beat_ms.min(left_ms / 2);
        loop {
            tokio::time::sleep(Duration::from_millis(next_ms)).await;
            self.renew(visibility).await;
            next_ms = beat_ms;
        }
    }

    /// Keeps the message invisible for as long as any work may take until the next heartbeat. False: the receipt is no
    /// longer valid, somebody else has the message.
    pub(crate) async fn renew(&self, visibility: &Visibility) -> bool {
        // The queue may apply the change without its answer arriving here.
        self.comes_ms.store(UNKNOWN, Ordering::Relaxed);
        self.hide(visibility, self.limits.poll.visibility_ms).await
    }

    async fn hide(&self, visibility: &Visibility, hidden_ms: u64) -> bool {
        let asked_ms = now_ms();
        let hidden = self.queues.set_visibility(&self.queue_url, &self.handle, hidden_ms);
        match hidden.await {
            Ok(()) => {
                visibility.set(asked_ms + hidden_ms);
                true
            }
            Err(error) => {
                tracing::warn!(event = "message.visibility.failed", %error, "the message could not be kept invisible");
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::delivery_id;

    #[test]
    fn each_execution_has_own_delivery_id() {
        let (one, other) = (delivery_id("s1", 3), delivery_id("s1", 3));
        assert_ne!(one, other);
        assert!(one.starts_with("s1#3-") && other.starts_with("s1#3-"));
    }
}
