//! The HTTP API: sandbox-agent's session API at 79bb441, and our extensions.
//!
//! Ours: `turn`, `attachments`, `model`, `agentMode` and `nudge` of a message, the headers [`TURN_HEADER`] and
//! [`OUTCOME_HEADER`] of its answer, `directory`, `agentSessionId`, `title` and `instructions` of a session and its
//! pending `asks`, `wait` of events, `GET …/turns/{turn}` and `…/turns/{turn}/changes`, `POST …/cancel`, `POST
//! …/terminate`, and `/opencode/*`.
//!
//! Promised: every error is `application/problem+json` with advice and without secrets.

mod agents;
mod auth;
mod events;
mod opencode;
mod problem;
mod sessions;
mod turns;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::response::Response;
use axum::routing::{any, get, post};
use serde_json::json;

use crate::driver::SharedServers;
use crate::host::Host;
use crate::limits::BODY_BYTES_MAX;
use crate::sessions::Sessions;

pub(crate) use problem::Problem;

/// Id of the message's turn.
const TURN_HEADER: &str = "x-bobbin-turn";
/// `Accepted`, or `AlreadyKnown` if the turn's id had already been accepted.
const OUTCOME_HEADER: &str = "x-bobbin-outcome";

/// Shared state of the handlers.
#[derive(Debug, Clone)]
pub(crate) struct DaemonApi {
    sessions: Arc<Sessions>,
    host: Arc<Host>,
    shared: Arc<SharedServers>,
}

/// All routes, behind the token.
pub(crate) fn router(
    sessions: Arc<Sessions>,
    host: Arc<Host>,
    shared: Arc<SharedServers>,
    token: &str,
) -> Router {
    let api = DaemonApi { sessions, host, shared };
    let routes = Router::new()
        .route("/v1/health", get(health))
        .route("/v1/agents", get(agents::list))
        .route("/v1/agents/{agent}/modes", get(agents::modes))
        .route("/v1/agents/{agent}/install", post(agents::install))
        .route("/v1/sessions", get(sessions::list))
        .route("/v1/sessions/{session}", post(sessions::create))
        .route("/v1/sessions/{session}/messages", post(turns::message))
        .route("/v1/sessions/{session}/events", get(events::page))
        .route("/v1/sessions/{session}/events/sse", get(events::stream))
        .route("/v1/sessions/{session}/turns/{turn}", get(turns::turn))
        .route("/v1/sessions/{session}/turns/{turn}/changes", get(turns::changes))
        .route("/v1/sessions/{session}/turns/{turn}/cancel", post(turns::cancel))
        .route("/v1/sessions/{session}/cancel", post(turns::cancel_running))
        .route("/v1/sessions/{session}/terminate", post(sessions::terminate))
        .route("/v1/sessions/{session}/questions/{ask}/reply", post(turns::answer_question))
        .route("/v1/sessions/{session}/questions/{ask}/reject", post(turns::reject_question))
        .route("/v1/sessions/{session}/permissions/{ask}/reply", post(turns::answer_permission))
        .route("/opencode", any(opencode::proxy))
        .route("/opencode/{*path}", any(opencode::proxy))
        .fallback(unknown)
        .method_not_allowed_fallback(unknown)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(api);
    auth::behind(token, routes)
}

async fn health() -> Response {
    problem::json(&json!({"status": "ok"}))
}

async fn unknown(method: axum::http::Method, uri: axum::http::Uri) -> Problem {
    Problem::not_found(format!("there is no {method} {}", uri.path()))
}
