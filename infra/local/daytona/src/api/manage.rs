//! Calls on one sandbox: details, life cycle, labels, secrets and timers.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::json;

use super::validate::{archive_minutes, secret_names};
use crate::api_error::ApiError;
use crate::engine::SharedEngine;
use crate::http::{ApiResult, EngineState, parse};
use crate::lifecycle;
use crate::record::Record;
use crate::state::{DaytonaState, LifecycleCall};

pub(super) async fn get(State(engine): EngineState, Path(sandbox): Path<String>) -> ApiResult {
    let id = engine.store.id_of(&sandbox)?;
    let record = engine.store.record(&id).ok_or_else(|| ApiError::no_sandbox(&sandbox))?;
    Ok(Json(record.full(&engine.toolbox_url)).into_response())
}

pub(super) async fn start(State(engine): EngineState, Path(sandbox): Path<String>) -> ApiResult {
    start_and_wait(&engine, &sandbox, LifecycleCall::Start).await
}

pub(super) async fn recover(State(engine): EngineState, Path(sandbox): Path<String>) -> ApiResult {
    start_and_wait(&engine, &sandbox, LifecycleCall::Recover).await
}

/// Delays the answer until the sandbox runs, except from the archive; still answers with the row from before.
async fn start_and_wait(
    engine: &SharedEngine,
    sandbox: &str,
    operation: LifecycleCall,
) -> ApiResult {
    let id = engine.store.id_of(sandbox)?;
    let begun = lifecycle::begin(engine, &id, operation, false)?;
    if begun.moving
        && begun.record.state != DaytonaState::Restoring
        && let Some(settled) = lifecycle::wait_until_settled(engine, &id).await
        && settled.state == DaytonaState::Error
    {
        return Err(ApiError::bad(format!(
            "Sandbox failed to start: {}",
            settled.error_reason.unwrap_or_default()
        )));
    }
    Ok(Json(begun.record.full(&engine.toolbox_url)).into_response())
}

#[derive(Deserialize)]
pub(super) struct Stop {
    #[serde(default)]
    force: bool,
}

pub(super) async fn stop(
    State(engine): EngineState,
    Path(sandbox): Path<String>,
    Query(how): Query<Stop>,
) -> ApiResult {
    let id = engine.store.id_of(&sandbox)?;
    let begun = lifecycle::begin(&engine, &id, LifecycleCall::Stop, how.force)?;
    Ok(Json(begun.record.full(&engine.toolbox_url)).into_response())
}

pub(super) async fn archive(State(engine): EngineState, Path(sandbox): Path<String>) -> ApiResult {
    let id = engine.store.id_of(&sandbox)?;
    if engine.store.record(&id).is_some_and(|record| record.auto_delete == 0) {
        return Err(ApiError::bad("Ephemeral sandboxes cannot be archived"));
    }
    let begun = lifecycle::begin(&engine, &id, LifecycleCall::Archive, false)?;
    Ok(Json(begun.record.full(&engine.toolbox_url)).into_response())
}

pub(super) async fn delete(State(engine): EngineState, Path(sandbox): Path<String>) -> ApiResult {
    let id = engine.store.id_of(&sandbox)?;
    let begun = lifecycle::begin(&engine, &id, LifecycleCall::Delete, true)?;
    Ok(Json(begun.record.full(&engine.toolbox_url)).into_response())
}

/// Changes the record and returns it.
fn update(engine: &SharedEngine, sandbox: &str, change: impl FnOnce(&mut Record)) -> ApiResult {
    let id = engine.store.id_of(sandbox)?;
    let now = engine.clock.now_ms();
    let record = engine.store.change(&id, |entry| {
        change(&mut entry.record);
        entry.record.updated_at = now;
        entry.record.clone()
    });
    let record = record.ok_or_else(|| ApiError::no_sandbox(sandbox))?;
    Ok(Json(record.full(&engine.toolbox_url)).into_response())
}

