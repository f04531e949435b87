//! SQS: send accepted work, return a message for a retry, keep it invisible while it is processed.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchOutput;
use aws_sdk_sqs::types::{QueueAttributeName, SendMessageBatchRequestEntry};
use bobbin_core::records::message::{Body, Message};

use crate::aws::{Aws, Bounded, CallError, Late};
use crate::config::Config;
use crate::dead_letters::QueuePair;

/// Bound of a send: ingress has three seconds in all.
pub const SEND_MS_MAX: u64 = 2_000;
/// Bound of a batch of sends.
pub const BATCH_MS_MAX: u64 = 5_000;
/// Most messages in one batch, a limit of SQS.
pub const BATCH_MAX: usize = 10;
/// Bound of a visibility change, which the next heartbeat repeats, and of a count.
pub const VISIBILITY_MS_MAX: u64 = 10_000;
/// Longest visibility timeout, in seconds.
const VISIBILITY_SECONDS_MAX: i32 = 43_200;

/// A failed call to the queue. The caller reports it to the platform or tries again.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// The queue did not accept the message.
    #[error("the queue did not accept the message: {0}")]
    Send(String),
    /// The visibility could not be changed: another worker may receive the message meanwhile.
    #[error("the visibility could not be changed: {0}")]
    Visibility(String),
    /// The queue did not return its message count.
    #[error("the messages of a queue could not be counted: {0}")]
    Count(String),
}

/// Sends to `messages.fifo` and `control.fifo`.
#[derive(Debug, Clone)]
pub struct Queues {
    sends: Bounded<Client>,
    batches: Late<Client>,
    visibility: Late<Client>,
    messages: String,
    control: String,
}

impl Queues {
    /// The queues that the configuration names.
    #[must_use]
    pub fn new(aws: &Aws, config: &Config) -> Self {
        Self::at(aws, config.messages_queue_url.clone(), config.control_queue_url.clone())
    }

    /// Queues of a stack that is inspected from outside.
    #[must_use]
    pub fn of(aws: &Aws, [messages, control]: &[QueuePair; 2]) -> Self {
        Self::at(aws, messages.home_url.clone(), control.home_url.clone())
    }

    /// Queues at these addresses.
    #[must_use]
    pub fn at(aws: &Aws, messages: String, control: String) -> Self {
        Self {
            sends: aws.sqs(SEND_MS_MAX),
            batches: Late::new(aws.clone(), Aws::sqs, BATCH_MS_MAX),
            visibility: Late::new(aws.clone(), Aws::sqs, VISIBILITY_MS_MAX),
            messages,
            control,
        }
    }

    /// Sends a body to its group with its deduplication id.
    ///
    /// # Errors
    /// [`QueueError::Send`]; the message may or may not be in the queue, and a repeat with the same id is harmless.
    pub async fn send(&self, body: &Body) -> Result<(), QueueError> {
        let url = if body.is_control() { &self.control } else { &self.messages };
        let Bounded { client, .. } = &self.sends;
        let sending = client
            .send_message()
            .queue_url(url)
            .message_body(body.encode())
            .message_group_id(body.group())
            .message_deduplication_id(body.id());
        let sent = sending.send().await;
        let sent = sent.map_err(|e| QueueError::from(self.sends.failed(e)))?;
        // An answer without an id is not the queue's.
        match sent.message_id() {
            Some(_) => Ok(()),
            None => Err(self.sends.unreadable("MessageId").into()),
        }
    }

    /// Sends messages to their threads, at most [`BATCH_MAX`], in one call. Each is accepted or refused by itself; the
    /// results are in the order of the messages.
    pub async fn send_messages(&self, messages: Vec<Message>) -> Vec<Result<(), QueueError>> {
        let bodies: Vec<Body> = messages.into_iter().map(Body::Message).collect();
        let entry = |(place, body): (usize, &Body)| {
            SendMessageBatchRequestEntry::builder()
                .id(place.to_string())
                .message_body(body.encode())
                .message_group_id(body.group())
                .message_deduplication_id(body.id())
                .build()
                .map_err(|e| e.to_string())
        };
        let entries: Result<Vec<_>, String> = bodies.iter().enumerate().map(entry).collect();
        let answer = match entries {
            Ok(entries) => {
                let batches = self.batches.get();
                let batch = batches.client.send_message_batch();
                let batch = batch.queue_url(&self.messages).set_entries(Some(entries));
                let sent = batch.send().await;
                sent.map_err(|e| batches.failed(e).with_remedy())
            }
            Err(why) => Err(why),
        };
        let outcome = |place: usize| {
            let answer = answer.as_ref().map_err(|e| QueueError::Send(e.clone()))?;
            accepted(answer, &place.to_string()).map_err(QueueError::Send)
        };
        (0..bodies.len()).map(outcome).collect()
    }

