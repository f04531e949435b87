//! The logs of a session's commands: as they are now, or as they are written.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use serde_json::{Value, json};

use super::call::{call, json as answer};
use super::process::{CommandPath, SessionPath};
use crate::api_error::ApiError;
use crate::engine::{Engine, SharedEngine};
use crate::http::Answer;
use crate::init::protocol::Op;
use crate::limits::POLL_MS;

/// A socket when the request asks for an upgrade (`follow=true`), else what there is now.
type Follow = Result<WebSocketUpgrade, WebSocketUpgradeRejection>;

/// Whose logs are meant; an empty command is the session's first.
struct LogsOf {
    id: String,
    session: String,
    command: String,
}

pub(super) async fn of_command(
    (State(engine), Path((id, session, command))): CommandPath,
    headers: HeaderMap,
    follow: Follow,
) -> Answer {
    let of = LogsOf {
        id,
        session,
        command,
    };
    show(engine, of, headers, follow).await
}

/// The logs of the session's first command: `…/session/entrypoint/logs`.
pub(super) async fn of_first_command(
    (State(engine), Path((id, session))): SessionPath,
    headers: HeaderMap,
    follow: Follow,
) -> Answer {
    let of = LogsOf {
        id,
        session,
        command: String::new(),
    };
    show(engine, of, headers, follow).await
}

async fn read(engine: &Engine, of: &LogsOf, headers: &HeaderMap) -> Result<Value, ApiError> {
    let op = Op::SessionLogs {
        session: of.session.clone(),
        command: of.command.clone(),
    };
    call(engine, &of.id, headers, op).await
}

/// Without the header that newer SDKs send, logs are plain text, both streams merged.
async fn show(engine: SharedEngine, of: LogsOf, headers: HeaderMap, follow: Follow) -> Answer {
    let logs = read(&engine, &of, &headers).await?;
    if let Ok(upgrade) = follow {
        return Ok(upgrade.on_upgrade(move |socket| send_as_written(engine, of, headers, socket)));
    }
    if headers.contains_key("x-daytona-sdk-version") {
        return answer(
            json!({ "output": logs["output"], "stdout": logs["stdout"], "stderr": logs["stderr"] }),
        );
    }
    let text = |stream: &str| logs[stream].as_str().unwrap_or_default().to_owned();
    Ok((text("stdout") + &text("stderr")).into_response())
}

/// Sends what is new, each piece with its stream's three bytes in front, until the command has ended.
async fn send_as_written(
    engine: SharedEngine,
    of: LogsOf,
    headers: HeaderMap,
    mut socket: WebSocket,
) {
    let mut sent = BTreeMap::from([("stdout", 0), ("stderr", 0)]);
    while let Ok(logs) = read(&engine, &of, &headers).await {
        for (stream, prefix) in [("stdout", 1_u8), ("stderr", 2)] {
            let text = logs[stream].as_str().unwrap_or_default();
            let new = text.get(sent[stream]..).unwrap_or_default();
            if new.is_empty() {
                continue;
            }
            let piece = [&[prefix; 3], new.as_bytes()].concat();
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
