//! Dead letters, for the worker and the operator: receive them for a moment, put back, delete, or resend.
//!
//! Promised: a letter that is received and neither put back nor deleted becomes visible again after [`HELD_SECONDS`]. A
//! resent letter keeps its body and group, and leaves the dead letter queue only after its original queue has accepted
//! it. The queues hide a group while one of its letters is in flight, so at most ten letters of one thread are seen at
//! once. Deliberately absent: the decision what a letter would do (`bobbin_core::protocol::decide::replay`).

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName};
use bobbin_core::base::ids::Ms;
use bobbin_core::protocol::decide::replay::again_id;
use bobbin_core::records::message::Body;
use bobbin_core::schema::Unreadable;

use crate::aws::{Aws, Bounded, CallError, IntoCallError};
use crate::config::Config;

/// Seconds for which a received letter stays hidden.
pub const HELD_SECONDS: i32 = 60;
/// Most dead letters of one queue that are read.
pub const DEAD_LETTERS_MAX: usize = 200;
/// Most messages that SQS returns at once.
const BATCH_MAX: i32 = 10;
/// Bound of a call.
const CALL_MS_MAX: u64 = 10_000;

/// A work queue and its dead letter queue.
#[derive(Debug, Clone)]
pub struct QueuePair {
    /// Display name: `messages` or `control`.
    pub name: &'static str,
    /// Address of the work queue.
    pub home_url: String,
    /// Address of the dead letter queue.
    pub dead_url: String,
}

/// A received dead letter.
#[derive(Clone)]
pub struct DeadLetter {
    /// Name of its original queue.
    pub queue: &'static str,
    /// SQS's message id.
    pub sqs_id: String,
    /// The id in its body: for a prompt, the id of its turn. If this version cannot read the body, SQS's own id, which
    /// the dead letter queue uses as deduplication id (SQS developer guide, "Using dead-letter queues").
    pub id: String,
    /// Its message group: the thread, if it belongs to one.
    pub group: String,
    /// When it became a dead letter.
    pub dead_since_ms: Ms,
    /// How often it was received, from its own queue and the dead letter queue together, this time included (SQS API
    /// reference, ReceiveMessage).
    pub receive: u32,
    /// Its content, if this version can read it.
    pub body: Result<Body, Unreadable>,
    text: String,
    receipt: String,
}

/// A call about dead letters failed.
#[derive(Debug, thiserror::Error)]
#[error("the {queue} queue's dead letters: {}", error.with_remedy())]
pub struct DeadLettersError {
    queue: &'static str,
    error: CallError,
}

/// The dead letters of a stack.
#[derive(Debug, Clone)]
pub struct DeadLetterQueues {
    sqs: Bounded<Client>,
    pairs: [QueuePair; 2],
}

impl DeadLetterQueues {
    /// Dead letters of these queues.
    #[must_use]
    pub fn new(aws: &Aws, pairs: [QueuePair; 2]) -> Self {
        let sqs = aws.sqs(CALL_MS_MAX);
        Self { sqs, pairs }
    }

    /// Dead letters of the function's own stack.
    #[must_use]
    pub fn of(aws: &Aws, config: &Config) -> Self {
        let pair = |name, home_url: &String, dead_url: &String| QueuePair {
            name,
            home_url: home_url.clone(),
            dead_url: dead_url.clone(),
        };
        let [messages, control] = &config.dead_queue_urls;
        let pairs = [
            pair("messages", &config.messages_queue_url, messages),
            pair("control", &config.control_queue_url, control),
        ];
        Self::new(aws, pairs)
    }

    /// The work queues and their dead letter queues.
    #[must_use]
    pub const fn pairs(&self) -> &[QueuePair; 2] {
        &self.pairs
    }

    /// Receives the letters of both queues, at most [`DEAD_LETTERS_MAX`] of each. The caller puts them back.
    ///
    /// # Errors
    /// [`DeadLettersError`]; letters received until then become visible again by themselves.
    pub async fn take(&self) -> Result<Vec<DeadLetter>, DeadLettersError> {
        let mut taken = Vec::new();
        for pair in &self.pairs {
            let before = taken.len();
            while taken.len() - before < DEAD_LETTERS_MAX {
                let batch = self.batch(pair).await?;
                if batch.is_empty() {
                    break;
                }
                taken.extend(batch);
            }
        }
        Ok(taken)
    }

