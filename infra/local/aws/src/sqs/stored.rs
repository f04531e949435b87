//! The stored queues: finding, creating, changing and deleting them.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension, params};

use super::error::SqsError;
use super::queue::{self, Queue, check_attributes, check_name};
use super::step::Step;
use crate::limits;

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
    check(step, name, attributes)?;
    if let Some(present) = find_optional(step, name)? {
        let reported = present.reported_attributes("");
        let differs = attributes
            .iter()
            .find(|(name, value)| reported.get(*name) != Some(value));
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
    check(step, name, attributes)?;
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
    check_attributes(name, changed)?;
    check_dead_queue(step, changed)?;
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

/// How many messages are visible, delayed and in flight.
pub(crate) fn counts(step: &Step<'_>, queue: &Queue) -> Result<[(&'static str, i64); 3], SqsError> {
    let (visible, delayed, in_flight) = step.tx.query_row(
        "SELECT COUNT(*) FILTER (WHERE visible_ms <= ?2),
                COUNT(*) FILTER (WHERE visible_ms > ?2 AND receives = 0),
                COUNT(*) FILTER (WHERE visible_ms > ?2 AND receives > 0)
         FROM messages WHERE queue = ?1 AND sent_ms > ?3",
        params![queue.name, step.now_ms, step.now_ms - queue.retention_ms()],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    Ok([
        ("ApproximateNumberOfMessages", visible),
        ("ApproximateNumberOfMessagesDelayed", delayed),
        ("ApproximateNumberOfMessagesNotVisible", in_flight),
    ])
}

fn check(
    step: &Step<'_>,
    name: &str,
    attributes: &BTreeMap<String, String>,
) -> Result<(), SqsError> {
    check_name(name, attributes)?;
    check_attributes(name, attributes)?;
    check_dead_queue(step, attributes)
}

fn check_dead_queue(
    step: &Step<'_>,
    attributes: &BTreeMap<String, String>,
) -> Result<(), SqsError> {
    match queue::redrive(attributes) {
        Some(redrive) if find_optional(step, &redrive.dead_queue)?.is_none() => Err(
            SqsError::attribute_value("RedrivePolicy", "Dead letter target does not exist."),
        ),
        _ => Ok(()),
    }
}

fn json(map: &BTreeMap<String, String>) -> String {
    serde_json::to_string(map).expect("a map of texts is always valid JSON")
}
