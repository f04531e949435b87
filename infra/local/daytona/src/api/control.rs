//! A test's controls: the clock, faults, and losing a sandbox at once.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::json;

use super::{Answer, parse};
use crate::clock::iso;
use crate::fail::Fail;
use crate::faults::Armed;
use crate::lifecycle;
use crate::shared::Context;
use crate::timers;

#[derive(Deserialize)]
struct Advance {
    advance_ms: u64,
}

pub(super) async fn clock(State(shared): State<Context>, body: Bytes) -> Answer {
    let Advance { advance_ms } = parse(&body)?;
    shared.clock.advance(advance_ms);
    timers::sweep(&shared);
    Ok(Json(json!({ "now": iso(shared.clock.now_ms()) })).into_response())
}

#[derive(Deserialize)]
struct Arm {
    faults: Vec<Armed>,
}

pub(super) async fn arm(State(shared): State<Context>, body: Bytes) -> Answer {
    let Arm { faults } = parse(&body)?;
    shared.faults.arm(faults).map_err(Fail::bad)?;
    self::faults(State(shared)).await
}

pub(super) async fn faults(State(shared): State<Context>) -> Answer {
    Ok(Json(json!({ "faults": shared.faults.list() })).into_response())
}

pub(super) async fn clear(State(shared): State<Context>) -> Answer {
    shared.faults.clear();
    self::faults(State(shared)).await
}

#[derive(Deserialize)]
struct Lose {
    sandbox: String,
}

pub(super) async fn lose(State(shared): State<Context>, body: Bytes) -> Answer {
    let Lose { sandbox } = parse(&body)?;
    let id = shared.store.id_of(&sandbox)?;
    lifecycle::lose(&shared, &id).await;
    Ok(Json(json!({ "lost": id })).into_response())
}
