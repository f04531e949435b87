//! SQS: send accepted work, give a message back, keep it invisible while it is worked on.

use bobbin_core::message::{Body, Message};
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::config::Config;
use crate::direct::{Direct, Service};
use crate::letters::Pair;

/// A send must be over within this time: ingress has three seconds in all.
pub const SEND_MS_MAX: u64 = 2_000;
/// A batch of sends must be over within this time.
pub const BATCH_MS_MAX: u64 = 5_000;
/// Messages of one batch: the queue takes no more.
pub const BATCH_MAX: usize = 10;
/// Longest wait for a change of the visibility, which the next heartbeat repeats.
pub const VISIBILITY_MS_MAX: u64 = 10_000;
/// Longest that a queue hides a message.
const VISIBILITY_SECONDS_MAX: u64 = 43_200;

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

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct SendMessage<'a> {
    queue_url: &'a str,
    message_body: String,
    message_group_id: String,
    message_deduplication_id: &'a str,
}

/// What travels on which queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Work, a thread's in its order.
    Messages,
    /// Words that must not wait behind a run.
    Control,
}

/// The two queues.
#[derive(Debug, Clone)]
pub struct Queues {
    aws: Direct,
    messages: String,
    control: String,
    dead: [String; 2],
}

impl Queues {
    /// The queues that the configuration names.
    #[must_use]
    pub fn new(aws: Direct, config: &Config) -> Self {
        Self {
            aws,
            messages: config.messages_queue_url.clone(),
            control: config.control_queue_url.clone(),
            dead: config.dead_queue_urls.clone(),
        }
    }

    /// Those of a stack that is looked at from outside.
    #[must_use]
    pub fn of(aws: Direct, [messages, control]: &[Pair; 2]) -> Self {
        Self {
            aws,
            messages: messages.home_url.clone(),
            control: control.home_url.clone(),
            dead: [messages.dead_url.clone(), control.dead_url.clone()],
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
        let request = SendMessage {
            queue_url: url,
            message_body: body.encode(),
            message_group_id: body.group(),
            message_deduplication_id: body.id(),
        };
        // That it answers says all.
        let sent =
            self.aws
                .typed::<IgnoredAny>(Service::Queues, "SendMessage", &request, SEND_MS_MAX);
        sent.await.map_err(|e| QueueError::Send(e.to_string()))?;
        Ok(())
    }

    /// Sends messages to their threads, at most [`BATCH_MAX`], in one call. Each is taken or refused by itself: the answers
    /// are in their order.
    pub async fn send_messages(&self, messages: Vec<Message>) -> Vec<Result<(), QueueError>> {
        let bodies: Vec<Body> = messages.into_iter().map(Body::Message).collect();
        let entry = |(place, body): (usize, &Body)| {
            json!({
                "Id": place.to_string(),
                "MessageBody": body.encode(),
                "MessageGroupId": body.group(),
                "MessageDeduplicationId": body.id(),
            })
        };
        let entries: Vec<Value> = bodies.iter().enumerate().map(entry).collect();
        let request = json!({"QueueUrl": self.messages, "Entries": entries});
        let answer = self
            .aws
            .call(Service::Queues, "SendMessageBatch", &request, BATCH_MS_MAX)
            .await
            .map_err(|e| e.to_string());
        let outcome = |place: usize| {
            let answer = answer.as_ref().map_err(|e| QueueError::Send(e.clone()))?;
            taken(answer, &place.to_string()).map_err(QueueError::Send)
        };
        (0..bodies.len()).map(outcome).collect()
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

    /// Which of the two lanes it is; none: neither.
    #[must_use]
    pub fn lane(&self, url: &str) -> Option<Lane> {
        match url {
            url if url == self.messages => Some(Lane::Messages),
            url if url == self.control => Some(Lane::Control),
            _ => None,
        }
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
        let request = json!({
            "QueueUrl": url,
            "ReceiptHandle": receipt,
            "VisibilityTimeout": ms.div_ceil(1000).min(VISIBILITY_SECONDS_MAX),
        });
        let action = "ChangeMessageVisibility";
        self.aws
            .call(Service::Queues, action, &request, VISIBILITY_MS_MAX)
            .await
            .map_err(|e| QueueError::Visibility(e.to_string()))?;
        Ok(())
    }
}

/// Whether the queue took the entry with this id; else why not.
fn taken(answer: &Value, id: &str) -> Result<(), String> {
    let named = |list: &str| {
        let entries = answer[list].as_array()?;
        entries.iter().find(|entry| entry["Id"] == id)
    };
    if named("Successful").is_some() {
        return Ok(());
    }
    let refused = named("Failed").map(|entry| {
        let word = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        format!("{}: {}", word("Code"), word("Message"))
    });
    Err(refused.unwrap_or_else(|| "the answer does not name the message".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_batch_each_message_is_taken_or_refused_by_itself() {
        let answer = json!({
            "Successful": [{"Id": "0", "MessageId": "m"}],
            "Failed": [{"Id": "1", "Code": "InternalError", "Message": "later", "SenderFault": false}],
        });
        assert_eq!(taken(&answer, "0"), Ok(()));
        assert_eq!(taken(&answer, "1"), Err("InternalError: later".to_owned()));
        assert_eq!(
            taken(&answer, "2"),
            Err("the answer does not name the message".to_owned()),
            "silence is no success"
        );
    }
}
