//! The model over HTTP: the protocols' routes, and the call log for the stack's operator.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use bobbin_local_breakpoint::{ControlKey, own_only};
use futures::StreamExt;
use futures::stream;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::answer::{self, AnswerEnd, ModelAnswer};
use crate::calls::{Calls, now_ms};
use crate::limits::{BODY_BYTES_MAX, STOP_MS_MAX};
use crate::openrouter::{self, MadeKeys};
use crate::wire::{self, ChunkEnvelope, Frame};
use crate::{messages, request, responses};

/// The model listed by `GET /v1/models`. Requests may name any other.
pub const MODEL_ID: &str = "scripted-1";
/// A second listed model, so that there is a choice.
pub const OTHER_MODEL_ID: &str = "scripted-2";

/// The port is taken or not permitted.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on 127.0.0.1:{port}: {source}; choose another port, or 0 for a free one")]
pub struct BindError {
    /// The requested port.
    pub port: u16,
    /// The system's error.
    pub source: std::io::Error,
}

/// A running scripted model. Dropping it stops it at once; [`Model::stop`] also waits.
#[derive(Debug)]
pub struct Model {
    address: SocketAddr,
    stopped: CancellationToken,
    server: Option<JoinHandle<()>>,
}

impl Model {
    /// Starts on a loopback port; 0 picks a free one. The call log (`GET /calls`) is open to everybody.
    ///
    /// # Errors
    /// [`BindError`]: the port is unavailable.
    pub async fn start(port: u16) -> Result<Model, BindError> {
        Self::start_with(port, None).await
    }

    /// Like [`Model::start`], but the call log requires this key.
    ///
    /// # Errors
    /// [`BindError`]: the port is unavailable.
    pub async fn start_keyed(port: u16, control_key: ControlKey) -> Result<Model, BindError> {
        Self::start_with(port, Some(control_key)).await
    }

    async fn start_with(port: u16, control_key: Option<ControlKey>) -> Result<Model, BindError> {
        let bind = |source| BindError { port, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        let stopped = CancellationToken::new();
        let shared = Arc::new(ServerState {
            calls: Calls::default(),
            made_keys: Arc::default(),
            next_id: AtomicU64::new(1),
            started_ms: now_ms(),
            control_key,
            stopped: stopped.clone(),
        });
        let serve = axum::serve(listener, routes(shared))
            .with_graceful_shutdown(stopped.clone().cancelled_owned());
        let server = tokio::spawn(async move {
            if let Err(error) = serve.await {
                tracing::error!(%error, "the scripted model's server ended");
            }
        });
        Ok(Model { address, stopped, server: Some(server) })
    }

    /// Base URL for OpenAI clients: `http://127.0.0.1:PORT/v1`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Cuts off streams, closes every connection and frees the port.
    pub async fn stop(mut self) {
        self.stopped.cancel();
        if let Some(mut server) = self.server.take()
            && tokio::time::timeout(Duration::from_millis(STOP_MS_MAX), &mut server).await.is_err()
        {
            server.abort();
        }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.stopped.cancel();
    }
}

pub(crate) struct ServerState {
    calls: Calls,
    pub(crate) made_keys: Arc<MadeKeys>,
    next_id: AtomicU64,
    /// Part of every id, so that ids of two runs differ.
    started_ms: u64,
    control_key: Option<ControlKey>,
    stopped: CancellationToken,
}

impl ServerState {
    /// The answer to who is not the stack's operator.
    pub(crate) fn refuses_control(&self, headers: &HeaderMap) -> Option<Response> {
        let key = self.control_key.as_ref();
        key.is_some_and(|key| !key.is_said(headers)).then(ControlKey::refusal)
    }
}

fn routes(shared: Arc<ServerState>) -> Router {
    let routes = Router::new()
        .route("/v1/models", get(models))
        .route("/v1/chat/completions", post(chat_completions))
        .route("/v1/messages", post(messages))
        .route("/v1/responses", post(responses))
        .route("/calls", get(calls))
        .merge(openrouter::routes())
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(shared);
    own_only(routes, None)
}

async fn models(headers: HeaderMap) -> Response {
    if let Err(message) = key(&headers) {
        return refuse(StatusCode::UNAUTHORIZED, Some("invalid_api_key"), &message);
    }
    let models = [MODEL_ID, OTHER_MODEL_ID].map(|id| {
        json!({ "id": id, "object": "model", "created": 1_700_000_000, "owned_by": "scripted-model" })
    });
    Json(json!({ "object": "list", "data": models })).into_response()
}

async fn calls(State(shared): State<Arc<ServerState>>, headers: HeaderMap) -> Response {
    match shared.refuses_control(&headers) {
        Some(refused) => refused,
        None => Json(shared.calls.to_json()).into_response(),
    }
}

async fn unknown_path(uri: Uri) -> Response {
    let known = "There are GET /v1/models, POST /v1/chat/completions, /v1/messages and /v1/responses, and GET /calls.";
    refuse(StatusCode::NOT_FOUND, None, &format!("There is no {}. {known}", uri.path()))
}

async fn wrong_method(uri: Uri) -> Response {
    let message = format!(
        "{} does not take this method: POST chat completions, messages and responses, GET everything else.",
        uri.path()
    );
    refuse(StatusCode::METHOD_NOT_ALLOWED, None, &message)
}

/// The supported protocols.
#[derive(Debug, Clone, Copy)]
enum ModelProtocol {
    /// OpenAI's chat completions.
    Chat,
    /// Anthropic's messages.
    Messages,
    /// OpenAI's responses.
    Responses,
}

async fn chat_completions(
    State(shared): State<Arc<ServerState>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    respond(&shared, ModelProtocol::Chat, &headers, body).await
}

async fn messages(
    State(shared): State<Arc<ServerState>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    respond(&shared, ModelProtocol::Messages, &headers, body).await
}

async fn responses(
    State(shared): State<Arc<ServerState>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    respond(&shared, ModelProtocol::Responses, &headers, body).await
}

async fn respond(
    shared: &ServerState,
    protocol: ModelProtocol,
    headers: &HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let key = match key(headers) {
        Ok(key) => key,
        Err(message) => {
            return refuse(StatusCode::UNAUTHORIZED, Some("invalid_api_key"), &message);
        }
    };
    let payer = match shared.made_keys.admitted(key) {
        Ok(payer) => payer,
        Err(refused) => return refused.into_response(),
    };
    let body = match body {
        Ok(body) => body,
        Err(rejection) => return refuse(rejection.status(), None, &rejection.body_text()),
    };
    let parsed = match protocol {
        ModelProtocol::Chat => request::parse(&body),
        ModelProtocol::Messages => messages::parse(&body),
        ModelProtocol::Responses => responses::parse(&body),
    };
    let request = match parsed {
        Ok(request) => request,
        Err(message) => return refuse(StatusCode::BAD_REQUEST, None, &message),
    };
    let answer = answer::answer(&request);
    let session_id = headers.get("x-session-id").and_then(|value| value.to_str().ok());
    shared.calls.add(session_id, key, &request, &answer);
    if let ModelAnswer::Message { pieces, end } = &answer {
        let tokens = wire::tokens_of(&request, pieces, end);
        let takes = pieces.iter().map(|piece| piece.pause).sum();
        shared.made_keys.book(payer, tokens.read + tokens.written, takes);
    }
    let number = shared.next_id.fetch_add(1, Ordering::Relaxed);
    let envelope = ChunkEnvelope {
        id: format!("chatcmpl-{:x}-{number:x}", shared.started_ms),
        created: now_ms() / 1_000,
    };
    match answer {
        ModelAnswer::Fail(status) => {
            // The script allows only 400 to 599, all valid statuses.
            let code = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let error = match protocol {
                ModelProtocol::Messages => messages::error(status),
                ModelProtocol::Chat | ModelProtocol::Responses => wire::scripted_error(status),
            };
            (code, Json(error)).into_response()
        }
        ModelAnswer::Message { pieces, end } if request.stream => {
            let frames = match protocol {
                ModelProtocol::Chat => wire::frames(&envelope, &request, &pieces, &end),
                ModelProtocol::Messages => messages::frames(&envelope, &request, &pieces, &end),
                ModelProtocol::Responses => responses::frames(&envelope, &request, &pieces, &end),
            };
            stream_events(shared, frames)
        }
        ModelAnswer::Message { pieces, end } => {
            let pause: Duration = pieces.iter().map(|piece| piece.pause).sum();
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = shared.stopped.cancelled() => return break_off(),
            }
            match (end, protocol) {
                (AnswerEnd::Cut, _) => break_off(),
                (end, ModelProtocol::Messages) => {
                    Json(messages::whole(&envelope, &request, &pieces, &end)).into_response()
                }
                (end, ModelProtocol::Chat | ModelProtocol::Responses) => {
                    Json(wire::completion(&envelope, &request, &pieces, &end)).into_response()
                }
            }
        }
    }
}

