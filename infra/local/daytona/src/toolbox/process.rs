//! Commands, sessions and what there is to know about a running sandbox.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Sandbox, call, environment, json as answer};
use crate::api::{Answer, parse};
use crate::fail::Fail;
use crate::init::protocol::Op;
use crate::limits::POLL_MS;
use crate::network::PROXY_PORT;
use crate::preview::{dial, real_port};
use crate::processes::{Mark, listening};
use crate::shared::Context;

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
    (State(shared), Path(id)): Sandbox,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let asked: Execute = parse(&body)?;
    if asked.command.trim().is_empty() {
        return Err(Fail::bad("bad request: command cannot be empty"));
    }
    let own = asked.envs.unwrap_or_default();
    if let Some(name) = own.keys().find(|name| !is_variable(name)) {
        return Err(Fail::bad(format!(
            "bad request: invalid environment variable name: {name}"
        )));
    }
    let timeout_ms = asked
        .timeout
        .filter(|seconds| *seconds > 0)
        .map(|seconds| seconds.saturating_mul(1000));
    let env = environment(&shared, &id, own);
    let cwd = asked.cwd.filter(|cwd| !cwd.is_empty());
    answer(
        call(
            &shared,
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

fn is_variable(name: &str) -> bool {
    let mut letters = name.chars();
    letters
        .next()
        .is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreateSession {
    session_id: String,
}

pub(super) async fn create_session(
    (State(shared), Path(id)): Sandbox,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let CreateSession {
        session_id: session,
    } = parse(&body)?;
    let env = environment(&shared, &id, BTreeMap::new());
    call(&shared, &id, &headers, Op::SessionCreate { session, env }).await?;
    Ok(StatusCode::CREATED.into_response())
}

pub(super) async fn list_sessions(
    (State(shared), Path(id)): Sandbox,
    headers: HeaderMap,
) -> Answer {
    answer(call(&shared, &id, &headers, Op::SessionList).await?)
}

type Session = (State<Context>, Path<(String, String)>);

pub(super) async fn get_session(
    (State(shared), Path((id, session))): Session,
    headers: HeaderMap,
) -> Answer {
    answer(call(&shared, &id, &headers, Op::SessionGet { session }).await?)
}

pub(super) async fn delete_session(
    (State(shared), Path((id, session))): Session,
    headers: HeaderMap,
) -> Answer {
    call(&shared, &id, &headers, Op::SessionDelete { session }).await?;
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
    (State(shared), Path((id, session))): Session,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let asked: Run = parse(&body)?;
    if asked.command.trim().is_empty() {
        return Err(Fail::bad("bad request: command cannot be empty"));
    }
    let wait = !asked.run_async.or(asked.r#async).unwrap_or(false);
    let value = call(
        &shared,
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

type Command = (State<Context>, Path<(String, String, String)>);

pub(super) async fn get_command(
    (State(shared), Path((id, session, command))): Command,
    headers: HeaderMap,
) -> Answer {
    answer(
        call(
            &shared,
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
    (State(shared), Path((id, session, command))): Command,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let Input { data } = parse(&body)?;
    call(
        &shared,
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

/// A socket when the request asks for an upgrade (`follow=true`), else what there is now.
type Follow = Result<WebSocketUpgrade, WebSocketUpgradeRejection>;

pub(super) async fn logs(
    (State(shared), Path((id, session, command))): Command,
    headers: HeaderMap,
    follow: Follow,
) -> Answer {
    show_logs(
        shared,
        Which {
            id,
            session,
            command,
        },
        headers,
        follow,
    )
    .await
}

/// The logs of the session's first command: `…/session/entrypoint/logs`.
pub(super) async fn first_logs(
    (State(shared), Path((id, session))): Session,
    headers: HeaderMap,
    follow: Follow,
) -> Answer {
    show_logs(
        shared,
        Which {
            id,
            session,
            command: String::new(),
        },
        headers,
        follow,
    )
    .await
}

struct Which {
    id: String,
    session: String,
    command: String,
}

async fn read_logs(shared: &Context, which: &Which, headers: &HeaderMap) -> Result<Value, Fail> {
    let op = Op::SessionLogs {
        session: which.session.clone(),
        command: which.command.clone(),
    };
    call(shared, &which.id, headers, op).await
}

/// Without the header that newer SDKs send, logs are plain text, both streams merged.
async fn show_logs(shared: Context, which: Which, headers: HeaderMap, follow: Follow) -> Answer {
    let logs = read_logs(&shared, &which, &headers).await?;
    if let Ok(upgrade) = follow {
        return Ok(upgrade.on_upgrade(move |socket| follow_logs(shared, which, headers, socket)));
    }
    if headers.contains_key("x-daytona-sdk-version") {
        return answer(
            json!({ "output": logs["output"], "stdout": logs["stdout"], "stderr": logs["stderr"] }),
        );
    }
    let text = |stream: &str| logs[stream].as_str().unwrap_or_default().to_owned();
    Ok((text("stdout") + &text("stderr")).into_response())
}

/// Sends what is new, each piece with its stream's three marks in front, until the command has ended.
async fn follow_logs(shared: Context, which: Which, headers: HeaderMap, mut socket: WebSocket) {
    let mut sent = BTreeMap::from([("stdout", 0), ("stderr", 0)]);
    while let Ok(logs) = read_logs(&shared, &which, &headers).await {
        for (stream, mark) in [("stdout", 1_u8), ("stderr", 2)] {
            let text = logs[stream].as_str().unwrap_or_default();
            let new = text.get(sent[stream]..).unwrap_or_default();
            if new.is_empty() {
                continue;
            }
            let piece = [&[mark; 3], new.as_bytes()].concat();
            sent.insert(stream, text.len());
            if socket.send(Message::Binary(piece.into())).await.is_err() {
                return;
            }
        }
        if !logs["exitCode"].is_null() {
            break;
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(POLL_MS * 5)) => {}
            message = socket.recv() => if !matches!(message, Some(Ok(_))) { return },
        }
    }
    // The other side may have closed first.
    let end = CloseFrame {
        code: close_code::NORMAL,
        reason: "".into(),
    };
    let _ = socket.send(Message::Close(Some(end))).await;
}

/// The home is the work directory.
pub(super) async fn work_dir((State(shared), Path(id)): Sandbox) -> Answer {
    let record = started(&shared, &id)?;
    answer(json!({ "dir": shared.store.place(&record.folder).join("home") }))
}

fn started(shared: &Context, id: &str) -> Result<crate::record::Record, Fail> {
    let inner = shared.store.lock();
    let entry = inner.sandboxes.get(id);
    let entry = entry
        .ok_or_else(|| Fail::new(404, format!("not found: sandbox container not found: {id}")))?;
    if entry.guest.is_some() {
        Ok(entry.record.clone())
    } else {
        Err(Fail::not_started(id))
    }
}

/// Ports on which the sandbox's own processes listen; the one that stands for 4096 is shown as 4096.
pub(super) async fn ports((State(shared), Path(id)): Sandbox) -> Answer {
    let record = started(&shared, &id)?;
    let mark = Mark::one(&shared.state_dir, &id);
    let seen = tokio::task::spawn_blocking(move || listening(&mark.pids()))
        .await
        .map_err(Fail::internal)?;
    // What leads out of the sandbox is none of its servers.
    let is_way = |port: &u16| *port == PROXY_PORT || shared.ways.ports.contains(port);
    let mut ports: Vec<u16> = seen
        .into_iter()
        .filter(|port| !is_way(port))
        .map(|port| if port == record.port { 4096 } else { port })
        .collect();
    ports.sort_unstable();
    answer(json!({ "ports": ports }))
}

pub(super) async fn port_in_use(
    State(shared): State<Context>,
    Path((id, port)): Path<(String, u16)>,
) -> Answer {
    let record = started(&shared, &id)?;
    if !(3_000..=9_999).contains(&port) {
        return Err(Fail::bad(
            "bad request: port out of range: must be between 3000 and 9999",
        ));
    }
    let connected = dial(&shared, &id, real_port(&record, port)).await;
    answer(json!({ "isInUse": connected.is_ok() }))
}
