//! Sends a message to a queue and receives it again, so that its record can be passed to a function by hand.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_sqs::types::MessageSystemAttributeName;

use super::{CALL_MS_MAX, Deployed, told};

/// Receive calls for the message, which may wait behind others.
const POLLS_MAX: u32 = 20;
/// Pause between two receive calls.
const POLL_PAUSE: Duration = Duration::from_millis(100);
/// Most messages that SQS returns at once.
const BATCH_MAX: i32 = 10;
/// Permissions that the credentials need.
const ACTIONS: &str =
    "sqs:SendMessage, sqs:ReceiveMessage and sqs:ChangeMessageVisibility on the stack's queues";

/// A delivery of a message.
#[derive(Debug, Clone)]
pub struct ReceivedMessage {
    /// SQS's message id.
    pub message_id: String,
    /// Identifies this delivery, and no later one.
    pub receipt_handle: String,
    /// The body as it was sent.
    pub body: String,
    /// MD5 of the body in hex, as Lambda's event has it.
    pub md5_of_body: String,
    /// System attributes by name, such as `ApproximateReceiveCount`.
    pub attributes: BTreeMap<String, String>,
}

impl Deployed {
    /// Sends a body to a FIFO queue and receives that message again, hidden for `held_seconds`. Other messages that are
    /// received are put back.
    ///
    /// # Errors
    /// What is missing and what to do; or that another consumer received it first.
    pub async fn send_and_receive(
        &self,
        queue_url: &str,
        body: &str,
        group: &str,
        id: &str,
        held_seconds: i32,
    ) -> Result<ReceivedMessage, String> {
        let sqs = self.aws.sqs(CALL_MS_MAX);
        let send = sqs.client.send_message();
        let send = send
            .queue_url(queue_url)
            .message_body(body)
            .message_group_id(group)
            .message_deduplication_id(id);
        let sent = send.send().await.map_err(|e| told(&sqs.failed(e), ACTIONS));
        let sent = sent?.message_id.unwrap_or_default();
        for _ in 0..POLLS_MAX {
            let receive = sqs.client.receive_message();
            let receive = receive
                .queue_url(queue_url)
                .max_number_of_messages(BATCH_MAX)
                .visibility_timeout(held_seconds)
                .wait_time_seconds(0)
                .message_system_attribute_names(MessageSystemAttributeName::All);
            let received = receive.send().await;
            let received = received.map_err(|e| told(&sqs.failed(e), ACTIONS))?;
            let mut found = None;
            for message in received.messages.unwrap_or_default() {
                if message.message_id() == Some(&sent) {
                    found = Some(message);
                    continue;
                }
                let back = sqs.client.change_message_visibility();
                let back = back
                    .queue_url(queue_url)
                    .set_receipt_handle(message.receipt_handle)
                    .visibility_timeout(0);
                let back = back.send().await;
                back.map_err(|e| told(&sqs.failed(e), ACTIONS))?;
            }
            if let Some(message) = found {
                let attributes = message.attributes.unwrap_or_default();
                let attributes = attributes.into_iter();
                return Ok(ReceivedMessage {
                    message_id: sent,
                    receipt_handle: message.receipt_handle.unwrap_or_default(),
                    body: message.body.unwrap_or_default(),
                    md5_of_body: message.md5_of_body.unwrap_or_default(),
                    attributes: attributes
                        .map(|(name, value)| (name.as_str().to_owned(), value))
                        .collect(),
                });
            }
            tokio::time::sleep(POLL_PAUSE).await;
        }
        Err(format!(
            "The message could not be received from {queue_url}: the stack's own worker was faster. Try again."
        ))
    }
}
