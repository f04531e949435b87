//! The Runtime API that one process talks to (version 2018-06-01): it asks for work and answers it.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{AppendHeaders, IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::json;
use tokio::sync::{mpsc, oneshot, watch};

use super::Outcome;
use crate::limits;

/// Where a process is in its life.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Phase {
    /// Started, has not asked for work yet.
    Starting,
    /// Asks for work.
    Waiting,
    /// Has work.
    Busy,
    /// Said that it could not start; AWS's error object.
    InitFailed(Bytes),
    /// Gone; how, in AWS's words.
    Exited(String),
}

/// One invocation on its way to a process.
pub(crate) struct Work {
    pub(crate) request_id: String,
    pub(crate) function_arn: String,
    /// The header of its trace, if it is traced.
    pub(crate) trace: Option<String>,
    /// Real time since the Unix epoch: the process compares it with the system's clock.
    pub(crate) deadline_ms: i64,
    pub(crate) payload: Bytes,
    pub(crate) reply: oneshot::Sender<Outcome>,
}

/// What every answer of the Runtime API is.
const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

struct Pending {
    request_id: String,
    event: Bytes,
    reply: oneshot::Sender<Outcome>,
}

/// The engine's end of one process's Runtime API.
pub(crate) struct RuntimeApi {
    work: tokio::sync::Mutex<mpsc::Receiver<Work>>,
    pending: Mutex<Option<Pending>>,
    phase: watch::Sender<Phase>,
}

impl RuntimeApi {
    pub(crate) fn new(work: mpsc::Receiver<Work>, phase: watch::Sender<Phase>) -> Self {
        Self {
            work: tokio::sync::Mutex::new(work),
            pending: Mutex::default(),
            phase,
        }
    }

    /// The invocation that the process works on.
    pub(crate) fn request_id(&self) -> Option<String> {
        self.pending()
            .as_ref()
            .map(|pending| pending.request_id.clone())
    }

    /// The event of that invocation.
    pub(crate) fn event(&self) -> Option<Bytes> {
        self.pending().as_ref().map(|pending| pending.event.clone())
    }

    pub(crate) fn router(self: Arc<Self>) -> Router {
        Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route(
                "/2018-06-01/runtime/invocation/{id}/response",
                post(response),
            )
            .route("/2018-06-01/runtime/invocation/{id}/error", post(error))
            .route("/2018-06-01/runtime/init/error", post(init_error))
            .with_state(self)
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, Option<Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, request_id: &str, outcome: Outcome) -> Response {
        let mut pending = self.pending();
        match pending.take() {
            Some(found) if found.request_id == request_id => {
                // The receiver is gone when the invocation timed out a moment ago; then nobody wants the answer.
                found.reply.send(outcome).ok();
                accepted()
            }
            other => {
                *pending = other;
                refusal(
                    StatusCode::BAD_REQUEST,
                    "InvalidRequestID",
                    "Invalid request ID",
                )
            }
        }
    }
}

async fn next(State(api): State<Arc<RuntimeApi>>) -> Response {
    let mut work = api.work.lock().await;
    api.phase.send_if_modified(|phase| {
        let is_alive = !matches!(phase, Phase::Exited(_));
        if is_alive {
            *phase = Phase::Waiting;
        }
        is_alive
    });
    let Some(work) = work.recv().await else {
        return StatusCode::GONE.into_response();
    };
    api.phase.send_replace(Phase::Busy);
    let trace = work.trace.map(|trace| [("lambda-runtime-trace-id", trace)]);
    let headers = [
        ("lambda-runtime-aws-request-id", work.request_id.clone()),
        ("lambda-runtime-deadline-ms", work.deadline_ms.to_string()),
        ("lambda-runtime-invoked-function-arn", work.function_arn),
        ("content-type", "application/json".to_owned()),
    ];
    *api.pending() = Some(Pending {
        request_id: work.request_id,
        event: work.payload.clone(),
        reply: work.reply,
    });
    (
        headers,
        AppendHeaders(trace.into_iter().flatten()),
        work.payload,
    )
        .into_response()
}

async fn response(
    State(api): State<Arc<RuntimeApi>>,
    Path(id): Path<String>,
    body: Body,
) -> Response {
    match axum::body::to_bytes(body, limits::FUNCTION_PAYLOAD_BYTES_MAX).await {
        Ok(bytes) => api.settle(&id, Outcome::Answer(bytes)),
        Err(_) => {
            let message = format!(
                "Response payload size exceeded maximum allowed payload size ({} bytes).",
                limits::FUNCTION_PAYLOAD_BYTES_MAX
            );
            api.settle(
                &id,
                Outcome::failed("Function.ResponseSizeTooLarge", &message),
            );
            refusal(
                StatusCode::PAYLOAD_TOO_LARGE,
                "RequestEntityTooLarge",
                &message,
            )
        }
    }
}

async fn error(
    State(api): State<Arc<RuntimeApi>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    api.settle(&id, Outcome::Failed(error_object(&headers, body)))
}

async fn init_error(
    State(api): State<Arc<RuntimeApi>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    api.phase
        .send_replace(Phase::InitFailed(error_object(&headers, body)));
    accepted()
}

/// The error as the runtime told it; one that is not JSON is wrapped.
fn error_object(headers: &HeaderMap, body: Bytes) -> Bytes {
    let is_object =
        serde_json::from_slice::<serde_json::Value>(&body).is_ok_and(|value| value.is_object());
    if is_object {
        return body;
    }
    let kind = headers
        .get("lambda-runtime-function-error-type")
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or("Unhandled");
    let text = String::from_utf8_lossy(&body);
    json!({ "errorType": kind, "errorMessage": text })
        .to_string()
        .into()
}

fn accepted() -> Response {
    (StatusCode::ACCEPTED, JSON, r#"{"status":"OK"}"#).into_response()
}

fn refusal(status: StatusCode, kind: &str, message: &str) -> Response {
    let body = json!({ "errorType": kind, "errorMessage": message });
    (status, JSON, body.to_string()).into_response()
}
