//! A queue and its attributes: their allowed values and effects.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error::SqsError;
use crate::limits;

/// A queue with its attributes.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) name: String,
    pub(super) attributes: BTreeMap<String, String>,
    pub(crate) created_ms: i64,
    pub(crate) modified_ms: i64,
    pub(crate) purged_ms: Option<i64>,
}

/// Redrive policy: the dead-letter queue and the receive limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Redrive {
    pub(crate) dead_queue: String,
    pub(crate) receives_max: i64,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct RedrivePolicy {
    dead_letter_target_arn: String,
    #[serde(deserialize_with = "number_or_text")]
    max_receive_count: i64,
}

fn number_or_text<'de, D: serde::Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Number(i64),
        Text(String),
    }
    match Either::deserialize(from)? {
        Either::Number(number) => Ok(number),
        Either::Text(text) => text.parse().map_err(serde::de::Error::custom),
    }
}

/// Attribute, default, minimum and maximum.
const NUMBERS: [(&str, i64, i64, i64); 5] = [
    ("DelaySeconds", 0, 0, 900),
    (
        "MaximumMessageSize",
        limits::MESSAGE_BYTES_MAX as i64,
        1024,
        limits::MESSAGE_BYTES_MAX as i64,
    ),
    ("MessageRetentionPeriod", 345_600, 60, 1_209_600),
    ("ReceiveMessageWaitTimeSeconds", 0, 0, limits::WAIT_SECONDS_MAX),
    ("VisibilityTimeout", 30, 0, limits::VISIBILITY_SECONDS_MAX),
];

/// Stored and reported, without effect on a laptop.
const ENCRYPTED: &str = "SqsManagedSseEnabled";

const FIFO_ONLY: [&str; 3] =
    ["ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit"];

impl Queue {
    pub(crate) fn is_fifo(&self) -> bool {
        self.name.ends_with(".fifo")
    }

    fn number(&self, name: &str) -> i64 {
        let default = NUMBERS
            .iter()
            .find(|(known, ..)| *known == name)
            .map_or(0, |(_, default, ..)| *default);
        self.attributes.get(name).and_then(|value| value.parse().ok()).unwrap_or(default)
    }

    pub(crate) fn visibility_seconds(&self) -> i64 {
        self.number("VisibilityTimeout")
    }

    pub(crate) fn delay_seconds(&self) -> i64 {
        self.number("DelaySeconds")
    }

    pub(crate) fn wait_seconds(&self) -> i64 {
        self.number("ReceiveMessageWaitTimeSeconds")
    }

    pub(crate) fn retention_ms(&self) -> i64 {
        self.number("MessageRetentionPeriod") * 1000
    }

    pub(crate) fn message_bytes_max(&self) -> usize {
        usize::try_from(self.number("MaximumMessageSize")).unwrap_or(limits::MESSAGE_BYTES_MAX)
    }

    pub(crate) fn deduplicates_by_content(&self) -> bool {
        self.attributes.get("ContentBasedDeduplication").is_some_and(|value| value == "true")
    }

    /// Whether deduplication ids count per group.
    pub(crate) fn deduplicates_per_group(&self) -> bool {
        self.attributes.get("DeduplicationScope").is_some_and(|value| value == "messageGroup")
    }

    pub(crate) fn redrive(&self) -> Option<Redrive> {
        redrive(&self.attributes)
    }

    /// Attributes as in `GetQueueAttributes`, without counts.
    pub(crate) fn reported_attributes(&self, arn: &str) -> BTreeMap<String, String> {
        let mut reported = self.attributes.clone();
        for (name, default, ..) in NUMBERS {
            reported.entry(name.to_owned()).or_insert_with(|| default.to_string());
        }
        reported.entry(ENCRYPTED.to_owned()).or_insert_with(|| "true".to_owned());
        if self.is_fifo() {
            reported.insert("FifoQueue".to_owned(), "true".to_owned());
            for (name, default) in [
                ("ContentBasedDeduplication", "false"),
                ("DeduplicationScope", "queue"),
                ("FifoThroughputLimit", "perQueue"),
            ] {
                reported.entry(name.to_owned()).or_insert_with(|| default.to_owned());
            }
        }
        reported.insert("QueueArn".to_owned(), arn.to_owned());
        reported.insert("CreatedTimestamp".to_owned(), (self.created_ms / 1000).to_string());
        reported.insert("LastModifiedTimestamp".to_owned(), (self.modified_ms / 1000).to_string());
        reported
    }
}

