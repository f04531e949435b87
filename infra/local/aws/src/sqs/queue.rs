//! Queues and their attributes.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};

use super::{SqsError, Step};
use crate::limits;

/// A queue with the attributes that were set on it.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) name: String,
    attributes: BTreeMap<String, String>,
    pub(crate) created_ms: i64,
    pub(crate) modified_ms: i64,
    pub(crate) purged_ms: Option<i64>,
}

/// Where messages go that were received too often.
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

/// Attribute, default, smallest and largest value.
const NUMBERS: [(&str, i64, i64, i64); 6] = [
    ("DelaySeconds", 0, 0, 900),
    (
        "MaximumMessageSize",
        limits::MESSAGE_BYTES_MAX as i64,
        1024,
        limits::MESSAGE_BYTES_MAX as i64,
    ),
    ("MessageRetentionPeriod", 345_600, 60, 1_209_600),
    (
        "ReceiveMessageWaitTimeSeconds",
        0,
        0,
        limits::WAIT_SECONDS_MAX,
    ),
    ("VisibilityTimeout", 30, 0, limits::VISIBILITY_SECONDS_MAX),
    ("KmsDataKeyReusePeriodSeconds", 300, 60, 86_400),
];

/// Attributes that are kept and told, and have no effect on a laptop.
const KEPT: [&str; 5] = [
    "Policy",
    "KmsMasterKeyId",
    "KmsDataKeyReusePeriodSeconds",
    "SqsManagedSseEnabled",
    "RedriveAllowPolicy",
];

const FIFO_ONLY: [&str; 3] = [
    "ContentBasedDeduplication",
    "DeduplicationScope",
    "FifoThroughputLimit",
];

impl Queue {
    pub(crate) fn is_fifo(&self) -> bool {
        self.name.ends_with(".fifo")
    }

    fn number(&self, name: &str) -> i64 {
        let default = NUMBERS
            .iter()
            .find(|(known, ..)| *known == name)
            .map_or(0, |(_, default, ..)| *default);
        self.attributes
            .get(name)
            .and_then(|value| value.parse().ok())
            .unwrap_or(default)
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
        self.attributes
            .get("ContentBasedDeduplication")
            .is_some_and(|value| value == "true")
    }

    /// Whether a deduplication id counts within its group only.
    pub(crate) fn deduplicates_per_group(&self) -> bool {
        self.attributes
            .get("DeduplicationScope")
            .is_some_and(|value| value == "messageGroup")
    }

    pub(crate) fn redrive(&self) -> Option<Redrive> {
        let policy: RedrivePolicy =
            serde_json::from_str(self.attributes.get("RedrivePolicy")?).ok()?;
        Some(Redrive {
            dead_queue: name_of_arn(&policy.dead_letter_target_arn)?.to_owned(),
            receives_max: policy.max_receive_count,
        })
    }

    /// Attributes as `GetQueueAttributes` tells them, counts excluded.
    pub(crate) fn told_attributes(&self, arn: &str) -> BTreeMap<String, String> {
        let mut told = self.attributes.clone();
        for (name, default, ..) in NUMBERS {
            if !KEPT.contains(&name) {
                told.entry(name.to_owned())
                    .or_insert_with(|| default.to_string());
            }
        }
        told.entry("SqsManagedSseEnabled".to_owned())
            .or_insert_with(|| "true".to_owned());
        if self.is_fifo() {
            told.insert("FifoQueue".to_owned(), "true".to_owned());
            for (name, default) in [
                ("ContentBasedDeduplication", "false"),
                ("DeduplicationScope", "queue"),
                ("FifoThroughputLimit", "perQueue"),
            ] {
                told.entry(name.to_owned())
                    .or_insert_with(|| default.to_owned());
            }
        }
        told.insert("QueueArn".to_owned(), arn.to_owned());
        told.insert(
            "CreatedTimestamp".to_owned(),
            (self.created_ms / 1000).to_string(),
        );
        told.insert(
            "LastModifiedTimestamp".to_owned(),
            (self.modified_ms / 1000).to_string(),
        );
        told
    }
}

/// The queue's name in an ARN of a queue.
pub(crate) fn name_of_arn(arn: &str) -> Option<&str> {
    let parts: Vec<&str> = arn.split(':').collect();
    match parts.as_slice() {
        ["arn", _, "sqs", _, _, name] if !name.is_empty() => Some(name),
        _ => None,
    }
}

/// Reads a queue by its name.
pub(crate) fn find(step: &Step<'_>, name: &str) -> Result<Queue, SqsError> {
    find_optional(step, name)?.ok_or_else(SqsError::no_such_queue)
}

