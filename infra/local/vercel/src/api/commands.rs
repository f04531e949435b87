//! Commands of a session: started by their arguments, followed as JSON lines, signalled.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bobbin_local_sandbox::confine::Confinement;
use bobbin_local_sandbox::init::protocol::Op;
use bobbin_local_sandbox::init_process::InitProcess;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{EngineState, json_answer, parse};
use crate::api_error::{ApiError, ApiResult};
use crate::limits::{COMMANDS_MAX, FOLLOW_MS_MAX};
use crate::state::{SessionCommand, SharedEngine};

/// Answer lines buffered for their reader.
const LINES_MAX: usize = 64;
/// Variable with an agent server's listen address. Where sandboxes share the machine's network, a server open to its
/// own machine would be open to the outside of this one.
const LISTEN_VARIABLE: &str = "OPENCODE_HOSTNAME";

#[derive(Deserialize)]
struct CommandBody {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    cwd: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    wait: bool,
    #[serde(default)]
    logs: bool,
    timeout: Option<u64>,
}

/// A command that runs or ran in a session.
#[derive(Clone)]
struct FoundCommand {
    session: String,
    id: String,
    command: SessionCommand,
    process: Arc<InitProcess>,
}

impl FoundCommand {
    fn view(&self, exit: &Value, now: i64) -> Value {
        let command = &self.command;
        let mut view = json!({
            "id": self.id, "name": command.name, "args": command.args, "cwd": command.cwd, "sessionId": self.session,
            "exitCode": exit, "startedAt": command.started_at,
        });
        if !exit.is_null() {
            view["durationMs"] = json!(now.saturating_sub(command.started_at));
        }
        json!({ "command": view })
    }

    /// Output from this piece on; `None` if the session has ended.
    async fn follow(&self, from: usize, wait_ms: u64) -> Option<Result<Value, ApiError>> {
        let op = Op::Follow { command: self.id.clone(), from, wait_ms };
        let answered = self.process.call(op).await?;
        Some(answered.map_err(ApiError::from))
    }

    fn session_runs(&self, engine: &SharedEngine) -> bool {
        let inner = engine.lock();
        let entry = inner.of_session(&self.session);
        entry.is_ok_and(|entry| entry.running(&self.session).is_ok())
    }

    /// Waits for its exit; returns its status.
    async fn ended(&self) -> Result<Value, ApiError> {
        let mut from = 0;
        loop {
            let seen = self.follow(from, FOLLOW_MS_MAX).await;
            let seen = seen.ok_or_else(ApiError::stopped)??;
            if !seen["exit"].is_null() {
                return Ok(seen["exit"].clone());
            }
            from = at(&seen);
        }
    }
}

fn at(seen: &Value) -> usize {
    let next = seen["next"].as_u64().unwrap_or_default();
    usize::try_from(next).unwrap_or(usize::MAX)
}

fn find(engine: &SharedEngine, session: &str, id: &str) -> Result<FoundCommand, ApiError> {
    let inner = engine.lock();
    let entry = inner.of_session(session)?;
    let process = entry.running(session)?;
    let command = entry.commands.get(id).cloned();
    let command = command.ok_or_else(|| ApiError::not_found(format!("Command not found: {id}")))?;
    Ok(FoundCommand { session: session.to_owned(), id: id.to_owned(), command, process })
}

pub(super) async fn run(
    State(engine): EngineState,
    Path(session): Path<String>,
    body: Bytes,
) -> ApiResult {
    let asked: CommandBody = parse(&body)?;
    let (name, process, cwd) = {
        let inner = engine.lock();
        let entry = inner.of_session(&session)?;
        let process = entry.running(&session)?;
        (entry.record.name.clone(), process, engine.cwd(&entry.record))
    };
    let cwd = asked.cwd.unwrap_or(cwd);
    let mut env = asked.env;
    if engine.machine.confinement != Confinement::Bubblewrap
        && let Some(address) = env.get_mut(LISTEN_VARIABLE)
    {
        "127.0.0.1".clone_into(address);
    }
    let argv = std::iter::once(asked.command.clone()).chain(asked.args.clone());
    let op = Op::Spawn {
        argv: argv.collect(),
        env,
        cwd: Some(cwd.clone()),
        timeout_ms: asked.timeout.filter(|ms| *ms > 0),
    };
    let started_at = engine.clock.now_ms();
    let spawned = process.call(op).await.ok_or_else(ApiError::stopped)??;
    let id = spawned["id"].as_str().unwrap_or_default().to_owned();
    let command = SessionCommand { name: asked.command, args: asked.args, cwd, started_at };
    if let Some(entry) = engine.lock().sandboxes.get_mut(&name) {
        if entry.commands.len() >= COMMANDS_MAX {
            entry.commands.pop_first();
        }
        entry.commands.insert(id.clone(), command.clone());
    }
    let found = FoundCommand { session, id, command, process };
    if asked.wait {
        return Ok(stream(engine, found, true, asked.logs));
    }
    json_answer(found.view(&Value::Null, started_at))
}

