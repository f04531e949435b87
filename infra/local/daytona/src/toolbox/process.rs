//! Commands, and sessions that run them one after another.

use axum::Json;
use axum::body::Bytes;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Deserialize;

use super::call::ToolboxSandbox;
use crate::api_error::ApiError;
use crate::http::{ApiResult, check_variables, parse};
use crate::init::protocol::{Environment, Op};

#[derive(Deserialize)]
struct Execute {
    #[serde(default)]
    command: String,
    cwd: Option<String>,
    #[serde(default)]
    envs: Option<Environment>,
    /// Seconds; `None` and 0 mean no limit.
    timeout: Option<u64>,
}

pub(super) async fn execute(sandbox: ToolboxSandbox, body: Bytes) -> ApiResult {
    let asked: Execute = parse(&body)?;
    let command = required_command(asked.command)?;
    let own = asked.envs.unwrap_or_default();
    check_variables(own.keys())?;
    let timeout_ms =
        asked.timeout.filter(|seconds| *seconds > 0).map(|seconds| seconds.saturating_mul(1000));
    let op = Op::Execute {
        command,
        env: sandbox.environment(own),
        cwd: asked.cwd.filter(|cwd| !cwd.is_empty()),
        timeout_ms,
    };
    sandbox.answer(op).await
}

fn required_command(command: String) -> Result<String, ApiError> {
    if command.trim().is_empty() {
        Err(ApiError::bad("bad request: command cannot be empty"))
    } else {
        Ok(command)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreateProcessSession {
    session_id: String,
}

pub(super) async fn create_session(sandbox: ToolboxSandbox, body: Bytes) -> ApiResult {
    let CreateProcessSession { session_id: session } = parse(&body)?;
    let env = sandbox.environment(Environment::new());
    sandbox.call(Op::SessionCreate { session, env }).await?;
    Ok(StatusCode::CREATED.into_response())
}

pub(super) async fn list_sessions(sandbox: ToolboxSandbox) -> ApiResult {
    sandbox.answer(Op::SessionList).await
}

/// Session in a path.
#[derive(Deserialize)]
pub(super) struct SessionPath {
    pub(super) session: String,
}

pub(super) async fn get_session(
    sandbox: ToolboxSandbox,
    Path(path): Path<SessionPath>,
) -> ApiResult {
    let session = path.session;
    sandbox.answer(Op::SessionGet { session }).await
}

pub(super) async fn delete_session(
    sandbox: ToolboxSandbox,
    Path(path): Path<SessionPath>,
) -> ApiResult {
    let session = path.session;
    sandbox.call(Op::SessionDelete { session }).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RunInSession {
    #[serde(default)]
    command: String,
    run_async: Option<bool>,
    r#async: Option<bool>,
}

pub(super) async fn run(
    sandbox: ToolboxSandbox,
    Path(path): Path<SessionPath>,
    body: Bytes,
) -> ApiResult {
    let asked: RunInSession = parse(&body)?;
    let wait = !asked.run_async.or(asked.r#async).unwrap_or(false);
    let op =
        Op::SessionRun { session: path.session, command: required_command(asked.command)?, wait };
    let value = sandbox.call(op).await?;
    let status = if wait { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(value)).into_response())
}

/// Command of a session in a path.
#[derive(Deserialize)]
pub(super) struct CommandPath {
    pub(super) session: String,
    pub(super) command: String,
}

pub(super) async fn get_command(
    sandbox: ToolboxSandbox,
    Path(path): Path<CommandPath>,
) -> ApiResult {
    let op = Op::SessionCommand { session: path.session, command: path.command };
    sandbox.answer(op).await
}

#[derive(Deserialize)]
struct InputBody {
    data: String,
}

pub(super) async fn input(
    sandbox: ToolboxSandbox,
    Path(path): Path<CommandPath>,
    body: Bytes,
) -> ApiResult {
    let InputBody { data } = parse(&body)?;
    let op = Op::SessionInput { session: path.session, command: path.command, data };
    sandbox.call(op).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
