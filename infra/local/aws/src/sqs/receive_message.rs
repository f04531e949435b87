//! `ReceiveMessage`: parameters, long poll, and the attributes of each message.

use std::collections::BTreeMap;

use axum::body::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::digest::{self, MessageAttribute};
use super::error::SqsError;
use super::queue::Queue;
use super::receive::{self, ReceiveOptions, Received};
use super::service::Sqs;
use super::stored;
use super::wire::{SqsResult, name_of_url, parse, unless_empty};
use crate::limits;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ReceiveMessage {
    #[serde(default)]
    queue_url: String,
    #[serde(default)]
    attribute_names: Vec<String>,
    #[serde(default)]
    message_system_attribute_names: Vec<String>,
    #[serde(default)]
    message_attribute_names: Vec<String>,
    max_number_of_messages: Option<i64>,
    visibility_timeout: Option<i64>,
    wait_time_seconds: Option<i64>,
}

/// System attributes that a receive can request.
const SYSTEM_ATTRIBUTES: [&str; 10] = [
    "All",
    "SenderId",
    "SentTimestamp",
    "ApproximateReceiveCount",
    "ApproximateFirstReceiveTimestamp",
    "SequenceNumber",
    "MessageDeduplicationId",
    "MessageGroupId",
    "AWSTraceHeader",
    "DeadLetterQueueSourceArn",
];

impl Sqs {
    pub(super) async fn receive_message(&self, body: &Bytes) -> SqsResult {
        let request: ReceiveMessage = parse(body)?;
        let name = name_of_url(&request.queue_url)?;
        let queue = self.transaction(|transaction| stored::find(transaction, name))?;
        let (options, wait_seconds) = options(&request, &queue)?;
        let deadline_ms = self.clock.now_ms() + wait_seconds * 1000;
        let mut changes = self.watch(name);
        loop {
            let received = self.transaction(|transaction| {
                let queue = stored::find(transaction, name)?;
                receive::receive(transaction, &queue, options)
            })?;
            let is_over = self.clock.now_ms() >= deadline_ms || self.stopping.is_cancelled();
            if received.is_empty() && !is_over {
                tokio::select! {
                    () = self.changed(name, &mut changes) => {}
                    () = self.clock.sleep_until_ms(deadline_ms) => {}
                }
                continue;
            }
            let messages: Vec<Value> =
                received.iter().map(|message| reported(message, &request)).collect();
            return Ok(unless_empty("Messages", json!(messages)));
        }
    }
}

fn options(request: &ReceiveMessage, queue: &Queue) -> Result<(ReceiveOptions, i64), SqsError> {
    let asked = request.attribute_names.iter().chain(&request.message_system_attribute_names);
    if let Some(unknown) = { asked }.find(|name| !SYSTEM_ATTRIBUTES.contains(&name.as_str())) {
        return Err(SqsError::attribute_name(unknown));
    }
    let in_range = |parameter: &str, number: i64, min: i64, max: i64| {
        if (min..=max).contains(&number) {
            Ok(number)
        } else {
            Err(SqsError::value(
                parameter,
                number,
                &format!("Must be between {min} and {max}, if provided."),
            ))
        }
    };
    let count =
        in_range("MaxNumberOfMessages", request.max_number_of_messages.unwrap_or(1), 1, 10)?;
    let visibility_seconds = in_range(
        "VisibilityTimeout",
        request.visibility_timeout.unwrap_or_else(|| queue.visibility_seconds()),
        0,
        limits::VISIBILITY_SECONDS_MAX,
    )?;
    let wait_seconds = in_range(
        "WaitTimeSeconds",
        request.wait_time_seconds.unwrap_or_else(|| queue.wait_seconds()),
        0,
        limits::WAIT_SECONDS_MAX,
    )?;
    let options = ReceiveOptions {
        count_max: usize::try_from(count).unwrap_or(1),
        visibility_seconds,
        for_function: false,
    };
    Ok((options, wait_seconds))
}

fn reported(message: &Received, request: &ReceiveMessage) -> Value {
    let mut message_json = json!({
        "MessageId": message.id,
        "ReceiptHandle": message.receipt,
        "MD5OfBody": digest::of_body(&message.body),
        "Body": message.body,
    });
    let asked = |name: &str| {
        request
            .attribute_names
            .iter()
            .chain(&request.message_system_attribute_names)
            .any(|asked| asked == "All" || asked == name)
    };
    let system: BTreeMap<_, _> =
        message.system_attributes.iter().filter(|(name, _)| asked(name)).collect();
    if !system.is_empty() {
        message_json["Attributes"] = json!(system);
    }
    let attributes: BTreeMap<String, MessageAttribute> = message
        .message_attributes
        .iter()
        .filter(|(name, _)| is_asked(name, &request.message_attribute_names))
        .map(|(name, attribute)| (name.clone(), attribute.clone()))
        .collect();
    if let Some(md5) = digest::of_attributes(&attributes) {
        message_json["MD5OfMessageAttributes"] = json!(md5);
        message_json["MessageAttributes"] = json!(attributes);
    }
    message_json
}

fn is_asked(name: &str, asked: &[String]) -> bool {
    asked.iter().any(|asked| {
        let prefix = asked.strip_suffix(".*");
        asked == "All"
            || asked == name
            || prefix.is_some_and(|prefix| prefix.is_empty() || name.starts_with(prefix))
    })
}
