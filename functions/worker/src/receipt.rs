//! One delivery of a message: how it is kept from other workers while it is worked on, and deleted or given back after that.

use std::convert::Infallible;
use std::time::Duration;

use aws_lambda_events::sqs::SqsMessage;
use bobbin_app::arrival::Arrival;
use bobbin_app::world::Visibility;
use bobbin_cloud::clock::now_ms;
use bobbin_cloud::queue::Queues;
use bobbin_core::drive::Verdict;
use bobbin_core::ids::Ms;
use bobbin_core::limits::Limits;
use bobbin_core::schema::NEWER;

/// Tries to shorten the visibility of a message that has just come.
const CLAIMS_MAX: u32 = 4;
/// Between two of them.
const CLAIM_PAUSE_MS: u64 = 250;

/// One receipt of one record.
pub(crate) struct Receipt<'w> {
    queues: &'w Queues,
    limits: &'w Limits,
    pub(crate) queue_url: String,
    pub(crate) handle: String,
    /// Counts the deliveries of this message, from 1.
    pub(crate) receive: u32,
    /// When the queue took it, where that says so.
    pub(crate) sent_ms: Option<Ms>,
}

impl<'w> Receipt<'w> {
    /// None for a record without a receipt, or from a queue that is not the stack's.
    pub(crate) fn of(record: &SqsMessage, queues: &'w Queues, limits: &'w Limits) -> Option<Self> {
        let queue_url = queues
            .url_of(record.event_source_arn.as_deref()?)?
            .to_owned();
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
            sent_ms: record
                .attributes
                .get("SentTimestamp")
                .and_then(|sent| sent.parse().ok()),
        })
    }

    pub(crate) fn arrival(&self) -> Arrival {
        let now_ms = now_ms();
        Arrival {
            receive: self.receive,
            sent_ms: self.sent_ms.unwrap_or(now_ms),
            now_ms,
        }
    }

    /// Does with the message what was found. True: it may be deleted.
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
                    "the message is given back: {why}"
                );
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

    /// Lets what nobody can read come back at once, because it holds its group until the queue gives it up: with the
    /// queue's own visibility that takes days.
    pub(crate) async fn hasten(&self) {
        self.give_back(0).await;
    }

    /// Lets the queue hand the message out again after a delay.
    async fn give_back(&self, delay_ms: u64) {
        let given_back = self
            .queues
            .set_visibility(&self.queue_url, &self.handle, delay_ms);
        if let Err(error) = given_back.await {
            tracing::warn!(event = "message.visibility.failed", %error, "it comes back when its visibility ends");
        }
    }

    /// The first shortening of the visibility, tried more than once: without it a crash costs the thread the queue's
    /// own visibility, which is as long as six functions.
    pub(crate) async fn claim(&self, visibility: &Visibility) -> bool {
        for _ in 0..CLAIMS_MAX {
            if self.renew(visibility).await {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(CLAIM_PAUSE_MS)).await;
        }
        false
    }

    /// Keeps the message invisible for as long as it is worked on. Ends never.
    pub(crate) async fn heartbeat(&self, visibility: &Visibility) -> Infallible {
        let mut every = tokio::time::interval(Duration::from_millis(self.limits.heartbeat_ms));
        every.tick().await;
        loop {
            every.tick().await;
            self.renew(visibility).await;
        }
    }

    /// False: the receipt is no longer valid, somebody else has the message.
    async fn renew(&self, visibility: &Visibility) -> bool {
        let asked_ms = now_ms();
        match self
            .queues
            .set_visibility(&self.queue_url, &self.handle, self.limits.visibility_ms)
            .await
        {
            Ok(()) => {
                visibility.set(asked_ms + self.limits.visibility_ms);
                true
            }
            Err(error) => {
                tracing::warn!(event = "message.visibility.failed", %error, "the message could not be kept invisible");
                false
            }
        }
    }
}
