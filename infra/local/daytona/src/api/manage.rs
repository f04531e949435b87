//! Calls about one sandbox: look, lifecycle, labels, timers.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::json;

use super::{Answer, parse};
use crate::fail::Fail;
use crate::lifecycle;
use crate::limits::AUTO_ARCHIVE_MINUTES_MAX;
use crate::record::Record;
use crate::shared::Context;
use crate::state::{Operation, State as Phase};
use crate::store::Shelf;

type Shared = State<Context>;

pub(super) async fn get(State(shared): Shared, Path(sandbox): Path<String>) -> Answer {
    let id = shared.store.id_of(&sandbox)?;
    let record = shared
        .store
        .record(&id)
        .ok_or_else(|| Fail::no_sandbox(&sandbox))?;
    Ok(Json(record.full(&shared.toolbox_url)).into_response())
}

pub(super) async fn start(State(shared): Shared, Path(sandbox): Path<String>) -> Answer {
    raise(&shared, &sandbox, Operation::Start).await
}

pub(super) async fn recover(State(shared): Shared, Path(sandbox): Path<String>) -> Answer {
    raise(&shared, &sandbox, Operation::Recover).await
}

/// Holds the answer until the sandbox runs, except from the archive; yet answers with the row before the wait.
async fn raise(shared: &Context, sandbox: &str, operation: Operation) -> Answer {
    let id = shared.store.id_of(sandbox)?;
    let begun = lifecycle::begin(shared, &id, operation, false)?;
    if begun.moving
        && begun.record.state != Phase::Restoring
        && let Some(held) = lifecycle::hold(shared, &id).await
        && held.state == Phase::Error
    {
        return Err(Fail::bad(format!(
            "Sandbox failed to start: {}",
            held.error_reason.unwrap_or_default()
        )));
    }
    Ok(Json(begun.record.full(&shared.toolbox_url)).into_response())
}

#[derive(Deserialize)]
pub(super) struct Stop {
    #[serde(default)]
    force: bool,
}

pub(super) async fn stop(
    State(shared): Shared,
    Path(sandbox): Path<String>,
    Query(how): Query<Stop>,
) -> Answer {
    let id = shared.store.id_of(&sandbox)?;
    let begun = lifecycle::begin(&shared, &id, Operation::Stop, how.force)?;
    Ok(Json(begun.record.full(&shared.toolbox_url)).into_response())
}

pub(super) async fn archive(State(shared): Shared, Path(sandbox): Path<String>) -> Answer {
    let id = shared.store.id_of(&sandbox)?;
    if shared
        .store
        .record(&id)
        .is_some_and(|record| record.auto_delete == 0)
    {
        return Err(Fail::bad("Ephemeral sandboxes cannot be archived"));
    }
    let begun = lifecycle::begin(&shared, &id, Operation::Archive, false)?;
    Ok(Json(begun.record.full(&shared.toolbox_url)).into_response())
}

pub(super) async fn delete(State(shared): Shared, Path(sandbox): Path<String>) -> Answer {
    let id = shared.store.id_of(&sandbox)?;
    let begun = lifecycle::begin(&shared, &id, Operation::Delete, true)?;
    Ok(Json(begun.record.full(&shared.toolbox_url)).into_response())
}

/// Changes the record and answers it.
fn update(shared: &Context, sandbox: &str, change: impl FnOnce(&mut Record)) -> Answer {
    let id = shared.store.id_of(sandbox)?;
    let now = shared.clock.now_ms();
    let record = shared.store.change(&id, |entry| {
        change(&mut entry.record);
        entry.record.updated_at = now;
        entry.record.clone()
    });
    let record = record.ok_or_else(|| Fail::no_sandbox(sandbox))?;
    Ok(Json(record.full(&shared.toolbox_url)).into_response())
}

#[derive(Deserialize)]
struct Labels {
    labels: BTreeMap<String, String>,
}

