//! Receiving messages: order, group lock, dead letters.

use std::collections::BTreeMap;

use rusqlite::{Row, params};

use super::digest::MessageAttribute;
use super::error::SqsError;
use super::queue::{Queue, Redrive};
use super::receipt::ReceiptHandle;
use super::send::{self, StoredAttributes};
use super::stored;
use super::transaction::QueueTransaction;
use crate::limits;

/// A received message.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) id: String,
    pub(crate) receipt: String,
    pub(crate) body: String,
    pub(crate) message_attributes: BTreeMap<String, MessageAttribute>,
    /// `ApproximateReceiveCount`, `SentTimestamp` and so on, by their wire names.
    pub(crate) system_attributes: BTreeMap<String, String>,
}

/// Options of a receive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveOptions {
    pub(crate) count_max: usize,
    pub(crate) visibility_seconds: i64,
    /// Only messages of the first free group; marks them as held by a function.
    pub(crate) for_function: bool,
}

struct ReceivableMessage {
    sequence: i64,
    id: String,
    body: String,
    attributes: String,
    group_id: Option<String>,
    deduplication_id: Option<String>,
    sent_ms: i64,
    first_received_ms: Option<i64>,
    receives: i64,
    /// Receives in the queues it was in before.
    receives_before: i64,
    dead_from: Option<String>,
}

const COLUMNS: &str = "m.sequence, m.id, m.body, m.attributes, m.group_id, m.deduplication_id, m.sent_ms, m.first_received_ms, m.receives, m.receives_before, m.dead_from";

/// A group is locked while one of its messages is in flight, or an earlier one still waits.
const FIFO_FREE: &str = "NOT EXISTS (
  SELECT 1 FROM messages l
  WHERE l.queue = m.queue AND l.group_id = m.group_id AND l.visible_ms > ?2
    AND (l.receives > 0 OR l.sequence < m.sequence))";

/// Receives visible messages; first moves those received too often to the dead-letter queue.
pub(crate) fn receive(
    transaction: &mut QueueTransaction<'_>,
    queue: &Queue,
    options: ReceiveOptions,
) -> Result<Vec<Received>, SqsError> {
    expire(transaction, queue)?;
    let redrive = match queue.redrive() {
        // A deleted dead-letter queue does not hold messages back.
        Some(redrive) if stored::find(transaction, &redrive.dead_queue).is_ok() => Some(redrive),
        _ => None,
    };
    for _ in 0..=limits::DEAD_LETTERS_PER_RECEIVE_MAX / limits::BATCH_ENTRIES_MAX {
        let candidates = candidates(transaction, queue, options)?;
        let (dead, alive): (Vec<_>, Vec<_>) = candidates.into_iter().partition(|candidate| {
            redrive.as_ref().is_some_and(|redrive| candidate.receives >= redrive.receives_max)
        });
        if dead.is_empty() {
            return alive
                .into_iter()
                .map(|candidate| deliver(transaction, queue, options, candidate))
                .collect();
        }
        if let Some(redrive) = &redrive {
            for candidate in dead {
                move_to_dead_letters(transaction, queue, redrive, candidate)?;
            }
        }
    }
    transaction.woken.insert(queue.name.clone());
    Ok(Vec::new())
}

/// When the queue's next waiting message becomes visible, if there is one.
pub(crate) fn next_visible_ms(
    transaction: &QueueTransaction<'_>,
    queue: &str,
) -> Result<Option<i64>, SqsError> {
    Ok(transaction
        .sql
        .prepare_cached(
            "SELECT MIN(visible_ms) FROM messages WHERE queue = ?1 AND visible_ms > ?2",
        )?
        .query_row(params![queue, transaction.now_ms], |row| row.get(0))?)
}

fn expire(transaction: &QueueTransaction<'_>, queue: &Queue) -> Result<(), SqsError> {
    transaction
        .sql
        .prepare_cached("DELETE FROM messages WHERE queue = ?1 AND sent_ms <= ?2")?
        .execute(params![queue.name, transaction.now_ms - queue.retention_ms()])?;
    Ok(())
}