/// Queue name in an ARN.
pub(crate) fn name_of_arn(arn: &str) -> Option<&str> {
    let parts: Vec<&str> = arn.split(':').collect();
    match parts.as_slice() {
        ["arn", _, "sqs", _, _, name] if !name.is_empty() => Some(name),
        _ => None,
    }
}

/// The redrive policy in a queue's attributes.
pub(super) fn redrive(attributes: &BTreeMap<String, String>) -> Option<Redrive> {
    let policy: RedrivePolicy = serde_json::from_str(attributes.get("RedrivePolicy")?).ok()?;
    Some(Redrive {
        dead_queue: name_of_arn(&policy.dead_letter_target_arn)?.to_owned(),
        receives_max: policy.max_receive_count,
    })
}

/// Refuses an invalid name for a queue with these attributes.
pub(super) fn check_name(
    name: &str,
    attributes: &BTreeMap<String, String>,
) -> Result<(), SqsError> {
    let stem = name.strip_suffix(".fifo").unwrap_or(name);
    let fits = !stem.is_empty()
        && name.len() <= limits::QUEUE_NAME_CHARACTERS_MAX
        && stem.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if !fits {
        return Err(SqsError::parameter(
            "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length",
        ));
    }
    let fifo = attributes.get("FifoQueue").map(String::as_str);
    match (name.ends_with(".fifo"), fifo) {
        (true, Some("true")) | (false, None) => Ok(()),
        (false, Some("true")) | (true, _) => Err(SqsError::parameter(
            "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo suffix and be 1 to 80 in length",
        )),
        (false, Some(_)) => Err(SqsError::attribute_name("FifoQueue")),
    }
}

/// Refuses attributes that AWS refuses, without checking other queues.
pub(super) fn check_attributes(
    name: &str,
    attributes: &BTreeMap<String, String>,
) -> Result<(), SqsError> {
    let is_fifo = name.ends_with(".fifo");
    for (attribute, value) in attributes {
        let attribute = attribute.as_str();
        if let Some((_, _, min, max)) = NUMBERS.iter().find(|(known, ..)| *known == attribute) {
            let number: Option<i64> = value.parse().ok();
            if !number.is_some_and(|number| (*min..=*max).contains(&number)) {
                return Err(SqsError::attribute_value(
                    attribute,
                    &format!("Must be a number between {min} and {max}."),
                ));
            }
        } else if FIFO_ONLY.contains(&attribute) {
            check_fifo_attribute(is_fifo, attribute, value)?;
        } else if attribute == "RedrivePolicy" {
            check_redrive(name, value)?;
        } else if attribute != "FifoQueue" && attribute != ENCRYPTED {
            return Err(SqsError::attribute_name(attribute));
        }
    }
    let per_group =
        attributes.get("FifoThroughputLimit").is_some_and(|value| value == "perMessageGroupId");
    let queue_scope = attributes.get("DeduplicationScope").is_some_and(|value| value == "queue");
    if per_group && queue_scope {
        return Err(SqsError::attribute_value(
            "FifoThroughputLimit",
            "perMessageGroupId is only allowed with a DeduplicationScope of messageGroup.",
        ));
    }
    Ok(())
}

fn check_fifo_attribute(is_fifo: bool, attribute: &str, value: &str) -> Result<(), SqsError> {
    if !is_fifo {
        return Err(SqsError::attribute_name(attribute));
    }
    let allowed: &[&str] = match attribute {
        "DeduplicationScope" => &["messageGroup", "queue"],
        "FifoThroughputLimit" => &["perQueue", "perMessageGroupId"],
        _ => &["true", "false"],
    };
    if allowed.contains(&value) {
        Ok(())
    } else {
        Err(SqsError::attribute_value(
            attribute,
            &format!("Must be one of {}.", allowed.join(", ")),
        ))
    }
}

fn check_redrive(name: &str, value: &str) -> Result<(), SqsError> {
    if value.is_empty() {
        return Ok(());
    }
    let refuse = |reason: &str| SqsError::attribute_value("RedrivePolicy", reason);
    let policy: RedrivePolicy = serde_json::from_str(value)
        .map_err(|_| refuse("It needs deadLetterTargetArn and maxReceiveCount as JSON."))?;
    if !(1..=1000).contains(&policy.max_receive_count) {
        return Err(refuse("maxReceiveCount must be between 1 and 1000."));
    }
    let dead_queue = name_of_arn(&policy.dead_letter_target_arn)
        .ok_or_else(|| refuse("deadLetterTargetArn is not the ARN of a queue."))?;
    if dead_queue.ends_with(".fifo") != name.ends_with(".fifo") {
        return Err(refuse("Dead-letter queue must be same type of queue as the source."));
    }
    Ok(())
}
