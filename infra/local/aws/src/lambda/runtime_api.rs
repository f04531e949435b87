//! The Runtime API of one process (version 2018-06-01): it fetches work and posts answers.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{AppendHeaders, IntoResponse, Response};
use axum::routing::{get, post};
use bobbin_local_breakpoint::own_only;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::outcome::{failure, request_id};
use crate::clock::system_ms;
use crate::limits;
use crate::serve::serve;

/// Phase of a process.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ProcessPhase {
    /// Started, has not asked for work yet.
    Starting,
    /// Waits for work.
    Waiting,
    /// Has an invocation that it has not answered.
    Busy,
    /// Reported a failed start; AWS's error object.
    InitFailed(Bytes),
    /// Gone; the reason in AWS's words.
    Exited(String),
}

/// An invocation for a process.
pub(crate) struct FunctionInvocation {
    pub(crate) request_id: String,
    pub(crate) function_arn: String,
    /// Trace header, if traced.
    pub(crate) trace: Option<String>,
    /// Real time since the Unix epoch: the process compares it with the system's clock.
    pub(crate) deadline_ms: i64,
    pub(crate) payload: Bytes,
    pub(crate) reply: oneshot::Sender<Invoked>,
}

/// Timing and result of an invocation.
#[derive(Clone, Debug)]
pub struct Invoked {
    /// When the process received the event.
    pub given: Instant,
    /// When its answer was complete.
    pub answered: Instant,
    /// The raw answer, or AWS's error object.
    pub result: Result<Bytes, Bytes>,
}

/// Headers of every Runtime API answer.
const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

struct PendingInvocation {
    request_id: String,
    event: Bytes,
    given: Instant,
    reply: oneshot::Sender<Invoked>,
}

/// A stand-alone Runtime API for one process that the caller starts and ends. Dropping it closes its port.
pub struct RuntimeApi {
    address: SocketAddr,
    work: mpsc::Sender<FunctionInvocation>,
    phase: watch::Receiver<ProcessPhase>,
    invocations: Arc<ProcessInvocations>,
    _open: DropGuard,
}

impl RuntimeApi {
    /// Listens on a free port of a local address.
    ///
    /// # Errors
    /// No port is available.
    pub async fn start(address: IpAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((address, 0)).await?;
        let (work, taken) = mpsc::channel(1);
        let (phase_sender, phase) = watch::channel(ProcessPhase::Starting);
        let invocations = Arc::new(ProcessInvocations::new(taken, phase_sender));
        let open = CancellationToken::new();
        let started = Self {
            address: listener.local_addr()?,
            work,
            phase,
            invocations: Arc::clone(&invocations),
            _open: open.clone().drop_guard(),
        };
        let router = own_only(invocations.router(), Some(address.to_string()));
        tokio::spawn(serve(listener, router, open));
        Ok(started)
    }

    /// The value of `AWS_LAMBDA_RUNTIME_API`.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Waits until the process first asks for work; returns when it did.
    pub async fn first_asked(&self) -> Instant {
        let mut phase = self.phase.clone();
        let has_asked =
            |phase: &ProcessPhase| matches!(phase, ProcessPhase::Waiting | ProcessPhase::Busy);
        // The sender is held by this value.
        phase.wait_for(has_asked).await.ok();
        *self.invocations.first_asked.get_or_init(Instant::now)
    }

    /// Error with which the process reported a failed start.
    #[must_use]
    pub fn init_error(&self) -> Option<Bytes> {
        match &*self.phase.borrow() {
            ProcessPhase::InitFailed(error) => Some(error.clone()),
            _ => None,
        }
    }

    /// Gives the process an event as soon as it asks, and waits for the answer. The deadline is only announced, not
    /// enforced. `None` if the process asks for the next event instead of answering.
    pub async fn invoke(&self, event: impl Into<Bytes>, timeout: Duration) -> Option<Invoked> {
        let (reply, answered) = oneshot::channel();
        let timeout_ms = i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX);
        let invocation = FunctionInvocation {
            request_id: request_id(),
            function_arn: "arn:aws:lambda:us-east-1:123456789012:function:local".to_owned(),
            trace: None,
            deadline_ms: system_ms().saturating_add(timeout_ms),
            payload: event.into(),
            reply,
        };
        self.work.send(invocation).await.ok()?;
        answered.await.ok()
    }
}

