//! Sending messages: checks, deduplication, order.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::digest::{self, MessageAttribute};
use super::error::SqsError;
use super::queue::Queue;
use super::transaction::QueueTransaction;
use crate::limits;

/// A message to send, as in the JSON protocol; `id` is set in a batch only.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct MessageEntry {
    pub(crate) id: String,
    pub(crate) message_body: Option<String>,
    pub(crate) delay_seconds: Option<i64>,
    pub(crate) message_attributes: BTreeMap<String, MessageAttribute>,
    pub(crate) message_system_attributes: BTreeMap<String, MessageAttribute>,
    pub(crate) message_deduplication_id: Option<String>,
    pub(crate) message_group_id: Option<String>,
}

/// Answer to the sender.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct SentMessage {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) id: String,
    pub(crate) message_id: String,
    #[serde(rename = "MD5OfMessageBody")]
    pub(crate) md5_of_message_body: String,
    #[serde(rename = "MD5OfMessageAttributes", skip_serializing_if = "Option::is_none")]
    pub(crate) md5_of_message_attributes: Option<String>,
    #[serde(rename = "MD5OfMessageSystemAttributes", skip_serializing_if = "Option::is_none")]
    pub(crate) md5_of_system_attributes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sequence_number: Option<String>,
}

/// Attributes of a stored message, the sender's and the system's.
#[derive(Default, Deserialize, Serialize)]
pub(crate) struct StoredAttributes {
    pub(crate) message: BTreeMap<String, MessageAttribute>,
    pub(crate) system: BTreeMap<String, MessageAttribute>,
}

/// Size of an entry counted towards the limits.
pub(crate) fn size_bytes(entry: &MessageEntry) -> usize {
    let attributes: usize = entry
        .message_attributes
        .iter()
        .map(|(name, attribute)| name.len() + attribute.size_bytes())
        .sum();
    entry.message_body.as_ref().map_or(0, String::len) + attributes
}

/// Sends one message. A duplicate within the window gets the first one's answer and is not stored.
pub(crate) fn send(
    transaction: &mut QueueTransaction<'_>,
    queue: &Queue,
    entry: MessageEntry,
) -> Result<SentMessage, SqsError> {
    check(queue, &entry)?;
    let body = entry.message_body.clone().unwrap_or_default();
    let deduplication_id = deduplication_id(queue, &entry, &body)?;
    let mut sent = SentMessage {
        id: entry.id,
        message_id: uuid::Uuid::new_v4().to_string(),
        md5_of_message_body: digest::of_body(&body),
        md5_of_message_attributes: digest::of_attributes(&entry.message_attributes),
        md5_of_system_attributes: digest::of_attributes(&entry.message_system_attributes),
        sequence_number: None,
    };
    let scope = match (&entry.message_group_id, queue.deduplicates_per_group()) {
        (Some(group), true) => group.as_str(),
        _ => "",
    };
    if let Some(id) = &deduplication_id
        && let Some((message_id, sequence)) = earlier(transaction, queue, scope, id)?
    {
        sent.message_id = message_id;
        sent.sequence_number = Some(sequence_number(sequence));
        return Ok(sent);
    }

    let attributes = serde_json::to_string(&StoredAttributes {
        message: entry.message_attributes,
        system: entry.message_system_attributes,
    })
    .expect("attributes are always valid JSON");
    let delay_seconds = entry.delay_seconds.filter(|_| !queue.is_fifo());
    let delay_ms = delay_seconds.unwrap_or_else(|| queue.delay_seconds()) * 1000;
    transaction.sql
        .prepare_cached(
            "INSERT INTO messages (queue, id, body, attributes, group_id, deduplication_id, sent_ms, visible_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            queue.name,
            sent.message_id,
            body,
            attributes,
            entry.message_group_id,
            deduplication_id,
            transaction.now_ms,
            transaction.now_ms + delay_ms
        ])?;
    if let Some(id) = &deduplication_id {
        let sequence = transaction.sql.last_insert_rowid();
        remember(transaction, queue, scope, id, &sent.message_id, sequence)?;
        sent.sequence_number = Some(sequence_number(sequence));
    }
    transaction.woken.insert(queue.name.clone());
    Ok(sent)
}