    /// Receives some letters of a queue, ten at most. The caller puts them back, or deletes them.
    ///
    /// # Errors
    /// [`DeadLettersError`].
    pub async fn batch(&self, pair: &QueuePair) -> Result<Vec<DeadLetter>, DeadLettersError> {
        let receive = self.sqs.client.receive_message();
        let receive = receive
            .queue_url(&pair.dead_url)
            .max_number_of_messages(BATCH_MAX)
            .visibility_timeout(HELD_SECONDS)
            .wait_time_seconds(0)
            .message_system_attribute_names(MessageSystemAttributeName::All);
        let received = receive.send().await;
        let received = received.map_err(|e| self.failed(pair.name, e))?;
        let messages = received.messages.unwrap_or_default();
        let read = |message: Message| letter(pair.name, message);
        Ok(messages.into_iter().filter_map(read).collect())
    }

    /// Puts a letter back into the dead letter queue, visible after this many milliseconds (rounded up to seconds, a
    /// minute at most).
    ///
    /// # Errors
    /// [`DeadLettersError`]; it becomes visible again by itself.
    pub async fn put_back(
        &self,
        letter: &DeadLetter,
        after_ms: u64,
    ) -> Result<(), DeadLettersError> {
        let seconds = i32::try_from(after_ms.div_ceil(1_000)).unwrap_or(HELD_SECONDS);
        let change = self.sqs.client.change_message_visibility();
        let change = change
            .queue_url(&self.pair(letter).dead_url)
            .receipt_handle(&letter.receipt)
            .visibility_timeout(seconds.min(HELD_SECONDS));
        match change.send().await {
            Ok(_) => Ok(()),
            Err(error) => Err(self.failed(letter.queue, error)),
        }
    }

    /// Resends it unchanged to its original queue, then deletes it from the dead letter queue.
    ///
    /// # Errors
    /// [`DeadLettersError`]; a repeat is harmless.
    pub async fn send_again(&self, letter: &DeadLetter) -> Result<(), DeadLettersError> {
        let again = again_id(&letter.group, &letter.id, letter.dead_since_ms);
        let send = self.sqs.client.send_message();
        let send = send
            .queue_url(&self.pair(letter).home_url)
            .message_body(&letter.text)
            .message_group_id(&letter.group)
            .message_deduplication_id(again);
        let sent = send.send().await;
        let sent = sent.map_err(|e| self.failed(letter.queue, e))?;
        if sent.message_id().is_none() {
            let error = self.sqs.unreadable("MessageId");
            let queue = letter.queue;
            return Err(DeadLettersError { queue, error });
        }
        self.remove(letter).await
    }

    /// Deletes it from the dead letter queue for good.
    ///
    /// # Errors
    /// [`DeadLettersError`].
    pub async fn remove(&self, letter: &DeadLetter) -> Result<(), DeadLettersError> {
        let delete = self.sqs.client.delete_message();
        let delete = delete.queue_url(&self.pair(letter).dead_url).receipt_handle(&letter.receipt);
        match delete.send().await {
            Ok(_) => Ok(()),
            Err(error) => Err(self.failed(letter.queue, error)),
        }
    }

    fn pair(&self, letter: &DeadLetter) -> &QueuePair {
        if self.pairs[0].name == letter.queue { &self.pairs[0] } else { &self.pairs[1] }
    }

    fn failed<E: IntoCallError>(&self, queue: &'static str, error: E) -> DeadLettersError {
        let error = self.sqs.failed(error);
        DeadLettersError { queue, error }
    }
}

/// `None` without a group: such a message was not sent by us, and cannot be resent unchanged.
fn letter(queue: &'static str, message: Message) -> Option<DeadLetter> {
    use MessageSystemAttributeName::{ApproximateReceiveCount, MessageGroupId, SentTimestamp};
    let attributes = message.attributes?;
    let text = message.body?;
    let sqs_id = message.message_id?;
    let body = Body::decode(&text);
    let id = body.as_ref().map_or(&sqs_id[..], Body::id).to_owned();
    Some(DeadLetter {
        queue,
        id,
        sqs_id,
        group: attributes.get(&MessageGroupId)?.clone(),
        receive: attributes.get(&ApproximateReceiveCount)?.parse().ok()?,
        dead_since_ms: attributes.get(&SentTimestamp)?.parse().ok()?,
        body,
        receipt: message.receipt_handle?,
        text,
    })
}