#[derive(Deserialize)]
pub(super) struct Wait {
    wait: Option<String>,
}

pub(super) async fn get(
    State(engine): EngineState,
    Path((session, id)): Path<(String, String)>,
    Query(query): Query<Wait>,
) -> ApiResult {
    let found = find(&engine, &session, &id)?;
    let exit = if query.wait.as_deref() == Some("true") {
        found.ended().await?
    } else {
        let seen = found.follow(usize::MAX, 0).await;
        seen.ok_or_else(ApiError::stopped)??["exit"].clone()
    };
    json_answer(found.view(&exit, engine.clock.now_ms()))
}

pub(super) async fn logs(
    State(engine): EngineState,
    Path((session, id)): Path<(String, String)>,
) -> ApiResult {
    let found = find(&engine, &session, &id)?;
    Ok(stream(engine, found, false, true))
}

#[derive(Deserialize)]
struct Kill {
    signal: Option<i32>,
}

/// Default signal of a kill.
const SIGTERM: i32 = 15;

pub(super) async fn kill(
    State(engine): EngineState,
    Path((session, id)): Path<(String, String)>,
    body: Bytes,
) -> ApiResult {
    let Kill { signal } = parse(&body)?;
    let found = find(&engine, &session, &id)?;
    let op = Op::Signal { command: id, signal: signal.unwrap_or(SIGTERM) };
    let told = found.process.call(op).await;
    told.ok_or_else(ApiError::stopped)??;
    let seen = found.follow(usize::MAX, 0).await;
    let exit = seen.ok_or_else(ApiError::stopped)??["exit"].clone();
    json_answer(found.view(&exit, engine.clock.now_ms()))
}

/// Streams a command as JSON lines, from its beginning to its end.
fn stream(
    engine: SharedEngine,
    found: FoundCommand,
    with_command: bool,
    with_logs: bool,
) -> Response {
    let (lines, queue) = mpsc::channel::<Value>(LINES_MAX);
    tokio::spawn(async move {
        // The reader may be gone; the command goes on.
        let _ = tell(&engine, found, with_command, with_logs, lines).await;
    });
    let body = futures::stream::unfold(queue, async |mut queue| {
        let line: Value = queue.recv().await?;
        Some((Ok::<_, Infallible>(format!("{line}\n")), queue))
    });
    // Exactly this: Vercel's client rejects a charset after it.
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    (kind, Body::from_stream(body)).into_response()
}

async fn tell(
    engine: &SharedEngine,
    found: FoundCommand,
    with_command: bool,
    with_logs: bool,
    lines: mpsc::Sender<Value>,
) -> Result<(), mpsc::error::SendError<Value>> {
    let mut from = 0;
    if with_command {
        let began = found.command.started_at;
        lines.send(found.view(&Value::Null, began)).await?;
    }
    loop {
        let seen = match found.follow(from, FOLLOW_MS_MAX).await {
            Some(Ok(seen)) => seen,
            Some(Err(error)) => return lines.send(broken(&error)).await,
            None => return lines.send(broken(&ApiError::stopped())).await,
        };
        from = at(&seen);
        if with_logs {
            for piece in seen["pieces"].as_array().into_iter().flatten() {
                let line = json!({ "stream": piece[0], "data": piece[1] });
                lines.send(line).await?;
            }
        }
        if !seen["exit"].is_null() {
            // A command that ended with its session has not exited by itself.
            if !found.session_runs(engine) {
                return lines.send(broken(&ApiError::stopped())).await;
            }
            if with_command {
                let ended = found.view(&seen["exit"], engine.clock.now_ms());
                lines.send(ended).await?;
            }
            return Ok(());
        }
    }
}

fn broken(error: &ApiError) -> Value {
    json!({ "stream": "error", "data": { "code": error.code, "message": error.message } })
}
