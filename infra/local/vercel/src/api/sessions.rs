//! Sessions: read, list, stop, snapshot, and extend.

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use serde::Deserialize;
use serde_json::{Value, json};

use super::sandboxes::routes_view;
use super::{EngineState, PageQuery, check_project, json_answer, parse};
use crate::api_error::{ApiError, ApiResult};
use crate::life::{self, SessionEnd};
use crate::limits::SESSION_MS_MAX;
use crate::policy::EgressPolicy;
use crate::state::{Engine, LiveSandbox};

fn view(engine: &Engine, entry: &LiveSandbox, id: &str) -> Value {
    let session = entry.record.sessions.iter().find(|one| one.id == id);
    session.map_or(Value::Null, |session| engine.session_view(entry, session))
}

pub(super) async fn get(State(engine): EngineState, Path(id): Path<String>) -> ApiResult {
    let inner = engine.lock();
    let entry = inner.of_session(&id)?;
    json_answer(json!({ "session": view(&engine, entry, &id), "routes": routes_view(entry) }))
}

pub(super) async fn list(State(engine): EngineState, Query(query): Query<PageQuery>) -> ApiResult {
    check_project(&engine, query.project.as_ref())?;
    let inner = engine.lock();
    let is_of = |entry: &&LiveSandbox| {
        let wanted = query.name.as_ref();
        wanted.is_none_or(|name| *name == entry.record.name)
    };
    let of_each = inner.sandboxes.values().filter(is_of).flat_map(|entry| {
        let sessions = entry.record.sessions.iter();
        sessions.map(move |session| (entry, session))
    });
    let mut all: Vec<_> = of_each.collect();
    all.sort_by_key(|(_, session)| session.created_at);
    query.page(all, "sessions", |(entry, session)| engine.session_view(entry, session))
}

pub(super) async fn stop(State(engine): EngineState, Path(id): Path<String>) -> ApiResult {
    let name = life::end(&engine, &id, SessionEnd::Stop)?;
    life::settled(&engine, &name).await;
    let inner = engine.lock();
    let entry = inner.entry(&name)?;
    let mut answer = json!({ "session": view(&engine, entry, &id), "sandbox": engine.view(entry) });
    let kept = inner.snapshots.values().find(|one| one.source_session == id);
    if let Some(snapshot) = kept {
        answer["snapshot"] = snapshot.view();
    }
    json_answer(answer)
}

#[derive(Deserialize)]
struct Expiration {
    expiration: Option<u64>,
}

pub(super) async fn snapshot(
    State(engine): EngineState,
    Path(id): Path<String>,
    body: Bytes,
) -> ApiResult {
    let Expiration { expiration } = parse(&body)?;
    let name = life::end(&engine, &id, SessionEnd::Snapshot { expiration })?;
    life::settled(&engine, &name).await;
    let inner = engine.lock();
    let entry = inner.entry(&name)?;
    let made = inner.snapshots.values().find(|one| one.source_session == id);
    let made = made.ok_or_else(|| ApiError::internal("the snapshot could not be created"))?;
    json_answer(json!({ "snapshot": made.view(), "session": view(&engine, entry, &id) }))
}

#[derive(Deserialize)]
struct Extension {
    duration: u64,
}

pub(super) async fn extend(
    State(engine): EngineState,
    Path(id): Path<String>,
    body: Bytes,
) -> ApiResult {
    let Extension { duration } = parse(&body)?;
    let now = engine.clock.now_ms();
    let name = engine.change(|inner| {
        let name = inner.of_session(&id)?.record.name.clone();
        let entry = inner.sandboxes.get_mut(&name);
        let entry = entry.ok_or_else(|| ApiError::no_sandbox(&name))?;
        entry.running(&id)?;
        let session = entry.record.session_mut().ok_or_else(ApiError::stopped)?;
        let longer = session.timeout_ms.saturating_add(duration);
        if longer > SESSION_MS_MAX {
            return Err(ApiError::bad("A session lives at most 24 hours"));
        }
        session.timeout_ms = longer;
        session.updated_at = now;
        Ok(name)
    })?;
    let inner = engine.lock();
    json_answer(json!({ "session": view(&engine, inner.entry(&name)?, &id) }))
}

pub(super) async fn network_policy(
    State(engine): EngineState,
    Path(id): Path<String>,
    body: Bytes,
) -> ApiResult {
    let policy = EgressPolicy::parse(&parse::<Value>(&body)?)?;
    let name = engine.change(|inner| {
        let name = inner.of_session(&id)?.record.name.clone();
        let entry = inner.sandboxes.get_mut(&name);
        let entry = entry.ok_or_else(|| ApiError::no_sandbox(&name))?;
        entry.running(&id)?;
        entry.policy = Some(policy);
        Ok(name)
    })?;
    let inner = engine.lock();
    json_answer(json!({ "session": view(&engine, inner.entry(&name)?, &id) }))
}
