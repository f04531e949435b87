//! Snapshots: images, which pass through the states of a build, with a log, although nothing is built; and copies of
//! sandboxes' folders. Both can be deactivated.

use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::{Value, json};

use super::page::ListQuery;
use crate::api_error::ApiError;
use crate::engine::SharedEngine;
use crate::faults::Fault;
use crate::http::{ApiResult, EngineState, parse};
use crate::lifecycle;
use crate::limits::SNAPSHOTS_MAX;
use crate::record::{BuildRequest, entrypoint_of};
use crate::snapshot::{StoredSnapshot, StoredSnapshots, find};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreateSnapshotBody {
    name: String,
    image_name: Option<String>,
    entrypoint: Option<Vec<String>>,
    build_info: Option<BuildRequest>,
    cpu: Option<i64>,
    memory: Option<i64>,
    disk: Option<i64>,
}

pub(super) async fn create(State(engine): EngineState, body: Bytes) -> ApiResult {
    let asked: CreateSnapshotBody = parse(&body)?;
    let mut snapshot = StoredSnapshot::new(asked.name, engine.clock.now_ms());
    snapshot.dockerfile = asked.build_info.and_then(|build| build.dockerfile_content);
    if snapshot.dockerfile.is_some() {
        "building".clone_into(&mut snapshot.state);
    }
    snapshot.entrypoint = asked
        .entrypoint
        .or_else(|| snapshot.dockerfile.as_deref().map(entrypoint_of))
        .unwrap_or_default();
    snapshot.image = asked.image_name;
    snapshot.cpu = asked.cpu.unwrap_or(snapshot.cpu);
    snapshot.memory = asked.memory.unwrap_or(snapshot.memory);
    snapshot.disk = asked.disk.unwrap_or(snapshot.disk);
    {
        let snapshots = &mut engine.store.lock().snapshots;
        if snapshots.values().any(|other| other.name == snapshot.name) {
            return Err(ApiError::new(
                409,
                format!("Snapshot with name \"{}\" already exists", snapshot.name),
            ));
        }
        check_quota(snapshots)?;
        snapshots.insert(snapshot.id.clone(), snapshot.clone());
        engine.store.save_snapshots(snapshots)?;
    }
    go_through(&engine, &snapshot.id, &["pulling", "active"]);
    Ok(Json(snapshot.to_json()).into_response())
}

fn check_quota(snapshots: &StoredSnapshots) -> Result<(), ApiError> {
    if snapshots.len() < SNAPSHOTS_MAX {
        return Ok(());
    }
    Err(ApiError::bad(format!("Snapshot quota exceeded. Maximum allowed: {SNAPSHOTS_MAX}")))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreateSandboxSnapshot {
    name: String,
    #[serde(default)]
    include_memory: bool,
}

/// Starts a snapshot of a sandbox. Whether the name is free is checked only after the copy, as at Daytona.
pub(super) async fn of_sandbox(
    State(engine): EngineState,
    Path(sandbox): Path<String>,
    body: Bytes,
) -> ApiResult {
    let asked: CreateSandboxSnapshot = parse(&body)?;
    let id = engine.store.id_of(&sandbox)?;
    if asked.include_memory {
        return Err(ApiError::bad("includeMemory is not supported for container sandboxes"));
    }
    check_quota(&engine.store.lock().snapshots)?;
    let record = lifecycle::begin_snapshot(&engine, &id, asked.name)?;
    Ok(Json(record.full(&engine.toolbox_url)).into_response())
}

/// Goes through the states, one per transition time; or to `build_failed` if that fault is armed.
fn go_through(engine: &SharedEngine, id: &str, states: &'static [&'static str]) {
    let (engine, id) = (engine.clone(), id.to_owned());
    let tasks = engine.machine.tasks.clone();
    tasks.spawn(async move {
        for state in states {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(engine.run.transition_ms)) => {}
                () = engine.stopping.cancelled() => return,
            }
            if !advance(&engine, &id, state) {
                return;
            }
        }
    });
}

/// Sets a snapshot's next state; false if it has failed or is gone.
fn advance(engine: &SharedEngine, id: &str, next: &str) -> bool {
    let now = engine.clock.now_ms();
    let snapshots = &mut engine.store.lock().snapshots;
    let Some(snapshot) = snapshots.get_mut(id) else {
        return false;
    };
    let names = [snapshot.id.clone(), snapshot.name.clone()];
    let failed = engine.faults.take(&names, |fault| match fault {
        Fault::FailBuild { .. } => Some(()),
        _ => None,
    });
    let state = failed.map_or(next, |()| "build_failed");
    snapshot.error = failed.map(|()| "the build failed".to_owned());
    state.clone_into(&mut snapshot.state);
    snapshot.updated_at = now;
    if let Err(error) = engine.store.save_snapshots(snapshots) {
        tracing::error!(reason = error.message, "the snapshots could not be written");
    }
    failed.is_none()
}