    /// The address of the queue with this ARN.
    #[must_use]
    pub fn url_of(&self, arn: &str) -> Option<&str> {
        let name = arn.rsplit(':').next()?;
        [&self.messages, &self.control]
            .into_iter()
            .find(|url| url.rsplit('/').next() == Some(name))
            .map(String::as_str)
    }

    /// Approximate number of waiting messages in a queue. Messages in flight are not counted.
    ///
    /// # Errors
    /// [`QueueError::Count`].
    pub async fn waiting(&self, url: &str) -> Result<u64, QueueError> {
        let name = QueueAttributeName::ApproximateNumberOfMessages;
        let patient = self.visibility.get();
        let asked = patient.client.get_queue_attributes();
        let told = asked.queue_url(url).attribute_names(name.clone()).send();
        let told = told.await.map_err(|e| QueueError::Count(patient.failed(e).with_remedy()))?;
        let count = told.attributes.and_then(|all| all.get(&name)?.parse().ok());
        count.ok_or_else(|| QueueError::Count(patient.unreadable("Attributes").with_remedy()))
    }

    /// Approximate number of waiting messages of threads. Those that wait behind an in-flight message of their group
    /// are counted.
    ///
    /// # Errors
    /// [`QueueError::Count`].
    pub async fn waiting_messages(&self) -> Result<u64, QueueError> {
        self.waiting(&self.messages).await
    }

    /// Makes a waiting message of a thread visible at once, by the receipt of its last delivery.
    ///
    /// # Errors
    /// As [`Self::set_visibility`].
    pub async fn show_message(&self, receipt: &str) -> Result<(), QueueError> {
        self.set_visibility(&self.messages, receipt, 0).await
    }

    /// Sets how long the message stays invisible from now, in milliseconds (rounded up to seconds; at most 12 h).
    ///
    /// # Errors
    /// [`QueueError::Visibility`], when the receipt is no longer valid or the queue does not answer.
    pub async fn set_visibility(
        &self,
        url: &str,
        receipt: &str,
        ms: u64,
    ) -> Result<(), QueueError> {
        let seconds = i32::try_from(ms.div_ceil(1000)).unwrap_or(VISIBILITY_SECONDS_MAX);
        let visibility = self.visibility.get();
        let change = visibility.client.change_message_visibility();
        let change = change
            .queue_url(url)
            .receipt_handle(receipt)
            .visibility_timeout(seconds.min(VISIBILITY_SECONDS_MAX));
        match change.send().await {
            Ok(_) => Ok(()),
            Err(error) => {
                let error = visibility.failed(error);
                Err(QueueError::Visibility(error.with_remedy()))
            }
        }
    }
}

impl From<CallError> for QueueError {
    fn from(error: CallError) -> Self {
        Self::Send(error.with_remedy())
    }
}

/// Whether the queue accepted the entry with this id; if not, why.
fn accepted(answer: &SendMessageBatchOutput, id: &str) -> Result<(), String> {
    if answer.successful().iter().any(|entry| entry.id() == id) {
        return Ok(());
    }
    let refused = answer.failed().iter().find(|entry| entry.id() == id);
    Err(refused.map_or_else(
        || "the answer does not name the message".to_owned(),
        |entry| {
            let message = entry.message().unwrap_or("no message");
            format!("{}: {message}", entry.code())
        },
    ))
}

#[cfg(test)]
mod tests {
    use aws_sdk_sqs::types::{BatchResultErrorEntry, SendMessageBatchResultEntry};

    use super::*;

    #[test]
    fn batch_entries_have_own_results() {
        let took =
            SendMessageBatchResultEntry::builder().id("0").message_id("m").md5_of_message_body("d");
        let refused = BatchResultErrorEntry::builder()
            .id("1")
            .code("InternalError")
            .message("later")
            .sender_fault(false);
        let answer = SendMessageBatchOutput::builder()
            .successful(took.build().expect("whole"))
            .failed(refused.build().expect("whole"))
            .build()
            .expect("whole");
        assert_eq!(accepted(&answer, "0"), Ok(()));
        assert_eq!(accepted(&answer, "1"), Err("InternalError: later".to_owned()));
        assert_eq!(
            accepted(&answer, "2"),
            Err("the answer does not name the message".to_owned()),
            "silence is no success"
        );
    }
}
