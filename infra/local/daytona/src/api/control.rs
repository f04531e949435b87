//! Test controls: the clock, faults, and losing a sandbox at once.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::json;

use crate::accounts::{FIRST, OrganizationNumber};
use crate::api_error::ApiError;
use crate::clock::iso;
use crate::faults::Armed;
use crate::http::{ApiResult, EngineState, parse};
use crate::lifecycle;
use crate::timers;

#[derive(Deserialize)]
struct Advance {
    advance_ms: u64,
}

pub(super) async fn clock(State(engine): EngineState, body: Bytes) -> ApiResult {
    let Advance { advance_ms } = parse(&body)?;
    engine.clock.advance(advance_ms);
    timers::sweep(&engine);
    Ok(Json(json!({ "now": iso(engine.clock.now_ms()) })).into_response())
}

#[derive(Deserialize)]
struct Arm {
    faults: Vec<Armed>,
}

pub(super) async fn arm(State(engine): EngineState, body: Bytes) -> ApiResult {
    let Arm { faults } = parse(&body)?;
    engine.faults.arm(faults).map_err(ApiError::bad)?;
    self::faults(State(engine)).await
}

pub(super) async fn faults(State(engine): EngineState) -> ApiResult {
    Ok(Json(json!({ "faults": engine.faults.list() })).into_response())
}

pub(super) async fn clear(State(engine): EngineState) -> ApiResult {
    engine.faults.clear();
    self::faults(State(engine)).await
}

#[derive(Deserialize)]
struct KeyBody {
    key: String,
    #[serde(default)]
    account: Option<OrganizationNumber>,
}

/// Adds a key; without an account it belongs to another organisation.
pub(super) async fn add_key(State(engine): EngineState, body: Bytes) -> ApiResult {
    let KeyBody { key, account } = parse(&body)?;
    let account = account.unwrap_or(FIRST + 1);
    engine.accounts.add(&key, account);
    Ok(Json(json!({ "account": account })).into_response())
}

pub(super) async fn revoke_key(State(engine): EngineState, body: Bytes) -> ApiResult {
    let KeyBody { key, .. } = parse(&body)?;
    engine.accounts.revoke(&key);
    Ok(Json(json!({})).into_response())
}

#[derive(Deserialize)]
struct Lose {
    sandbox: String,
}

pub(super) async fn lose(State(engine): EngineState, body: Bytes) -> ApiResult {
    let Lose { sandbox } = parse(&body)?;
    let id = engine.store.id_of(&sandbox)?;
    lifecycle::lose(&engine, &id).await;
    Ok(Json(json!({ "lost": id })).into_response())
}
