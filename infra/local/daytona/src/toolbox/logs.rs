//! Logs of a session's commands: a snapshot, or streamed.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::Path;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use serde_json::{Value, json};

use super::call::{ToolboxSandbox, json as answer};
use super::process::{CommandPath, SessionPath};
use crate::api_error::ApiError;
use crate::http::ApiResult;
use crate::init::protocol::Op;
use crate::limits::POLL_MS;

/// A socket if the request asks for an upgrade (`follow=true`), else the current logs.
type LogUpgrade = Result<WebSocketUpgrade, WebSocketUpgradeRejection>;

pub(super) async fn of_command(
    sandbox: ToolboxSandbox,
    Path(command): Path<CommandPath>,
    headers: HeaderMap,
    follow: LogUpgrade,
) -> ApiResult {
    show(sandbox, command, &headers, follow).await
}

/// Logs of the session's first command, selected by an empty name: `…/session/entrypoint/logs`.
pub(super) async fn of_first_command(
    sandbox: ToolboxSandbox,
    Path(SessionPath { session }): Path<SessionPath>,
    headers: HeaderMap,
    follow: LogUpgrade,
) -> ApiResult {
    let command = String::new();
    show(sandbox, CommandPath { session, command }, &headers, follow).await
}

async fn read(sandbox: &ToolboxSandbox, of: &CommandPath) -> Result<Value, ApiError> {
    let op = Op::SessionLogs { session: of.session.clone(), command: of.command.clone() };
    sandbox.call(op).await
}

/// Without the header of newer SDKs, logs are plain text with both streams merged.
async fn show(
    sandbox: ToolboxSandbox,
    of: CommandPath,
    headers: &HeaderMap,
    follow: LogUpgrade,
) -> ApiResult {
    let logs = read(&sandbox, &of).await?;
    if let Ok(upgrade) = follow {
        return Ok(upgrade.on_upgrade(move |socket| send_as_written(sandbox, of, socket)));
    }
    if headers.contains_key("x-daytona-sdk-version") {
        return answer(
            json!({ "output": logs["output"], "stdout": logs["stdout"], "stderr": logs["stderr"] }),
        );
    }
    let text = |stream: &str| logs[stream].as_str().unwrap_or_default().to_owned();
    Ok((text("stdout") + &text("stderr")).into_response())
}

/// Sends new output until the command ends, each piece prefixed with its stream's three bytes.
async fn send_as_written(sandbox: ToolboxSandbox, of: CommandPath, mut socket: WebSocket) {
    let mut sent = BTreeMap::from([("stdout", 0), ("stderr", 0)]);
    while let Ok(logs) = read(&sandbox, &of).await {
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
    let end = CloseFrame { code: close_code::NORMAL, reason: "".into() };
    let _ = socket.send(Message::Close(Some(end))).await;
}
