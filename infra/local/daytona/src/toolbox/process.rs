//! Commands, and the sessions in which they run one after the other.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use serde::Deserialize;

use super::call::{Sandbox, call, environment, json as answer};
use crate::api_error::ApiError;
use crate::http::{Answer, EngineState, check_variables, parse};
use crate::init::protocol::Op;

#[derive(Deserialize)]
struct Execute {
    #[serde(default)]
    command: String,
    cwd: Option<String>,
    #[serde(default)]
    envs: Option<BTreeMap<String, String>>,
    /// Seconds; none and 0 mean no limit.
    timeout: Option<u64>,
}

pub(super) async fn execute(
    (State(engine), Path(id)): Sandbox,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let asked: Execute = parse(&body)?;
    if asked.command.trim().is_empty() {
        return Err(ApiError::bad("bad request: command cannot be empty"));
    }
    let own = asked.envs.unwrap_or_default();
    check_variables(own.keys())?;
    let timeout_ms = asked
        .timeout
        .filter(|seconds| *seconds > 0)
        .map(|seconds| seconds.saturating_mul(1000));
    let env = environment(&engine, &id, own);
    let cwd = asked.cwd.filter(|cwd| !cwd.is_empty());
    answer(
        call(
            &engine,
            &id,
            &headers,
            Op::Execute {
                command: asked.command,
                env,
                cwd,
                timeout_ms,
            },
        )
        .await?,
    )
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreateSession {
    session_id: String,
}

pub(super) async fn create_session(
    (State(engine), Path(id)): Sandbox,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let CreateSession {
        session_id: session,
    } = parse(&body)?;
    let env = environment(&engine, &id, BTreeMap::new());
    call(&engine, &id, &headers, Op::SessionCreate { session, env }).await?;
    Ok(StatusCode::CREATED.into_response())
}

pub(super) async fn list_sessions(
    (State(engine), Path(id)): Sandbox,
    headers: HeaderMap,
) -> Answer {
    answer(call(&engine, &id, &headers, Op::SessionList).await?)
}

/// What a handler of one session is given.
pub(super) type SessionPath = (EngineState, Path<(String, String)>);

pub(super) async fn get_session(
    (State(engine), Path((id, session))): SessionPath,
    headers: HeaderMap,
) -> Answer {
    answer(call(&engine, &id, &headers, Op::SessionGet { session }).await?)
}

pub(super) async fn delete_session(
    (State(engine), Path((id, session))): SessionPath,
    headers: HeaderMap,
) -> Answer {
    call(&engine, &id, &headers, Op::SessionDelete { session }).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    #[serde(default)]
    command: String,
    run_async: Option<bool>,
    r#async: Option<bool>,
}

pub(super) async fn run(
    (State(engine), Path((id, session))): SessionPath,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let asked: Run = parse(&body)?;
    if asked.command.trim().is_empty() {
        return Err(ApiError::bad("bad request: command cannot be empty"));
    }
    let wait = !asked.run_async.or(asked.r#async).unwrap_or(false);
    let value = call(
        &engine,
        &id,
        &headers,
        Op::SessionRun {
            session,
            command: asked.command,
            wait,
        },
    )
    .await?;
    let status = if wait {
        StatusCode::OK
    } else {
        StatusCode::ACCEPTED
    };
    Ok((status, Json(value)).into_response())
}

/// What a handler of one command of a session is given.
pub(super) type CommandPath = (EngineState, Path<(String, String, String)>);

pub(super) async fn get_command(
    (State(engine), Path((id, session, command))): CommandPath,
    headers: HeaderMap,
) -> Answer {
    answer(
        call(
            &engine,
            &id,
            &headers,
            Op::SessionCommand { session, command },
        )
        .await?,
    )
}

#[derive(Deserialize)]
struct Input {
    data: String,
}

pub(super) async fn input(
    (State(engine), Path((id, session, command))): CommandPath,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let Input { data } = parse(&body)?;
    call(
        &engine,
        &id,
        &headers,
        Op::SessionInput {
            session,
            command,
            data,
        },
    )
    .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
