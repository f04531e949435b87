//! Dead letters, as the worker and who runs the stack look at them: taken out for a moment, put back, taken away, or sent
//! again.
//!
//! Promised: what is taken out and neither put back nor taken away comes back by itself after [`HELD_SECONDS`]; a letter that
//! is sent again keeps its body and group, and leaves the dead ones only after its queue has taken it.
//! The queues hide a group while one of its letters is out, so of one thread at most ten are seen at once. Deliberately
//! absent: a judgement of what a letter would do (`bobbin_core::protocol::decide::replay`).

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName};
use bobbin_core::base::ids::Ms;
use bobbin_core::protocol::decide::replay::again_id;
use bobbin_core::records::message::Body;
use bobbin_core::schema::Unreadable;

use crate::aws::{Aws, Bounded, CallError, IntoCallError};
use crate::config::Config;

/// Seconds for which a letter that is looked at stays hidden.
pub const HELD_SECONDS: i32 = 60;
/// Dead letters of one queue that are looked at.
pub const DEAD_LETTERS_MAX: usize = 200;
/// Most that SQS gives out at once.
const BATCH_MAX: i32 = 10;
/// Longest wait for a call.
const CALL_MS_MAX: u64 = 10_000;

/// One pair of queues: what is worked on, and its dead letters.
#[derive(Debug, Clone)]
pub struct Pair {
    /// Its name, for people: `messages` or `control`.
    pub name: &'static str,
    /// Address of the queue that is worked on.
    pub home_url: String,
    /// Address of the queue of its dead letters.
    pub dead_url: String,
}

/// A dead letter in hand.
#[derive(Clone)]
pub struct DeadLetter {
    /// Name of the queue that it came from.
    pub queue: &'static str,
    /// SQS's own id of it.
    pub sqs_id: String,
    /// The id in its body: of a prompt, the id of its turn. Of one that this version cannot read SQS's own id, which the
    /// queue of dead letters makes its deduplication id (SQS developer guide, "Using dead-letter queues").
    pub id: String,
    /// Its message group: of what belongs to a thread, the thread.
    pub group: String,
    /// When it came to the dead ones.
    pub dead_since_ms: Ms,
    /// How often it was taken out of the dead ones, this time included.
    pub receive: u32,
    /// What it says, where this version can read it.
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
pub struct DeadLetters {
    sqs: Bounded<Client>,
    pairs: [Pair; 2],
}

impl DeadLetters {
    /// Those of these queues.
    #[must_use]
    pub fn new(aws: &Aws, pairs: [Pair; 2]) -> Self {
        let sqs = aws.sqs(CALL_MS_MAX);
        Self { sqs, pairs }
    }

    /// Those of the stack that the function is of.
    #[must_use]
    pub fn of(aws: &Aws, config: &Config) -> Self {
        let pair = |name, home_url: &String, dead_url: &String| Pair {
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

    /// The queues that they are of.
    #[must_use]
    pub const fn pairs(&self) -> &[Pair; 2] {
        &self.pairs
    }

    /// Takes out the letters of both queues, at most [`DEAD_LETTERS_MAX`] of each. Who takes them puts them back.
    ///
    /// # Errors
    /// [`DeadLettersError`]; what was taken by then comes back by itself.
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

    /// Takes out some letters of a queue, ten at most. Who takes them puts them back, or takes them away.
    ///
    /// # Errors
    /// [`DeadLettersError`].
    pub async fn batch(&self, pair: &Pair) -> Result<Vec<DeadLetter>, DeadLettersError> {
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

    /// Puts a letter back among the dead ones, where it is found again after so many milliseconds (rounded up to seconds, a
    /// minute at most).
    ///
    /// # Errors
    /// [`DeadLettersError`]; it comes back by itself.
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

    /// Sends it to the queue that it came from, as it was, then takes it from the dead ones.
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

    /// Takes it from the dead ones for good.
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

    fn pair(&self, letter: &DeadLetter) -> &Pair {
        if self.pairs[0].name == letter.queue { &self.pairs[0] } else { &self.pairs[1] }
    }

    fn failed<E: IntoCallError>(&self, queue: &'static str, error: E) -> DeadLettersError {
        let error = self.sqs.failed(error);
        DeadLettersError { queue, error }
    }
}

/// One without its group was never sent by us, and cannot be sent again as it was.
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