/// Records a deduplication id with the message that answers its duplicates.
fn remember(
    transaction: &QueueTransaction<'_>,
    queue: &Queue,
    scope: &str,
    id: &str,
    message_id: &str,
    sequence: i64,
) -> Result<(), SqsError> {
    let expires_ms = transaction.now_ms + limits::DEDUPLICATION_WINDOW_MS;
    transaction.sql
        .prepare_cached(
            "INSERT OR REPLACE INTO deduplication (queue, scope, deduplication_id, message_id, sequence, expires_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![queue.name, scope, id, message_id, sequence, expires_ms])?;
    Ok(())
}

/// Sequence number of a FIFO message: twenty digits, rising.
pub(crate) fn sequence_number(sequence: i64) -> String {
    let base: i128 = 18_870_000_000_000_000_000;
    (base + i128::from(sequence) * 256).to_string()
}

fn earlier(
    transaction: &QueueTransaction<'_>,
    queue: &Queue,
    scope: &str,
    id: &str,
) -> Result<Option<(String, i64)>, SqsError> {
    transaction
        .sql
        .prepare_cached("DELETE FROM deduplication WHERE queue = ?1 AND expires_ms <= ?2")?
        .execute(params![queue.name, transaction.now_ms])?;
    Ok(transaction
        .sql
        .prepare_cached(
            "SELECT message_id, sequence FROM deduplication
             WHERE queue = ?1 AND scope = ?2 AND deduplication_id = ?3",
        )?
        .query_row(params![queue.name, scope, id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?)
}

fn deduplication_id(
    queue: &Queue,
    entry: &MessageEntry,
    body: &str,
) -> Result<Option<String>, SqsError> {
    if !queue.is_fifo() {
        return Ok(None);
    }
    match &entry.message_deduplication_id {
        Some(id) => Ok(Some(id.clone())),
        None if queue.deduplicates_by_content() => {
            Ok(Some(hex::encode(Sha256::digest(body.as_bytes()))))
        }
        None => Err(SqsError::parameter(
            "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly",
        )),
    }
}

fn check(queue: &Queue, entry: &MessageEntry) -> Result<(), SqsError> {
    let body = entry.message_body.as_deref().unwrap_or_default();
    if body.is_empty() {
        return Err(SqsError::missing("MessageBody"));
    }
    let bytes_max = queue.message_bytes_max();
    if size_bytes(entry) > bytes_max {
        return Err(SqsError::parameter(format!(
            "One or more parameters are invalid. Reason: Message must be shorter than {bytes_max} bytes."
        )));
    }
    if !body.chars().all(is_allowed) {
        return Err(SqsError::contents());
    }
    check_attributes(entry)?;
    if let Some(seconds) = entry.delay_seconds {
        if queue.is_fifo() && seconds != 0 {
            return Err(SqsError::value(
                "DelaySeconds",
                seconds,
                "The request include parameter that is not valid for this queue type.",
            ));
        }
        if !(0..=900).contains(&seconds) {
            return Err(SqsError::value(
                "DelaySeconds",
                seconds,
                "DelaySeconds must be >= 0 and <= 900.",
            ));
        }
    }
    if queue.is_fifo() && entry.message_group_id.is_none() {
        return Err(SqsError::missing("MessageGroupId"));
    }
    if !queue.is_fifo()
        && let Some(id) = &entry.message_deduplication_id
    {
        return Err(SqsError::value(
            "MessageDeduplicationId",
            id,
            "The request include parameter that is not valid for this queue type.",
        ));
    }
    check_id("MessageGroupId", entry.message_group_id.as_deref())?;
    check_id("MessageDeduplicationId", entry.message_deduplication_id.as_deref())
}

fn check_attributes(entry: &MessageEntry) -> Result<(), SqsError> {
    if entry.message_attributes.len() > limits::MESSAGE_ATTRIBUTES_MAX {
        return Err(SqsError::parameter(format!(
            "Number of message attributes [{}] exceeds the allowed maximum [{}].",
            entry.message_attributes.len(),
            limits::MESSAGE_ATTRIBUTES_MAX
        )));
    }
    for (name, attribute) in &entry.message_attributes {
        check_attribute(name, attribute)?;
    }
    for (name, attribute) in &entry.message_system_attributes {
        if name != "AWSTraceHeader" {
            return Err(SqsError::parameter(format!(
                "Message system attribute name '{name}' is not valid; AWSTraceHeader is the only one."
            )));
        }
        if attribute.data_type != "String" || attribute.string_value.is_none() {
            return Err(SqsError::parameter(
                "The message system attribute 'AWSTraceHeader' must have a value of type String.",
            ));
        }
    }
    Ok(())
}

fn check_attribute(name: &str, attribute: &MessageAttribute) -> Result<(), SqsError> {
    let lower = name.to_ascii_lowercase();
    let is_named_well = (1..=limits::ATTRIBUTE_NAME_CHARACTERS_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
        && !name.starts_with('.')
        && !name.ends_with('.')
        && !name.contains("..")
        && !lower.starts_with("aws.")
        && !lower.starts_with("amazon.");
    if !is_named_well {
        return Err(SqsError::parameter(format!(
            "Message (user) attribute name '{name}' is not valid: letters, digits, underscores, hyphens and single periods within it, 1 to 256, and no prefix AWS. or Amazon."
        )));
    }
    let kind = attribute.data_type.split('.').next().unwrap_or_default();
    let text = attribute.string_value.as_deref().unwrap_or_default();
    let has_value = match kind {
        "String" => !text.is_empty() && text.chars().all(is_allowed),
        "Number" => is_number(text),
        "Binary" => attribute.bytes().is_some_and(|bytes| !bytes.is_empty()),
        _ => false,
    };
    if has_value && attribute.data_type.len() <= limits::ATTRIBUTE_NAME_CHARACTERS_MAX {
        Ok(())
    } else {
        Err(SqsError::parameter(format!(
            "The message attribute '{name}' must have a type of String, Number or Binary and a non-empty value of it."
        )))
    }
}

/// Whether it is a decimal number, with optional sign, fraction and exponent.
fn is_number(text: &str) -> bool {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    is_plain && text.parse::<f64>().is_ok()
}

fn check_id(parameter: &str, id: Option<&str>) -> Result<(), SqsError> {
    let Some(id) = id else { return Ok(()) };
    let fits = (1..=limits::MESSAGE_ID_CHARACTERS_MAX).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_graphic());
    if fits {
        Ok(())
    } else {
        Err(SqsError::value(
            parameter,
            id,
            &format!(
                "{parameter} can only include alphanumeric and punctuation characters. 1 to 128 in length."
            ),
        ))
    }
}

/// Whether SQS allows the character in a body.
fn is_allowed(character: char) -> bool {
    matches!(character, '\u{9}' | '\u{A}' | '\u{D}')
        || ('\u{20}'..='\u{D7FF}').contains(&character)
        || ('\u{E000}'..='\u{FFFD}').contains(&character)
        || character >= '\u{10000}'
}
