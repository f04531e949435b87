//! SQS: send accepted work, give a message back, keep it invisible while it is worked on.

use std::time::Duration;

use bobbin_core::message::Body;

use crate::aws::words;
use crate::config::Config;

/// A send must be over within this time: ingress has three seconds in all.
pub const SEND_MS_MAX: u64 = 2_000;

/// A call to the queue failed; say it to the platform or try again, as fits the caller.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// The queue did not take the message.
    #[error("the queue did not accept the message: {0}")]
    Send(String),
    /// The visibility could not be changed: another worker may get the message meanwhile.
    #[error("the visibility could not be changed: {0}")]
    Visibility(String),
}

/// The two queues.
#[derive(Debug, Clone)]
pub struct Queues {
    client: aws_sdk_sqs::Client,
    messages: String,
    control: String,
    dead: [String; 2],
}

impl Queues {
    /// Clients for the queues that the configuration names.
    #[must_use]
    pub fn new(client: aws_sdk_sqs::Client, config: &Config) -> Self {
        Self {
            client,
            messages: config.messages_queue_url.clone(),
            control: config.control_queue_url.clone(),
            dead: config.dead_queue_urls.clone(),
        }
    }

    /// Sends a body into its group under its deduplication id.
    ///
    /// # Errors
    /// [`QueueError::Send`]; the message may or may not be on the queue, and a repeat under the same id is harmless.
    pub async fn send(&self, body: &Body) -> Result<(), QueueError> {
        let url = match body {
            Body::Control(_) | Body::Announce(_) | Body::Overview(_) => &self.control,
            Body::Message(_) | Body::Open(_) => &self.messages,
        };
        let send = self
            .client
            .send_message()
            .queue_url(url)
            .message_body(body.encode())
            .message_group_id(body.group())
            .message_deduplication_id(body.id())
            .send();
        match tokio::time::timeout(Duration::from_millis(SEND_MS_MAX), send).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(e)) => Err(QueueError::Send(words(&e))),
            Err(_) => Err(QueueError::Send(format!(
                "no answer within {SEND_MS_MAX} ms"
            ))),
        }
    }

    /// The address of the queue with this ARN.
    #[must_use]
    pub fn url_of(&self, arn: &str) -> Option<&str> {
        let name = arn.rsplit(':').next()?;
        [&self.messages, &self.control]
            .into_iter()
            .chain(&self.dead)
            .find(|url| url.rsplit('/').next() == Some(name))
            .map(String::as_str)
    }

    /// Whether it is a queue of dead letters.
    #[must_use]
    pub fn is_dead(&self, url: &str) -> bool {
        self.dead.iter().any(|dead| dead == url)
    }

    /// Sets for how long the message stays invisible from now, in milliseconds (rounded up to seconds; at most 12 h).
    ///
    /// # Errors
    /// [`QueueError::Visibility`], when the receipt is no longer valid or the queue does not answer.
    pub async fn set_visibility(
        &self,
        url: &str,
        receipt: &str,
        ms: u64,
    ) -> Result<(), QueueError> {
        let seconds = i32::try_from(ms.div_ceil(1000).min(43_200)).unwrap_or(43_200);
        self.client
            .change_message_visibility()
            .queue_url(url)
            .receipt_handle(receipt)
            .visibility_timeout(seconds)
            .send()
            .await
            .map_err(|e| QueueError::Visibility(words(&e)))?;
        Ok(())
    }
}