fn candidates(
    transaction: &QueueTransaction<'_>,
    queue: &Queue,
    options: ReceiveOptions,
) -> Result<Vec<ReceivableMessage>, SqsError> {
    let free = if queue.is_fifo() { FIFO_FREE } else { "TRUE" };
    // The plus sign keeps SQLite on the index in delivery order, so that it stops at the limit instead of sorting a
    // whole backlog.
    let visible = format!("m.queue = ?1 AND +m.visible_ms <= ?2 AND {free}");
    // A FIFO batch for a function comes from one group: that of the oldest free message.
    let group = if queue.is_fifo() && options.for_function {
        format!(
            "AND m.group_id = (SELECT m.group_id FROM messages m WHERE {visible} ORDER BY m.sequence LIMIT 1)"
        )
    } else {
        String::new()
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM messages m WHERE {visible} {group} ORDER BY m.sequence LIMIT ?3"
    );
    let mut statement = transaction.sql.prepare_cached(&sql)?;
    let count_max = i64::try_from(options.count_max).unwrap_or(1);
    let rows =
        statement.query_map(params![queue.name, transaction.now_ms, count_max], candidate)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn candidate(row: &Row<'_>) -> rusqlite::Result<ReceivableMessage> {
    Ok(ReceivableMessage {
        sequence: row.get(0)?,
        id: row.get(1)?,
        body: row.get(2)?,
        attributes: row.get(3)?,
        group_id: row.get(4)?,
        deduplication_id: row.get(5)?,
        sent_ms: row.get(6)?,
        first_received_ms: row.get(7)?,
        receives: row.get(8)?,
        receives_before: row.get(9)?,
        dead_from: row.get(10)?,
    })
}

fn deliver(
    transaction: &QueueTransaction<'_>,
    queue: &Queue,
    options: ReceiveOptions,
    candidate: ReceivableMessage,
) -> Result<Received, SqsError> {
    let receives = candidate.receives + 1;
    let receipt = ReceiptHandle::mint(&queue.name, candidate.sequence).text();
    let first_received_ms = candidate.first_received_ms.unwrap_or(transaction.now_ms);
    transaction.sql
        .prepare_cached(
            "UPDATE messages SET receipt = ?2, receives = ?3, received_ms = ?4, first_received_ms = ?5,
             visible_ms = ?6, in_function = ?7 WHERE sequence = ?1",
        )?
        .execute(params![
            candidate.sequence,
            receipt,
            receives,
            transaction.now_ms,
            first_received_ms,
            transaction.now_ms + options.visibility_seconds * 1000,
            options.for_function
        ])?;

    let attributes: StoredAttributes =
        serde_json::from_str(&candidate.attributes).unwrap_or_default();
    let mut system: BTreeMap<String, String> = attributes
        .system
        .into_iter()
        .filter_map(|(name, attribute)| Some((name, attribute.string_value?)))
        .collect();
    let mut tell = |name: &str, value: String| system.insert(name.to_owned(), value);
    // Counted across all queues (AWS).
    let received = candidate.receives_before + receives;
    tell("ApproximateReceiveCount", received.to_string());
    tell("SentTimestamp", candidate.sent_ms.to_string());
    tell("ApproximateFirstReceiveTimestamp", first_received_ms.to_string());
    tell("SenderId", transaction.account.to_owned());
    if let Some(group_id) = candidate.group_id {
        tell("MessageGroupId", group_id);
    }
    if let Some(id) = candidate.deduplication_id {
        tell("MessageDeduplicationId", id);
        tell("SequenceNumber", send::sequence_number(candidate.sequence));
    }
    if let Some(arn) = candidate.dead_from {
        tell("DeadLetterQueueSourceArn", arn);
    }
    Ok(Received {
        id: candidate.id,
        receipt,
        body: candidate.body,
        message_attributes: attributes.message,
        system_attributes: system,
    })
}

/// Moves a message to the dead-letter queue: id, body, group and receive count stay. On a FIFO queue its own id becomes
/// its deduplication id, so that two messages with one deduplication id can both be there, and its age restarts (AWS).
fn move_to_dead_letters(
    transaction: &mut QueueTransaction<'_>,
    queue: &Queue,
    redrive: &Redrive,
    candidate: ReceivableMessage,
) -> Result<(), SqsError> {
    let (sent_ms, deduplication_id) = if queue.is_fifo() {
        (transaction.now_ms, Some(candidate.id.as_str()))
    } else {
        (candidate.sent_ms, None)
    };
    transaction.sql.execute(
        "INSERT INTO messages (queue, id, body, attributes, group_id, deduplication_id, sent_ms, visible_ms, receives_before, dead_from)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            redrive.dead_queue,
            candidate.id,
            candidate.body,
            candidate.attributes,
            candidate.group_id,
            deduplication_id,
            sent_ms,
            transaction.now_ms,
            candidate.receives_before + candidate.receives,
            transaction.arn(&queue.name)
        ],
    )?;
    transaction.sql.execute("DELETE FROM messages WHERE sequence = ?1", [candidate.sequence])?;
    transaction.woken.insert(redrive.dead_queue.clone());
    Ok(())
}