#[derive(Deserialize)]
struct Labels {
    labels: BTreeMap<String, String>,
}

pub(super) async fn labels(
    State(engine): EngineState,
    Path(sandbox): Path<String>,
    body: Bytes,
) -> ApiResult {
    let Labels { labels } = parse(&body)?;
    update(&engine, &sandbox, |record| record.labels.clone_from(&labels))?;
    Ok(Json(json!({ "labels": labels })).into_response())
}

#[derive(Deserialize)]
struct SecretsBody {
    secrets: Vec<BTreeMap<String, String>>,
}

pub(super) async fn secrets(
    State(engine): EngineState,
    Path(sandbox): Path<String>,
    body: Bytes,
) -> ApiResult {
    let SecretsBody { secrets } = parse(&body)?;
    let names = secret_names(&engine.store.lock().secrets, secrets)?;
    update(&engine, &sandbox, |record| record.secrets = names)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NetworkBody {
    network_block_all: Option<bool>,
    network_allow_list: Option<String>,
    domain_allow_list: Option<String>,
}

/// Lists of addresses are kept and have no effect here: requests leave by names.
pub(super) async fn network(
    State(engine): EngineState,
    Path(sandbox): Path<String>,
    body: Bytes,
) -> ApiResult {
    let NetworkBody { network_block_all, network_allow_list, domain_allow_list } = parse(&body)?;
    update(&engine, &sandbox, |record| {
        record.network_block_all = network_block_all.unwrap_or(record.network_block_all);
        record.network_allow_list = network_allow_list.or(record.network_allow_list.take());
        record.domain_allow_list = domain_allow_list.or(record.domain_allow_list.take());
    })
}

/// The interval in the path: whole minutes, at least `least`.
fn minutes(text: &str, least: i64) -> Result<i64, ApiError> {
    let minutes = text.parse().ok().filter(|minutes| *minutes >= least);
    minutes.ok_or_else(|| {
        ApiError::bad(format!("the interval must be a whole number of minutes, at least {least}"))
    })
}

type Interval = Path<(String, String)>;

pub(super) async fn auto_stop(
    State(engine): EngineState,
    Path((sandbox, text)): Interval,
) -> ApiResult {
    let minutes = minutes(&text, 0)?;
    update(&engine, &sandbox, |record| record.auto_stop = minutes)
}

pub(super) async fn auto_archive(
    State(engine): EngineState,
    Path((sandbox, text)): Interval,
) -> ApiResult {
    let minutes = minutes(&text, 0)?;
    update(&engine, &sandbox, |record| record.auto_archive = archive_minutes(minutes))
}

pub(super) async fn auto_delete(
    State(engine): EngineState,
    Path((sandbox, text)): Interval,
) -> ApiResult {
    let minutes = minutes(&text, -1)?;
    update(&engine, &sandbox, |record| record.auto_delete = minutes)
}

pub(super) async fn ttl(State(engine): EngineState, Path((sandbox, text)): Interval) -> ApiResult {
    let minutes = minutes(&text, 0)?;
    let at =
        (minutes > 0).then(|| engine.clock.now_ms().saturating_add(minutes.saturating_mul(60_000)));
    update(&engine, &sandbox, |record| record.destroy_at = at)
}

/// By name it answers the same and updates nothing, as Daytona does.
pub(super) async fn last_activity(
    State(engine): EngineState,
    Path(sandbox): Path<String>,
) -> ApiResult {
    let id = engine.store.id_of(&sandbox)?;
    if id == sandbox {
        engine.touch(&id);
    }
    Ok(StatusCode::CREATED.into_response())
}

pub(super) async fn toolbox_url(
    State(engine): EngineState,
    Path(sandbox): Path<String>,
) -> ApiResult {
    engine.store.record(&sandbox).ok_or_else(|| ApiError::no_sandbox(&sandbox))?;
    Ok(Json(json!({ "url": engine.toolbox_url })).into_response())
}