/// One process's requests, answers and phase.
pub(crate) struct ProcessInvocations {
    work: tokio::sync::Mutex<mpsc::Receiver<FunctionInvocation>>,
    pending: Mutex<Option<PendingInvocation>>,
    first_asked: OnceLock<Instant>,
    phase: watch::Sender<ProcessPhase>,
}

impl ProcessInvocations {
    pub(crate) fn new(
        work: mpsc::Receiver<FunctionInvocation>,
        phase: watch::Sender<ProcessPhase>,
    ) -> Self {
        Self {
            work: tokio::sync::Mutex::new(work),
            pending: Mutex::default(),
            first_asked: OnceLock::new(),
            phase,
        }
    }

    /// Id of the process's current invocation.
    pub(crate) fn request_id(&self) -> Option<String> {
        self.pending().as_ref().map(|pending| pending.request_id.clone())
    }

    /// Event of that invocation.
    pub(crate) fn event(&self) -> Option<Bytes> {
        self.pending().as_ref().map(|pending| pending.event.clone())
    }

    pub(crate) fn router(self: Arc<Self>) -> Router {
        Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route("/2018-06-01/runtime/invocation/{id}/response", post(response))
            .route("/2018-06-01/runtime/invocation/{id}/error", post(error))
            .route("/2018-06-01/runtime/init/error", post(init_error))
            .with_state(self)
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, Option<PendingInvocation>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, request_id: &str, result: Result<Bytes, Bytes>) -> Response {
        let answered = Instant::now();
        let mut pending = self.pending();
        match pending.take() {
            Some(found) if found.request_id == request_id => {
                // The receiver is gone if the invocation just timed out; the answer is then dropped.
                let invoked = Invoked { given: found.given, answered, result };
                found.reply.send(invoked).ok();
                accepted()
            }
            other => {
                *pending = other;
                refusal(StatusCode::BAD_REQUEST, "InvalidRequestID", "Invalid request ID")
            }
        }
    }
}

async fn next(State(api): State<Arc<ProcessInvocations>>) -> Response {
    api.first_asked.get_or_init(Instant::now);
    let mut work = api.work.lock().await;
    api.phase.send_if_modified(|phase| {
        let is_alive = !matches!(phase, ProcessPhase::Exited(_));
        if is_alive {
            *phase = ProcessPhase::Waiting;
        }
        is_alive
    });
    let Some(work) = work.recv().await else {
        return StatusCode::GONE.into_response();
    };
    api.phase.send_replace(ProcessPhase::Busy);
    let trace = work.trace.map(|trace| [("lambda-runtime-trace-id", trace)]);
    let headers = [
        ("lambda-runtime-aws-request-id", work.request_id.clone()),
        ("lambda-runtime-deadline-ms", work.deadline_ms.to_string()),
        ("lambda-runtime-invoked-function-arn", work.function_arn),
        ("content-type", "application/json".to_owned()),
    ];
    *api.pending() = Some(PendingInvocation {
        request_id: work.request_id,
        event: work.payload.clone(),
        given: Instant::now(),
        reply: work.reply,
    });
    (headers, AppendHeaders(trace.into_iter().flatten()), work.payload).into_response()
}

async fn response(
    State(api): State<Arc<ProcessInvocations>>,
    Path(id): Path<String>,
    body: Body,
) -> Response {
    match axum::body::to_bytes(body, limits::FUNCTION_PAYLOAD_BYTES_MAX).await {
        Ok(bytes) => api.settle(&id, Ok(bytes)),
        Err(_) => {
            let message = format!(
                "Response payload size exceeded maximum allowed payload size ({} bytes).",
                limits::FUNCTION_PAYLOAD_BYTES_MAX
            );
            let error = failure("Function.ResponseSizeTooLarge", &message);
            api.settle(&id, Err(error));
            refusal(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", &message)
        }
    }
}

async fn error(
    State(api): State<Arc<ProcessInvocations>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    api.settle(&id, Err(error_object(&headers, body)))
}

async fn init_error(
    State(api): State<Arc<ProcessInvocations>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    api.phase.send_replace(ProcessPhase::InitFailed(error_object(&headers, body)));
    accepted()
}

/// The error as reported by the runtime; wrapped if it is not JSON.
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
    json!({ "errorType": kind, "errorMessage": text }).to_string().into()
}

fn accepted() -> Response {
    (StatusCode::ACCEPTED, JSON, r#"{"status":"OK"}"#).into_response()
}

fn refusal(status: StatusCode, kind: &str, message: &str) -> Response {
    let body = json!({ "errorType": kind, "errorMessage": message });
    (status, JSON, body.to_string()).into_response()
}
