//! Test controls: the clock, faults, and losing a sandbox at once.

use axum::body::Bytes;
use axum::extract::State;
use serde::Deserialize;
use serde_json::json;

use super::{EngineState, json_answer, parse};
use crate::api_error::{ApiError, ApiResult};
use crate::faults::Armed;
use crate::{life, timers};

#[derive(Deserialize)]
struct Advance {
    advance_ms: u64,
}

pub(super) async fn clock(State(engine): EngineState, body: Bytes) -> ApiResult {
    let Advance { advance_ms } = parse(&body)?;
    engine.clock.advance(advance_ms);
    timers::sweep(&engine);
    json_answer(json!({ "now_ms": engine.clock.now_ms() }))
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
    json_answer(json!({ "faults": engine.faults.list() }))
}

pub(super) async fn clear(State(engine): EngineState) -> ApiResult {
    engine.faults.clear();
    self::faults(State(engine)).await
}

#[derive(Deserialize)]
struct Lose {
    sandbox: String,
}

pub(super) async fn lose(State(engine): EngineState, body: Bytes) -> ApiResult {
    let Lose { sandbox } = parse(&body)?;
    life::remove(&engine, &sandbox, true).await?;
    json_answer(json!({ "lost": sandbox }))
}
