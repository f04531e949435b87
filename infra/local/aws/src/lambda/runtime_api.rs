//! The Runtime API that one process talks to (version 2018-06-01): it asks for work and answers it.

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

/// Where a process is in its life.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ProcessPhase {
    /// Started, has not asked for work yet.
    Starting,
    /// Has asked for work and waits for it.
    Waiting,
    /// Works on an invocation that it has not answered.
    Busy,
    /// Said that it could not start; AWS's error object.
    InitFailed(Bytes),
    /// Gone; the reason as AWS phrases it.
    Exited(String),
}

/// One invocation on its way to a process.
pub(crate) struct Invocation {
    pub(crate) request_id: String,
    pub(crate) function_arn: String,
    /// The header of its trace, if it is traced.
    pub(crate) trace: Option<String>,
    /// Real time since the Unix epoch: the process compares it with the system's clock.
    pub(crate) deadline_ms: i64,
    pub(crate) payload: Bytes,
    pub(crate) reply: oneshot::Sender<Invoked>,
}

/// How an invocation went.
#[derive(Clone, Debug)]
pub struct Invoked {
    /// When the process was given the event.
    pub given: Instant,
    /// When its answer was here completely.
    pub answered: Instant,
    /// The answer, as the process sent it, or AWS's error object.
    pub result: Result<Bytes, Bytes>,
}

/// What every answer of the Runtime API is.
const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

struct PendingInvocation {
    request_id: String,
    event: Bytes,
    given: Instant,
    reply: oneshot::Sender<Invoked>,
}

/// A Runtime API by itself, for one process that somebody else starts and ends. Its port closes when it is dropped.
pub struct RuntimeApi {
    address: SocketAddr,
    work: mpsc::Sender<Invocation>,
    phase: watch::Receiver<ProcessPhase>,
    invocations: Arc<Invocations>,
    _open: DropGuard,
}

impl RuntimeApi {
    /// Listens on a free port of an address of this machine.
    ///
    /// # Errors
    /// Without a port.
    pub async fn start(address: IpAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((address, 0)).await?;
        let (work, taken) = mpsc::channel(1);
        let (phase_sender, phase) = watch::channel(ProcessPhase::Starting);
        let invocations = Arc::new(Invocations::new(taken, phase_sender));
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

    /// Waits until the process asks for work; when it did so for the first time.
    pub async fn first_asked(&self) -> Instant {
        let mut phase = self.phase.clone();
        let has_asked =
            |phase: &ProcessPhase| matches!(phase, ProcessPhase::Waiting | ProcessPhase::Busy);
        // The sender is ours.
        phase.wait_for(has_asked).await.ok();
        *self.invocations.first_asked.get_or_init(Instant::now)
    }

    /// The error with which the process said that it could not start.
    #[must_use]
    pub fn init_error(&self) -> Option<Bytes> {
        match &*self.phase.borrow() {
            ProcessPhase::InitFailed(error) => Some(error.clone()),
            _ => None,
        }
    }

    /// Gives the process an event as soon as it asks for one, and waits for the answer; it is told that it has so much time,
    /// and nobody stops it after that. None if it asks for the next event instead of answering.
    pub async fn invoke(&self, event: impl Into<Bytes>, timeout: Duration) -> Option<Invoked> {
        let (reply, answered) = oneshot::channel();
        let timeout_ms = i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX);
        let invocation = Invocation {
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

/// What one process asks for and answers, and where it is in its life.
pub(crate) struct Invocations {
    work: tokio::sync::Mutex<mpsc::Receiver<Invocation>>,
    pending: Mutex<Option<PendingInvocation>>,
    first_asked: OnceLock<Instant>,
    phase: watch::Sender<ProcessPhase>,
}

impl Invocations {
    pub(crate) fn new(
        work: mpsc::Receiver<Invocation>,
        phase: watch::Sender<ProcessPhase>,
    ) -> Self {
        Self {
            work: tokio::sync::Mutex::new(work),
            pending: Mutex::default(),
            first_asked: OnceLock::new(),
            phase,
        }
    }

    /// The invocation that the process works on.
    pub(crate) fn request_id(&self) -> Option<String> {
        self.pending().as_ref().map(|pending| pending.request_id.clone())
    }

    /// The event of that invocation.
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
                // The receiver is gone when the invocation timed out a moment ago; then nobody wants the answer.
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

async fn next(State(api): State<Arc<Invocations>>) -> Response {
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
    State(api): State<Arc<Invocations>>,
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
    State(api): State<Arc<Invocations>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    api.settle(&id, Err(error_object(&headers, body)))
}

async fn init_error(
    State(api): State<Arc<Invocations>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    api.phase.send_replace(ProcessPhase::InitFailed(error_object(&headers, body)));
    accepted()
}

/// The error as the runtime reported it; one that is not JSON is wrapped.
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
