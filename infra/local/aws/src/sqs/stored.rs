//! The stored queues: find, create, change, delete.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension, params};

use super::error::SqsError;
use super::queue::{self, Queue, check_attributes, check_name};
use super::transaction::QueueTransaction;
use crate::limits;

/// Reads a queue by its name.
pub(crate) fn find(transaction: &QueueTransaction<'_>, name: &str) -> Result<Queue, SqsError> {
    find_optional(transaction, name)?.ok_or_else(SqsError::no_such_queue)
}

fn find_optional(
    transaction: &QueueTransaction<'_>,
    name: &str,
) -> Result<Option<Queue>, SqsError> {
    Ok(transaction
        .sql
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
    transaction: &QueueTransaction<'_>,
    prefix: &str,
    after: &str,
    count_max: usize,
) -> Result<Vec<String>, SqsError> {
    let mut statement = transaction.sql.prepare_cached(
        "SELECT name FROM queues WHERE substr(name, 1, length(?1)) = ?1 AND name > ?2 ORDER BY name LIMIT ?3",
    )?;
    let rows = statement
        .query_map(params![prefix, after, i64::try_from(count_max).unwrap_or(i64::MAX)], |row| {
            row.get(0)
        })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Creates a queue; the same attributes again are accepted, others are an error.
pub(crate) fn create(
    transaction: &mut QueueTransaction<'_>,
    name: &str,
    attributes: &BTreeMap<String, String>,
    tags: &BTreeMap<String, String>,
) -> Result<(), SqsError> {
    check(transaction, name, attributes)?;
    if let Some(present) = find_optional(transaction, name)? {
        let reported = present.reported_attributes("");
        let differs = attributes.iter().find(|(name, value)| reported.get(*name) != Some(value));
        return match differs {
            Some((attribute, _)) => Err(SqsError::queue_exists(attribute)),
            None => Ok(()),
        };
    }
    if was_deleted_recently(transaction, name)? {
        return Err(SqsError::deleted_recently());
    }
    insert(transaction, name, attributes, tags)
}

fn was_deleted_recently(transaction: &QueueTransaction<'_>, name: &str) -> Result<bool, SqsError> {
    Ok(transaction
        .sql
        .prepare("SELECT 1 FROM deleted_queues WHERE name = ?1 AND deleted_ms > ?2")?
        .exists(params![name, transaction.now_ms - limits::QUEUE_NAME_HELD_MS])?)
}

/// Creates a queue or gives an existing one exactly these attributes: a template deployment.
pub(crate) fn deploy(
    transaction: &mut QueueTransaction<'_>,
    name: &str,
    attributes: &BTreeMap<String, String>,
    tags: &BTreeMap<String, String>,
) -> Result<(), SqsError> {
    check(transaction, name, attributes)?;
    match find_optional(transaction, name)? {
        Some(present) if &present.attributes == attributes => Ok(()),
        Some(_) => {
            save_attributes(transaction, name, attributes)?;
            apply_delay(transaction, name)
        }
        None => insert(transaction, name, attributes, tags),
    }
}

fn insert(
    transaction: &mut QueueTransaction<'_>,
    name: &str,
    attributes: &BTreeMap<String, String>,
    tags: &BTreeMap<String, String>,
) -> Result<(), SqsError> {
    transaction.sql.execute(
        "INSERT INTO queues (name, attributes, tags, created_ms, modified_ms) VALUES (?1, ?2, ?3, ?4, ?4)",
        params![name, json(attributes), json(tags), transaction.now_ms],
    )?;
    Ok(())
}

/// Changes attributes; an empty redrive policy or policy removes it.
pub(crate) fn set_attributes(
    transaction: &mut QueueTransaction<'_>,
    name: &str,
    changed: &BTreeMap<String, String>,
) -> Result<(), SqsError> {
    let queue = find(transaction, name)?;
    if changed.contains_key("FifoQueue") {
        return Err(SqsError::attribute_value(
            "FifoQueue",
            "Modifying queue type is not supported.",
        ));
    }
    check_attributes(name, changed)?;
    check_dead_queue(transaction, changed)?;
    let mut attributes = queue.attributes;
    for (attribute, value) in changed {
        if value.is_empty() {
            attributes.remove(attribute);
        } else {
            attributes.insert(attribute.clone(), value.clone());
        }
    }
    save_attributes(transaction, name, &attributes)?;
    apply_delay(transaction, name)
}

fn save_attributes(
    transaction: &QueueTransaction<'_>,
    name: &str,
    attributes: &BTreeMap<String, String>,
) -> Result<(), SqsError> {
    transaction.sql.execute(
        "UPDATE queues SET attributes = ?2, modified_ms = ?3 WHERE name = ?1",
        params![name, json(attributes), transaction.now_ms],
    )?;
    Ok(())
}

/// On a FIFO queue a changed delay applies to existing messages too (AWS documents it).
fn apply_delay(transaction: &mut QueueTransaction<'_>, name: &str) -> Result<(), SqsError> {
    let queue = find(transaction, name)?;
    if queue.is_fifo() {
        transaction.sql.execute(
            "UPDATE messages SET visible_ms = sent_ms + ?2 WHERE queue = ?1 AND receives = 0",
            params![name, queue.delay_seconds() * 1000],
        )?;
    }
    transaction.woken.insert(name.to_owned());
    Ok(())
}

/// Deletes a queue with everything in it.
pub(crate) fn delete(transaction: &mut QueueTransaction<'_>, name: &str) -> Result<(), SqsError> {
    find(transaction, name)?;
    transaction.sql.execute("DELETE FROM queues WHERE name = ?1", [name])?;
    transaction.sql.execute("DELETE FROM messages WHERE queue = ?1", [name])?;
    transaction.sql.execute("DELETE FROM deduplication WHERE queue = ?1", [name])?;
    transaction.sql.execute(
        "INSERT OR REPLACE INTO deleted_queues (name, deleted_ms) VALUES (?1, ?2)",
        params![name, transaction.now_ms],
    )?;
    transaction.woken.insert(name.to_owned());
    Ok(())
}

/// Removes every message, including those in flight.
pub(crate) fn purge(transaction: &mut QueueTransaction<'_>, name: &str) -> Result<(), SqsError> {
    let queue = find(transaction, name)?;
    if queue
        .purged_ms
        .is_some_and(|purged_ms| transaction.now_ms - purged_ms < limits::PURGE_INTERVAL_MS)
    {
        return Err(SqsError::purge_in_progress(name));
    }
    transaction.sql.execute("DELETE FROM messages WHERE queue = ?1", [name])?;
    transaction.sql.execute(
        "UPDATE queues SET purged_ms = ?2 WHERE name = ?1",
        params![name, transaction.now_ms],
    )?;
    transaction.woken.insert(name.to_owned());
    Ok(())
}

/// Tags of a queue.
pub(crate) fn tags(
    transaction: &QueueTransaction<'_>,
    name: &str,
) -> Result<BTreeMap<String, String>, SqsError> {
    let text: Option<String> = transaction
        .sql
        .query_row("SELECT tags FROM queues WHERE name = ?1", [name], |row| row.get(0))
        .optional()?;
    let text = text.ok_or_else(SqsError::no_such_queue)?;
    Ok(serde_json::from_str(&text).unwrap_or_default())
}

/// Replaces the tags of a queue.
pub(crate) fn set_tags(
    transaction: &QueueTransaction<'_>,
    name: &str,
    tags: &BTreeMap<String, String>,
) -> Result<(), SqsError> {
    transaction
        .sql
        .execute("UPDATE queues SET tags = ?2 WHERE name = ?1", params![name, json(tags)])?;
    Ok(())
}

/// Counts of visible, delayed and in-flight messages.
pub(crate) fn counts(
    transaction: &QueueTransaction<'_>,
    queue: &Queue,
) -> Result<[(&'static str, i64); 3], SqsError> {
    let (visible, delayed, in_flight) = transaction.sql.query_row(
        "SELECT COUNT(*) FILTER (WHERE visible_ms <= ?2),
                COUNT(*) FILTER (WHERE visible_ms > ?2 AND receives = 0),
                COUNT(*) FILTER (WHERE visible_ms > ?2 AND receives > 0)
         FROM messages WHERE queue = ?1 AND sent_ms > ?3",
        params![queue.name, transaction.now_ms, transaction.now_ms - queue.retention_ms()],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    Ok([
        ("ApproximateNumberOfMessages", visible),
        ("ApproximateNumberOfMessagesDelayed", delayed),
        ("ApproximateNumberOfMessagesNotVisible", in_flight),
    ])
}

fn check(
    transaction: &QueueTransaction<'_>,
    name: &str,
    attributes: &BTreeMap<String, String>,
) -> Result<(), SqsError> {
    check_name(name, attributes)?;
    check_attributes(name, attributes)?;
    check_dead_queue(transaction, attributes)
}

fn check_dead_queue(
    transaction: &QueueTransaction<'_>,
    attributes: &BTreeMap<String, String>,
) -> Result<(), SqsError> {
    match queue::redrive(attributes) {
        Some(redrive) if find_optional(transaction, &redrive.dead_queue)?.is_none() => {
            Err(SqsError::attribute_value("RedrivePolicy", "Dead letter target does not exist."))
        }
        _ => Ok(()),
    }
}

fn json(map: &BTreeMap<String, String>) -> String {
    serde_json::to_string(map).expect("a map of texts is always valid JSON")
}