fn found(engine: &SharedEngine, id_or_name: &str) -> Result<StoredSnapshot, ApiError> {
    find(&engine.store.lock().snapshots, id_or_name)
}

pub(super) async fn get(State(engine): EngineState, Path(snapshot): Path<String>) -> ApiResult {
    Ok(Json(found(&engine, &snapshot)?.to_json()).into_response())
}

/// An inactive one is pulled again; any other is refused, as Daytona does.
pub(super) async fn activate(
    State(engine): EngineState,
    Path(snapshot): Path<String>,
) -> ApiResult {
    let mut snapshot = found(&engine, &snapshot)?;
    if snapshot.state != "inactive" {
        return Err(ApiError::bad(format!(
            "Snapshot {} is already {}",
            snapshot.name, snapshot.state
        )));
    }
    "pulling".clone_into(&mut snapshot.state);
    engine.store.put_snapshot(snapshot.clone())?;
    go_through(&engine, &snapshot.id, &["active"]);
    Ok(Json(snapshot.to_json()).into_response())
}

/// Deactivates a snapshot, as Daytona does itself after two unused weeks.
pub(super) async fn deactivate(
    State(engine): EngineState,
    Path(snapshot): Path<String>,
) -> ApiResult {
    let mut snapshot = found(&engine, &snapshot)?;
    if snapshot.state != "active" {
        return Err(ApiError::bad(format!("Snapshot {} is not active", snapshot.name)));
    }
    "inactive".clone_into(&mut snapshot.state);
    engine.store.put_snapshot(snapshot)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// URL of a build log.
pub(super) async fn build_logs_url(
    State(engine): EngineState,
    Path(snapshot): Path<String>,
) -> ApiResult {
    let snapshot = found(&engine, &snapshot)?;
    let url = format!("http://127.0.0.1:{}/api/snapshots/{}/build-logs", engine.port, snapshot.id);
    Ok(Json(json!({ "url": url })).into_response())
}

/// The log so far: a line for each instruction, and the result.
pub(super) async fn build_logs(
    State(engine): EngineState,
    Path(snapshot): Path<String>,
) -> ApiResult {
    let snapshot = found(&engine, &snapshot)?;
    let dockerfile = snapshot.dockerfile.unwrap_or_default();
    let instruction = |line: &&str| {
        let word = line.split(' ').next().unwrap_or_default();
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase())
    };
    let steps: Vec<&str> = dockerfile.lines().filter(instruction).collect();
    let mut log: String = steps
        .iter()
        .enumerate()
        .map(|(at, step)| format!("Step {}/{} : {step}\n", at + 1, steps.len()))
        .collect();
    match snapshot.state.as_str() {
        "build_failed" => log.push_str("ERROR: the build failed\n"),
        "active" => log.push_str("Built, nothing was run: this provider's sandboxes are folders\n"),
        _ => {}
    }
    Ok(([("content-type", "text/plain; charset=utf-8")], log).into_response())
}

/// Reports removing for one transition time; its name is taken until then.
pub(super) async fn delete(State(engine): EngineState, Path(snapshot): Path<String>) -> ApiResult {
    let mut snapshot = found(&engine, &snapshot)?;
    if snapshot.general {
        return Err(ApiError::new(403, "General snapshots cannot be deleted"));
    }
    "removing".clone_into(&mut snapshot.state);
    let id = snapshot.id.clone();
    engine.store.put_snapshot(snapshot)?;
    let tasks = engine.machine.tasks.clone();
    tasks.spawn(async move {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(engine.run.transition_ms)) => {}
            // Finished at the next start.
            () = engine.stopping.cancelled() => return,
        }
        let removed = tokio::task::spawn_blocking(move || engine.store.drop_snapshot(&id)).await;
        if let Ok(Err(error)) = removed {
            tracing::warn!(reason = error.message, "a snapshot's files could not be removed");
        }
    });
    Ok(StatusCode::OK.into_response())
}

pub(super) async fn list(State(engine): EngineState, Query(page): Query<ListQuery>) -> ApiResult {
    let limit = page.limit()?;
    let number = page.page.unwrap_or(1).max(1);
    let mut found: Vec<StoredSnapshot> = engine.store.lock().snapshots.values().cloned().collect();
    found.retain(|one| page.name.as_ref().is_none_or(|name| one.name.contains(name.as_str())));
    found.retain(|one| page.source.is_none() || one.source == page.source);
    found.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
    if page.order.as_deref() != Some("asc") {
        found.reverse();
    }
    let items: Vec<Value> = found
        .iter()
        .skip((number - 1).saturating_mul(limit))
        .take(limit)
        .map(StoredSnapshot::to_json)
        .collect();
    let pages = found.len().div_ceil(limit);
    Ok(Json(json!({ "items": items, "total": found.len(), "page": number, "totalPages": pages }))
        .into_response())
}
