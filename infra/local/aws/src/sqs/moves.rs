//! Redrive: moving messages out of a dead-letter queue, back to where they came from or elsewhere.
//!
//! Progress is computed when the queues are next looked at, so a task with a rate needs no timer of its own.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rusqlite::{OptionalExtension, Row, params};
use serde_json::{Value, json};

use super::queue;
use super::{SqsError, Step};
use crate::limits;

struct Task {
    handle: String,
    source: String,
    destination: Option<String>,
    rate: Option<i64>,
    status: String,
    moved: i64,
    to_move: i64,
    last_sequence: i64,
    started_ms: i64,
    failure: Option<String>,
}

const COLUMNS: &str =
    "handle, source, destination, rate, status, moved, to_move, last_sequence, started_ms, failure";

/// Starts a task and returns its handle.
pub(crate) fn start(
    step: &Step<'_>,
    source_arn: &str,
    destination_arn: Option<&str>,
    rate: Option<i64>,
) -> Result<String, SqsError> {
    let source = queue_of(step, source_arn)?;
    if queue::sources_of(step, &source)?.is_empty() {
        return Err(SqsError::parameter(
            "Source queue must be configured as a Dead Letter Queue.",
        ));
    }
    let destination = destination_arn.map(|arn| queue_of(step, arn)).transpose()?;
    if rate.is_some_and(|rate| !(1..=500).contains(&rate)) {
        return Err(SqsError::parameter(
            "MaxNumberOfMessagesPerSecond must be between 1 and 500.",
        ));
    }
    let running: Option<String> = step
        .tx
        .query_row(
            "SELECT handle FROM move_tasks WHERE source = ?1 AND status = 'RUNNING'",
            [&source],
            |row| row.get(0),
        )
        .optional()?;
    if running.is_some() {
        return Err(SqsError::unsupported(
            "There is already a task running. Only one active task is allowed for a source queue arn at a given time.",
        ));
    }
    let (to_move, last_sequence): (i64, i64) = step.tx.query_row(
        "SELECT COUNT(*), COALESCE(MAX(sequence), 0) FROM messages WHERE queue = ?1",
        [&source],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let handle = STANDARD.encode(format!(
        "{{\"taskId\":\"{}\",\"sourceArn\":\"{source_arn}\"}}",
        uuid::Uuid::new_v4()
    ));
    step.tx.execute(
        "INSERT INTO move_tasks (handle, source, destination, rate, status, to_move, last_sequence, started_ms)
         VALUES (?1, ?2, ?3, ?4, 'RUNNING', ?5, ?6, ?7)",
        params![handle, source, destination, rate, to_move, last_sequence, step.now_ms],
    )?;
    Ok(handle)
}

/// Moves what is due; `true` while a task has more to move right now.
pub(crate) fn progress(step: &mut Step<'_>) -> Result<bool, SqsError> {
    let mut more = false;
    for task in tasks(step, "status = ?1", "RUNNING")? {
        more |= advance(step, &task)?;
    }
    Ok(more)
}

/// Whether a task runs, so that waiting consumers should look again soon.
pub(crate) fn is_any_running(step: &Step<'_>) -> Result<bool, SqsError> {
    Ok(step
        .tx
        .prepare_cached("SELECT 1 FROM move_tasks WHERE status = 'RUNNING'")?
        .exists([])?)
}

/// Ends a running task; returns how many messages it moved.
pub(crate) fn cancel(step: &Step<'_>, handle: &str) -> Result<i64, SqsError> {
    let found = tasks(step, "handle = ?1", handle)?.into_iter().next();
    let task = found
        .ok_or_else(|| SqsError::resource_not_found("The task handle does not name a task."))?;
    if task.status != "RUNNING" {
        return Err(SqsError::unsupported("Only active tasks can be cancelled."));
    }
    set_status(step, handle, "CANCELLED", None)?;
    Ok(task.moved)
}

/// The newest tasks of a source, as the protocol tells them.
pub(crate) fn list(
    step: &Step<'_>,
    source_arn: &str,
    count_max: usize,
) -> Result<Vec<Value>, SqsError> {
    let source = queue_of(step, source_arn)?;
    let mut found = tasks(step, "source = ?1", &source)?;
    found.reverse();
    Ok(found
        .into_iter()
        .take(count_max)
        .map(|task| {
            let mut told = json!({
                "Status": task.status,
                "SourceArn": step.arn(&task.source),
                "ApproximateNumberOfMessagesMoved": task.moved,
                "ApproximateNumberOfMessagesToMove": task.to_move,
                "StartedTimestamp": task.started_ms,
            });
            if task.status == "RUNNING" {
                told["TaskHandle"] = json!(task.handle);
            }
            if let Some(destination) = &task.destination {
                told["DestinationArn"] = json!(step.arn(destination));
            }
            if let Some(rate) = task.rate {
                told["MaxNumberOfMessagesPerSecond"] = json!(rate);
            }
            if let Some(failure) = &task.failure {
                told["FailureReason"] = json!(failure);
            }
            told
        })
        .collect())
}

fn advance(step: &mut Step<'_>, task: &Task) -> Result<bool, SqsError> {
    let allowed = match task.rate {
        Some(rate) => (step.now_ms - task.started_ms) * rate / 1000 - task.moved,
        None => limits::MOVED_PER_STEP_MAX,
    };
    let count_max = allowed.clamp(0, limits::MOVED_PER_STEP_MAX);
    let rows: Vec<(i64, Option<String>)> = {
        let mut statement = step.tx.prepare_cached(
            "SELECT sequence, dead_from FROM messages
             WHERE queue = ?1 AND sequence <= ?2 AND visible_ms <= ?3 ORDER BY sequence LIMIT ?4",
        )?;
        let rows = statement.query_map(
            params![task.source, task.last_sequence, step.now_ms, count_max],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        rows.collect::<Result<_, _>>()?
    };
    let mut moved = 0;
    for (sequence, dead_from) in &rows {
        let destination = match (&task.destination, dead_from) {
            (Some(destination), _) => Some(destination.clone()),
            (None, Some(arn)) => queue::name_of_arn(arn).map(str::to_owned),
            (None, None) => None,
        };
        let destination = destination.filter(|name| queue::find(step, name).is_ok());
        let Some(destination) = destination else {
            set_status(
                step,
                &task.handle,
                "FAILED",
                Some("CouldNotDetermineMessageSource"),
            )?;
            return Ok(false);
        };
        relocate(step, *sequence, &destination)?;
        moved += 1;
        step.tx.execute(
            "UPDATE move_tasks SET moved = moved + 1 WHERE handle = ?1",
            [&task.handle],
        )?;
    }
    let is_done = moved < count_max || task.moved + moved >= task.to_move;
    if is_done {
        set_status(step, &task.handle, "COMPLETED", None)?;
    }
    Ok(!is_done && task.rate.is_none())
}

/// A moved message counts as new: another id, a new age, no receives (documented by AWS).
fn relocate(step: &mut Step<'_>, sequence: i64, destination: &str) -> Result<(), SqsError> {
    let delay_ms = queue::find(step, destination)?.delay_seconds() * 1000;
    step.tx.execute(
        "INSERT INTO messages (queue, id, body, attributes, group_id, deduplication_id, sent_ms, visible_ms)
         SELECT ?2, ?3, body, attributes, group_id, deduplication_id, ?4, ?5 FROM messages WHERE sequence = ?1",
        params![
            sequence,
            destination,
            uuid::Uuid::new_v4().to_string(),
            step.now_ms,
            step.now_ms + delay_ms
        ],
    )?;
    step.tx
        .execute("DELETE FROM messages WHERE sequence = ?1", [sequence])?;
    step.woken.insert(destination.to_owned());
    Ok(())
}

fn set_status(
    step: &Step<'_>,
    handle: &str,
    status: &str,
    failure: Option<&str>,
) -> Result<(), SqsError> {
    step.tx.execute(
        "UPDATE move_tasks SET status = ?2, failure = ?3 WHERE handle = ?1",
        params![handle, status, failure],
    )?;
    Ok(())
}

fn queue_of(step: &Step<'_>, arn: &str) -> Result<String, SqsError> {
    let missing = || {
        SqsError::resource_not_found(
            "The resource that you specified for the SourceArn or DestinationArn parameter doesn't exist.",
        )
    };
    let name = queue::name_of_arn(arn).ok_or_else(missing)?;
    queue::find(step, name).map_err(|_| missing())?;
    Ok(name.to_owned())
}

/// Tasks by a condition with one parameter, oldest first.
fn tasks(step: &Step<'_>, condition: &str, parameter: &str) -> Result<Vec<Task>, SqsError> {
    let sql =
        format!("SELECT {COLUMNS} FROM move_tasks WHERE {condition} ORDER BY started_ms, rowid");
    let mut statement = step.tx.prepare_cached(&sql)?;
    let rows = statement.query_map([parameter], task)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn task(row: &Row<'_>) -> rusqlite::Result<Task> {
    Ok(Task {
        handle: row.get(0)?,
        source: row.get(1)?,
        destination: row.get(2)?,
        rate: row.get(3)?,
        status: row.get(4)?,
        moved: row.get(5)?,
        to_move: row.get(6)?,
        last_sequence: row.get(7)?,
        started_ms: row.get(8)?,
        failure: row.get(9)?,
    })
}