pub(super) async fn labels(
    State(shared): Shared,
    Path(sandbox): Path<String>,
    body: Bytes,
) -> Answer {
    let Labels { labels } = parse(&body)?;
    update(&shared, &sandbox, |record| {
        record.labels.clone_from(&labels)
    })?;
    Ok(Json(json!({ "labels": labels })).into_response())
}

#[derive(Deserialize)]
struct Secrets {
    secrets: Vec<BTreeMap<String, String>>,
}

pub(super) async fn secrets(
    State(shared): Shared,
    Path(sandbox): Path<String>,
    body: Bytes,
) -> Answer {
    let Secrets { secrets } = parse(&body)?;
    let pairs = secret_pairs(&shared.store.lock().shelf, secrets)?;
    update(&shared, &sandbox, |record| record.secrets = pairs)
}

/// `[{"VARIABLE":"secret name"}]` as one map; each secret must exist.
pub(super) fn secret_pairs(
    shelf: &Shelf,
    list: Vec<BTreeMap<String, String>>,
) -> Result<BTreeMap<String, String>, Fail> {
    let pairs: BTreeMap<String, String> = list.into_iter().flatten().collect();
    super::create::check_variables(pairs.keys())?;
    for name in pairs.values() {
        if !shelf.secrets.values().any(|secret| secret.name == *name) {
            return Err(Fail::bad(format!("Secret {name} not found")));
        }
    }
    Ok(pairs)
}

/// The interval in the path: a whole number of minutes, not under `least`.
fn minutes(text: &str, least: i64) -> Result<i64, Fail> {
    let minutes = text.parse().ok().filter(|minutes| *minutes >= least);
    minutes.ok_or_else(|| {
        Fail::bad(format!(
            "the interval must be a whole number of minutes, at least {least}"
        ))
    })
}

/// 0 asks for the maximum.
pub(super) fn archive_minutes(asked: i64) -> i64 {
    if asked == 0 {
        AUTO_ARCHIVE_MINUTES_MAX
    } else {
        asked.clamp(1, AUTO_ARCHIVE_MINUTES_MAX)
    }
}

type Interval = Path<(String, String)>;

pub(super) async fn auto_stop(State(shared): Shared, Path((sandbox, text)): Interval) -> Answer {
    let minutes = minutes(&text, 0)?;
    update(&shared, &sandbox, |record| record.auto_stop = minutes)
}

pub(super) async fn auto_archive(State(shared): Shared, Path((sandbox, text)): Interval) -> Answer {
    let minutes = minutes(&text, 0)?;
    update(&shared, &sandbox, |record| {
        record.auto_archive = archive_minutes(minutes)
    })
}

pub(super) async fn auto_delete(State(shared): Shared, Path((sandbox, text)): Interval) -> Answer {
    let minutes = minutes(&text, -1)?;
    update(&shared, &sandbox, |record| record.auto_delete = minutes)
}

pub(super) async fn ttl(State(shared): Shared, Path((sandbox, text)): Interval) -> Answer {
    let minutes = minutes(&text, 0)?;
    let at = (minutes > 0).then(|| {
        shared
            .clock
            .now_ms()
            .saturating_add(minutes.saturating_mul(60_000))
    });
    update(&shared, &sandbox, |record| record.destroy_at = at)
}

/// By a name it answers the same and touches nothing, as Daytona does.
pub(super) async fn last_activity(State(shared): Shared, Path(sandbox): Path<String>) -> Answer {
    let id = shared.store.id_of(&sandbox)?;
    if id == sandbox {
        shared.touch(&id);
    }
    Ok(StatusCode::CREATED.into_response())
}

pub(super) async fn toolbox_url(State(shared): Shared, Path(sandbox): Path<String>) -> Answer {
    shared
        .store
        .record(&sandbox)
        .ok_or_else(|| Fail::no_sandbox(&sandbox))?;
    Ok(Json(json!({ "url": shared.toolbox_url })).into_response())
}
