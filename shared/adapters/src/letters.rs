//! Dead letters, as who runs the stack looks at them: taken out for a moment, put back, or sent again.
//!
//! Promised: what is looked at is put back, and comes back by itself after [`HELD_SECONDS`] where that fails; a letter that
//! is sent again keeps its body and group, and leaves the dead ones only after its queue has taken it.
//! The queues hide a group while one of its letters is out, so of one thread at most ten are seen at once. Deliberately
//! absent: a judgement of what a letter would do (`bobbin_core::decide::replay`).

use bobbin_core::decide::replay::again_id;
use bobbin_core::ids::Ms;
use bobbin_core::message::Body;
use serde_json::{Value, json};

use crate::direct::{CallError, Direct, Service};

/// Seconds for which a letter that is looked at stays hidden.
pub const HELD_SECONDS: u64 = 60;
/// Letters of one queue that are looked at.
pub const LETTERS_MAX: usize = 200;
/// Most that SQS gives out at once.
const BATCH_MAX: usize = 10;
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
pub struct Letter {
    /// Name of the queue that it came from.
    pub queue: &'static str,
    /// SQS's own id of it.
    pub sqs_id: String,
    /// Its deduplication id: of a prompt, the id of its turn.
    pub id: String,
    /// Its message group: of what belongs to a thread, the thread.
    pub group: String,
    /// When it came to the dead ones.
    pub dead_since_ms: Ms,
    /// What it says; none where this version cannot read it.
    pub body: Option<Body>,
    text: String,
    receipt: String,
}

/// A call about dead letters failed.
#[derive(Debug, thiserror::Error)]
#[error("the {queue} queue's dead letters: {error}")]
pub struct LettersError {
    queue: &'static str,
    error: CallError,
}

/// The dead letters of a stack.
#[derive(Debug, Clone)]
pub struct Letters {
    aws: Direct,
    pairs: [Pair; 2],
}

impl Letters {
    /// Those of these queues.
    #[must_use]
    pub const fn new(aws: Direct, pairs: [Pair; 2]) -> Self {
        Self { aws, pairs }
    }

    /// Takes out the letters of both queues, at most [`LETTERS_MAX`] of each. Who takes them puts them back.
    ///
    /// # Errors
    /// [`LettersError`]; what was taken by then comes back by itself.
    pub async fn take(&self) -> Result<Vec<Letter>, LettersError> {
        let mut taken = Vec::new();
        for pair in &self.pairs {
            let before = taken.len();
            while taken.len() - before < LETTERS_MAX {
                let batch = self.batch(pair).await?;
                if batch.is_empty() {
                    break;
                }
                taken.extend(batch);
            }
        }
        Ok(taken)
    }

    async fn batch(&self, pair: &Pair) -> Result<Vec<Letter>, LettersError> {
        let request = json!({
            "QueueUrl": pair.dead_url,
            "MaxNumberOfMessages": BATCH_MAX,
            "VisibilityTimeout": HELD_SECONDS,
            "WaitTimeSeconds": 0,
            "MessageSystemAttributeNames": ["All"],
            "AttributeNames": ["All"],
        });
        let answer = self.call(pair.name, "ReceiveMessage", &request).await?;
        let messages = answer["Messages"].as_array();
        let read = |message: &Value| letter(pair.name, message);
        Ok(messages.into_iter().flatten().filter_map(read).collect())
    }

    /// Puts a letter back among the dead ones, where the worker finds it again.
    ///
    /// # Errors
    /// [`LettersError`]; it comes back by itself.
    pub async fn put_back(&self, letter: &Letter) -> Result<(), LettersError> {
        let request = json!({
            "QueueUrl": self.pair(letter).dead_url,
            "ReceiptHandle": letter.receipt,
            "VisibilityTimeout": 0,
        });
        let action = "ChangeMessageVisibility";
        self.call(letter.queue, action, &request).await.map(drop)
    }

    /// Sends it to the queue that it came from, as it was, then takes it from the dead ones.
    ///
    /// # Errors
    /// [`LettersError`]; a repeat is harmless.
    pub async fn send_again(&self, letter: &Letter) -> Result<(), LettersError> {
        let request = json!({
            "QueueUrl": self.pair(letter).home_url,
            "MessageBody": letter.text,
            "MessageGroupId": letter.group,
            "MessageDeduplicationId": again_id(&letter.group, &letter.id, letter.dead_since_ms),
        });
        self.call(letter.queue, "SendMessage", &request).await?;
        self.remove(letter).await
    }

    /// Takes it from the dead ones for good.
    ///
    /// # Errors
    /// [`LettersError`].
    pub async fn remove(&self, letter: &Letter) -> Result<(), LettersError> {
        let request = json!({
            "QueueUrl": self.pair(letter).dead_url,
            "ReceiptHandle": letter.receipt,
        });
        self.call(letter.queue, "DeleteMessage", &request)
            .await
            .map(drop)
    }

    fn pair(&self, letter: &Letter) -> &Pair {
        match self.pairs[0].name == letter.queue {
            true => &self.pairs[0],
            false => &self.pairs[1],
        }
    }

    async fn call(
        &self,
        queue: &'static str,
        action: &str,
        request: &Value,
    ) -> Result<Value, LettersError> {
        self.aws
            .call(Service::Queues, action, request, CALL_MS_MAX)
            .await
            .map_err(|error| LettersError { queue, error })
    }
}

/// One without its group or id was never sent by us, and cannot be sent again as it was.
fn letter(queue: &'static str, message: &Value) -> Option<Letter> {
    let attribute = |name: &str| message["Attributes"][name].as_str();
    let text = message["Body"].as_str()?.to_owned();
    Some(Letter {
        queue,
        sqs_id: message["MessageId"].as_str()?.to_owned(),
        id: attribute("MessageDeduplicationId")?.to_owned(),
        group: attribute("MessageGroupId")?.to_owned(),
        dead_since_ms: attribute("SentTimestamp")?.parse().ok()?,
        body: Body::decode(&text).ok(),
        receipt: message["ReceiptHandle"].as_str()?.to_owned(),
        text,
    })
}