fn find_optional(step: &Step<'_>, name: &str) -> Result<Option<Queue>, SqsError> {
    Ok(step
        .tx
        .prepare_cached(
            "SELECT name, attributes, created_ms, modified_ms, purged_ms FROM queues WHERE name = ?1",
        )?
        .query_row([name], |row| {
            Ok(Queue {
                name: row.get(0)?,
                attributes: serde_json::from_str(&row.get::<_, String>(1)?).unwrap_or_default(),
                created_ms: row.get(2)?,
                modified_ms: row.get(3)?,
                purged_ms: row.get(4)?,
            })
        })
        .optional()?)
}

/// Names of queues that start with `prefix` and come after `after`, sorted.
pub(crate) fn names(
    step: &Step<'_>,
    prefix: &str,
    after: &str,
    count_max: usize,
) -> Result<Vec<String>, SqsError> {
    let mut statement = step.tx.prepare_cached(
        "SELECT name FROM queues WHERE substr(name, 1, length(?1)) = ?1 AND name > ?2 ORDER BY name LIMIT ?3",
    )?;
    let rows = statement.query_map(
        params![prefix, after, i64::try_from(count_max).unwrap_or(i64::MAX)],
        |row| row.get(0),
    )?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Creates a queue; the same attributes again are no error, others are.
pub(crate) fn create(
    step: &mut Step<'_>,
    name: &str,
    attributes: &BTreeMap<String, String>,
    tags: &BTreeMap<String, String>,
) -> Result<(), SqsError> {
    check_name(name, attributes)?;
    check_attributes(step, name, attributes)?;
    if let Some(present) = find_optional(step, name)? {
        let told = present.told_attributes("");
        let differs = attributes
            .iter()
            .find(|(name, value)| told.get(*name) != Some(value));
        return match differs {
            Some((attribute, _)) => Err(SqsError::queue_exists(attribute)),
            None => Ok(()),
        };
    }
    if was_deleted_recently(step, name)? {
        return Err(SqsError::deleted_recently());
    }
    insert(step, name, attributes, tags)
}

fn was_deleted_recently(step: &Step<'_>, name: &str) -> Result<bool, SqsError> {
    Ok(step
        .tx
        .prepare("SELECT 1 FROM deleted_queues WHERE name = ?1 AND deleted_ms > ?2")?
        .exists(params![name, step.now_ms - limits::QUEUE_NAME_HELD_MS])?)
}

/// Creates a queue or gives the present one exactly these attributes: what a deployment of a template does.
pub(crate) fn deploy(
    step: &mut Step<'_>,
    name: &str,
    attributes: &BTreeMap<String, String>,
    tags: &BTreeMap<String, String>,
) -> Result<(), SqsError> {
    check_name(name, attributes)?;
    check_attributes(step, name, attributes)?;
    match find_optional(step, name)? {
        Some(present) if &present.attributes == attributes => Ok(()),
        Some(_) => {
            save_attributes(step, name, attributes)?;
            apply_delay(step, name)
        }
        None => insert(step, name, attributes, tags),
    }
}

fn insert(
    step: &mut Step<'_>,
    name: &str,
    attributes: &BTreeMap<String, String>,
    tags: &BTreeMap<String, String>,
) -> Result<(), SqsError> {
    step.tx.execute(
        "INSERT INTO queues (name, attributes, tags, created_ms, modified_ms) VALUES (?1, ?2, ?3, ?4, ?4)",
        params![name, json(attributes), json(tags), step.now_ms],
    )?;
    Ok(())
}

/// Changes attributes; an empty redrive policy or policy takes it away.
pub(crate) fn set_attributes(
    step: &mut Step<'_>,
    name: &str,
    changed: &BTreeMap<String, String>,
) -> Result<(), SqsError> {
    let queue = find(step, name)?;
    if changed.contains_key("FifoQueue") {
        return Err(SqsError::attribute_value(
            "FifoQueue",
            "Modifying queue type is not supported.",
        ));
    }
    check_attributes(step, name, changed)?;
    let mut attributes = queue.attributes;
    for (attribute, value) in changed {
        if value.is_empty() {
            attributes.remove(attribute);
        } else {
            attributes.insert(attribute.clone(), value.clone());
        }
    }
    save_attributes(step, name, &attributes)?;
    apply_delay(step, name)
}

fn save_attributes(
    step: &Step<'_>,
    name: &str,
    attributes: &BTreeMap<String, String>,
) -> Result<(), SqsError> {
    step.tx.execute(
        "UPDATE queues SET attributes = ?2, modified_ms = ?3 WHERE name = ?1",
        params![name, json(attributes), step.now_ms],
    )?;
    Ok(())
}

/// On a FIFO queue a changed delay holds for messages that are there already (documented by AWS).
fn apply_delay(step: &mut Step<'_>, name: &str) -> Result<(), SqsError> {
    let queue = find(step, name)?;
    if queue.is_fifo() {
        step.tx.execute(
            "UPDATE messages SET visible_ms = sent_ms + ?2 WHERE queue = ?1 AND receives = 0",
            params![name, queue.delay_seconds() * 1000],
        )?;
    }
    step.woken.insert(name.to_owned());
    Ok(())
}

/// Deletes a queue with everything in it.
pub(crate) fn delete(step: &mut Step<'_>, name: &str) -> Result<(), SqsError> {
    find(step, name)?;
    step.tx
        .execute("DELETE FROM queues WHERE name = ?1", [name])?;
    step.tx
        .execute("DELETE FROM messages WHERE queue = ?1", [name])?;
    step.tx
        .execute("DELETE FROM deduplication WHERE queue = ?1", [name])?;
    step.tx.execute(
        "INSERT OR REPLACE INTO deleted_queues (name, deleted_ms) VALUES (?1, ?2)",
        params![name, step.now_ms],
    )?;
    step.woken.insert(name.to_owned());
    Ok(())
}

/// Removes every message, those in flight included.
pub(crate) fn purge(step: &mut Step<'_>, name: &str) -> Result<(), SqsError> {
    let queue = find(step, name)?;
    if queue
        .purged_ms
        .is_some_and(|purged_ms| step.now_ms - purged_ms < limits::PURGE_INTERVAL_MS)
    {
        return Err(SqsError::purge_in_progress(name));
    }
    step.tx
        .execute("DELETE FROM messages WHERE queue = ?1", [name])?;
    step.tx.execute(
        "UPDATE queues SET purged_ms = ?2 WHERE name = ?1",
        params![name, step.now_ms],
    )?;
    step.woken.insert(name.to_owned());
    Ok(())
}

/// Tags of a queue.
pub(crate) fn tags(step: &Step<'_>, name: &str) -> Result<BTreeMap<String, String>, SqsError> {
    let text: Option<String> = step
        .tx
        .query_row("SELECT tags FROM queues WHERE name = ?1", [name], |row| {
            row.get(0)
        })
        .optional()?;
    let text = text.ok_or_else(SqsError::no_such_queue)?;
    Ok(serde_json::from_str(&text).unwrap_or_default())
}

/// Replaces the tags of a queue.
pub(crate) fn set_tags(
    step: &Step<'_>,
    name: &str,
    tags: &BTreeMap<String, String>,
) -> Result<(), SqsError> {
    step.tx.execute(
        "UPDATE queues SET tags = ?2 WHERE name = ?1",
        params![name, json(tags)],
    )?;
    Ok(())
}

/// Queues whose dead letters go to `dead_queue`.
pub(crate) fn sources_of(step: &Step<'_>, dead_queue: &str) -> Result<Vec<String>, SqsError> {
    let mut sources = Vec::new();
    for name in names(step, "", "", limits::LISTED_QUEUES_MAX)? {
        let redrive = find(step, &name)?.redrive();
        if redrive.is_some_and(|redrive| redrive.dead_queue == dead_queue) {
            sources.push(name);
        }
    }
    Ok(sources)
}

fn check_name(name: &str, attributes: &BTreeMap<String, String>) -> Result<(), SqsError> {
    let stem = name.strip_suffix(".fifo").unwrap_or(name);
    let fits = !stem.is_empty()
        && name.len() <= limits::QUEUE_NAME_CHARACTERS_MAX
        && stem
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
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

fn check_attributes(
    step: &Step<'_>,
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
            check_redrive(step, name, value)?;
        } else if attribute != "FifoQueue" && !KEPT.contains(&attribute) {
            return Err(SqsError::attribute_name(attribute));
        }
    }
    let per_group = attributes
        .get("FifoThroughputLimit")
        .is_some_and(|value| value == "perMessageGroupId");
    let queue_scope = attributes
        .get("DeduplicationScope")
        .is_some_and(|value| value == "queue");
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

fn check_redrive(step: &Step<'_>, name: &str, value: &str) -> Result<(), SqsError> {
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
    if find_optional(step, dead_queue)?.is_none() {
        return Err(refuse("Dead letter target does not exist."));
    }
    if dead_queue.ends_with(".fifo") != name.ends_with(".fifo") {
        return Err(refuse(
            "Dead-letter queue must be same type of queue as the source.",
        ));
    }
    Ok(())
}

fn json(map: &BTreeMap<String, String>) -> String {
    serde_json::to_string(map).expect("a map of texts is always valid JSON")
}