/// Prefix of a sandbox's placeholder for a key.
const PLACEHOLDER: &str = "dtn_secret_";

/// The bearer token of a request.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    key(headers).ok().flatten()
}

/// Accepts any bearer token, or none; another form of the header is a misconfigured client. A placeholder is refused
/// and quoted as OpenAI does.
fn key(headers: &HeaderMap) -> Result<Option<&str>, String> {
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        return Ok(None);
    };
    match value.to_str().ok().and_then(|value| value.split_once(' ')) {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") && !key.trim().is_empty() => {
            match key.trim() {
                stands if stands.starts_with(PLACEHOLDER) => Err(format!(
                    "Incorrect API key provided: {PLACEHOLDER}****. You can find your API key at https://platform.openai.com/account/api-keys."
                )),
                key => Ok(Some(key)),
            }
        }
        _ => Err("The authorization header is not `Bearer KEY`. Send any key, or no such header."
            .to_owned()),
    }
}

fn refuse(status: StatusCode, code: Option<&str>, message: &str) -> Response {
    (status, Json(wire::error("invalid_request_error", code, message))).into_response()
}

/// Sends each frame in turn; its delay postpones the next.
fn stream_events(shared: &ServerState, frames: Vec<Frame>) -> Response {
    let paced =
        stream::unfold((frames.into_iter(), Duration::ZERO), |(mut frames, pause)| async move {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            let frame = frames.next()?;
            Some((Ok::<_, Infallible>(frame.data), (frames, frame.pause)))
        });
    let body = Body::from_stream(paced.take_until(shared.stopped.clone().cancelled_owned()));
    ([(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")], body)
        .into_response()
}

/// A non-streamed answer has no finish reason to omit: the connection closes before the body ends.
fn break_off() -> Response {
    let cut = std::io::Error::other("the script cuts the answer");
    let body = stream::iter([Ok("{\"id\":\"chatcmpl-"), Err(cut)]);
    ([(header::CONTENT_TYPE, "application/json")], Body::from_stream(body)).into_response()
}
