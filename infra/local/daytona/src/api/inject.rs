//! Applies armed faults to calls of the API and the toolbox, around the handlers.

use std::time::Duration;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bobbin_local_sandbox::faults::Instead;

use crate::api_error::ApiError;
use crate::engine::SharedEngine;
use crate::faults::Fault;
use crate::http::EngineState;
use crate::lifecycle;
use crate::serve::ConnectionCut;

/// The fault word of a call, and its sandbox.
fn operation(method: &Method, path: &str) -> (String, Option<String>) {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (word, sandbox) = match parts.as_slice() {
        ["api", "sandbox"] => (if *method == Method::POST { "create" } else { "list" }, None),
        ["api", "sandbox", id] => {
            (if *method == Method::DELETE { "delete" } else { "get" }, Some(*id))
        }
        ["api", "sandbox", id, "ports", _, word, ..] | ["api", "sandbox", id, word, ..] => {
            (*word, Some(*id))
        }
        ["toolbox", id, "process", "execute"] => ("exec", Some(*id)),
        ["toolbox", id, "process", word, ..] | ["toolbox", id, word, ..] => (*word, Some(*id)),
        ["api", word, ..] => (*word, None),
        _ => ("", None),
    };
    (word.to_owned(), sandbox.map(str::to_owned))
}

/// Applies the faults armed for a call, else answers it.
pub(super) async fn inject_faults(
    State(engine): EngineState,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    if path.starts_with("/_control") {
        return next.run(request).await;
    }
    let (word, sandbox) = operation(request.method(), path);
    let names = sandbox.as_deref().map(|sandbox| engine.names(sandbox)).unwrap_or_default();
    let vanish = engine.faults.take(&names, |fault| {
        let Fault::Vanish { operation } = fault else {
            return None;
        };
        (operation == "*" || *operation == word).then_some(())
    });
    if let (Some(()), Some(id)) = (vanish, names.first()) {
        lifecycle::lose(&engine, id).await;
    }
    let is_toolbox = path.starts_with("/toolbox/");
    if let Some(answer) = answer_instead(&engine, &names, is_toolbox, &word) {
        return answer;
    }
    let connection = request
        .extensions()
        .get::<ConnectInfo<ConnectionCut>>()
        .map(|ConnectInfo(cut)| cut.clone());
    let response = next.run(request).await;
    if let Some(ms) = engine.faults.delay_ms(&names, &word) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
    if let (true, Some(connection)) = (engine.faults.is_dropped(&names, &word), connection) {
        connection.cut();
    }
    response
}

/// The answer of a fault that replaces the call's effect.
fn answer_instead(
    engine: &SharedEngine,
    names: &[String],
    is_toolbox: bool,
    word: &str,
) -> Option<Response> {
    match engine.faults.instead(names, word) {
        Some(Instead::Refusal { status, retry_after }) => {
            let message = match status {
                429 => "Rate limit exceeded",
                _ => "an armed fault",
            };
            let mut error = ApiError::new(status, message);
            error.retry_after = retry_after;
            return Some(error.into_response());
        }
        Some(Instead::Page { status }) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
            let headers = [(header::CONTENT_TYPE, "text/html")];
            let page = "<html><body><h1>Bad Gateway</h1></body></html>";
            return Some((status, headers, page).into_response());
        }
        None => {}
    }
    engine.faults.take(names, |fault| {
        let reached = is_toolbox && matches!(fault, Fault::RunnerInfo);
        reached.then(|| ApiError::runner_info(names).into_response())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_map_to_fault_operations() {
        let cases = [
            (Method::POST, "/api/sandbox", "create", None),
            (Method::GET, "/api/sandbox", "list", None),
            (Method::GET, "/api/sandbox/a", "get", Some("a")),
            (Method::DELETE, "/api/sandbox/a", "delete", Some("a")),
            (Method::POST, "/api/sandbox/a/stop", "stop", Some("a")),
            (Method::GET, "/api/sandbox/a/ports/4096/preview-url", "preview-url", Some("a")),
            (Method::POST, "/toolbox/a/process/execute", "exec", Some("a")),
            (Method::POST, "/toolbox/a/files/bulk-upload", "files", Some("a")),
            (Method::GET, "/api/snapshots/x", "snapshots", None),
        ];
        for (method, path, word, sandbox) in cases {
            assert_eq!(
                operation(&method, path),
                (word.to_owned(), sandbox.map(str::to_owned)),
                "{path}"
            );
        }
    }
}
