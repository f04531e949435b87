//! Answers: JSON, and errors (RFC 9457).

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;

use crate::agents::{InstallError, MissingAgent};
use crate::session::SessionError;
use crate::state::RequestRefusal;

/// An error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    status: u16,
    kind: &'static str,
    title: &'static str,
    detail: String,
}

impl Problem {
    const fn new(status: u16, kind: &'static str, title: &'static str, detail: String) -> Self {
        Self { status, kind, title, detail }
    }

    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(400, "invalid_request", "Invalid request", detail.into())
    }

    pub(crate) fn token() -> Self {
        let detail = "send `Authorization: Bearer` with the token that the daemon was started with";
        Self::new(401, "token_invalid", "Token invalid", detail.to_owned())
    }

    pub(crate) fn not_found(detail: String) -> Self {
        Self::new(404, "not_found", "Not found", detail)
    }

    pub(crate) fn no_session(id: &str) -> Self {
        let detail = format!("there is no session {id}; create it by POST /v1/sessions/{id}");
        Self::new(404, "session_not_found", "Session not found", detail)
    }

    pub(crate) fn session_exists(id: &str) -> Self {
        let detail = format!("the session {id} already exists; use it, or choose another id");
        Self::new(409, "session_already_exists", "Session already exists", detail)
    }

    pub(crate) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(409, "conflict", "Conflict", detail.into())
    }

    pub(crate) fn mode(detail: String) -> Self {
        Self::new(400, "mode_not_supported", "Mode not supported", detail)
    }

    pub(crate) fn upstream(detail: String) -> Self {
        Self::new(502, "stream_error", "Agent not reachable", detail)
    }

    pub(crate) fn full() -> Self {
        let detail = "the sandbox's disk is full: delete something in it and try again";
        Self::new(507, "storage_full", "Disk full", detail.to_owned())
    }

    fn broken(detail: &str) -> Self {
        Self::new(500, "stream_error", "Log not usable", detail.to_owned())
    }
}

impl From<MissingAgent> for Problem {
    fn from(missing: MissingAgent) -> Self {
        let title = match missing {
            MissingAgent::Unsupported { .. } => "Unsupported agent",
            MissingAgent::NotInstalled { .. } => "Agent not installed",
        };
        Self::new(400, missing.kind(), title, missing.to_string())
    }
}

impl From<InstallError> for Problem {
    fn from(error: InstallError) -> Self {
        match error {
            InstallError::Unsupported(missing) => Self { status: 404, ..missing.into() },
            InstallError::NotPinned { .. } => {
                Self::new(400, "install_failed", "Install failed", error.to_string())
            }
            InstallError::Step { .. } | InstallError::Integrity { .. } => {
                Self::new(500, "install_failed", "Install failed", error.to_string())
            }
        }
    }
}

impl From<SessionError> for Problem {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Full => Self::full(),
            SessionError::Broken(why) => Self::broken(&why),
            SessionError::Gone => {
                Self::broken("the daemon is shutting down; try again when it is back")
            }
            SessionError::Refused(refused) => refused.into(),
        }
    }
}

impl From<RequestRefusal> for Problem {
    fn from(refused: RequestRefusal) -> Self {
        match refused {
            RequestRefusal::Terminated => {
                Self::conflict("the session was terminated; create one with another id")
            }
            RequestRefusal::OtherPrompt => Self::conflict(
                "this turn's id was used for another message; repeat the same message, or use a new id for a new message",
            ),
            RequestRefusal::QueueFull => Self::conflict("too many turns are waiting; try again when some have ended"),
            RequestRefusal::SessionFull => {
                Self::conflict("the session has had its last turn; create one with another id")
            }
            RequestRefusal::UnknownTurn => Self::not_found("the session has not seen this turn".to_owned()),
            RequestRefusal::AskGone => Self::not_found(
                "this ask is not open: it was answered, or its turn has ended".to_owned(),
            ),
            RequestRefusal::WrongAnswer => Self::not_found(
                "the ask with this id is of the other kind: permissions and questions have separate paths".to_owned(),
            ),
        }
    }
}

impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Self {
        let status = match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => 413,
            _ => 400,
        };
        Self { status, ..Self::invalid(rejection.body_text()) }
    }
}

impl From<QueryRejection> for Problem {
    fn from(rejection: QueryRejection) -> Self {
        Self::invalid(rejection.body_text())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = json!({
            "type": format!("urn:sandbox-agent:error:{}", self.kind),
            "title": self.title,
            "status": status.as_u16(),
            "detail": self.detail,
        });
        let mut response = (status, Json(body)).into_response();
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        response
    }
}

pub(super) fn json(value: &impl Serialize) -> Response {
    Json(value).into_response()
}

pub(super) fn no_content() -> Response {
    StatusCode::NO_CONTENT.into_response()
}
