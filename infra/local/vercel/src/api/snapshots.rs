//! Snapshots by id: read, list and delete.

use axum::extract::{Path, Query, State};
use serde_json::json;

use super::{EngineState, PageQuery, check_project, json_answer};
use crate::api_error::{ApiError, ApiResult};
use crate::life;
use crate::record::SnapshotRecord;

pub(super) async fn list(State(engine): EngineState, Query(query): Query<PageQuery>) -> ApiResult {
    check_project(&engine, query.project.as_ref())?;
    let now = engine.clock.now_ms();
    let inner = engine.lock();
    let is_listed = |one: &&SnapshotRecord| {
        let wanted = query.name.as_ref();
        one.is_there(now) && wanted.is_none_or(|name| *name == one.sandbox)
    };
    let mut all: Vec<&SnapshotRecord> = inner.snapshots.values().filter(is_listed).collect();
    all.sort_by_key(|one| one.created_at);
    query.page(all, "snapshots", SnapshotRecord::view)
}

pub(super) async fn get(State(engine): EngineState, Path(id): Path<String>) -> ApiResult {
    let inner = engine.lock();
    let found = inner.snapshots.get(&id);
    let found = found.ok_or_else(|| ApiError::not_found(format!("Snapshot not found: {id}")))?;
    json_answer(json!({ "snapshot": found.view() }))
}

pub(super) async fn delete(State(engine): EngineState, Path(id): Path<String>) -> ApiResult {
    let now = engine.clock.now_ms();
    let deleted = engine.change(|inner| {
        let found = inner.snapshots.get_mut(&id).filter(|one| !one.is_deleted);
        let found = found.ok_or_else(|| ApiError::no_snapshot(&id))?;
        found.is_deleted = true;
        found.updated_at = now;
        Ok(found.view())
    })?;
    life::sweep_copies(&engine).await;
    json_answer(json!({ "snapshot": deleted }))
}
