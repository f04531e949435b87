//! Refusals in Vercel's format.

use std::fmt::Display;

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bobbin_local_sandbox::init::protocol::InitRefusal;
use serde_json::json;

/// A refusal: `{"error":{"code","message"}}`.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    /// Seconds until a retry.
    pub(crate) retry_after: Option<u64>,
}

/// A handler's result.
pub(crate) type ApiResult = Result<Response, ApiError>;

impl ApiError {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), retry_after: None }
    }

    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub(crate) fn no_sandbox(name: &str) -> Self {
        Self::not_found(format!("Sandbox not found: {name}"))
    }

    pub(crate) fn stopped() -> Self {
        Self::new(StatusCode::GONE, "sandbox_stopped", "Sandbox is stopped")
    }

    pub(crate) fn no_snapshot(id: &str) -> Self {
        let message = format!("Snapshot not found: {id}");
        Self::new(StatusCode::GONE, "snapshot_not_found", message)
    }

    pub(crate) fn stopping() -> Self {
        let message = "Sandbox is stopping";
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "sandbox_stopping", message)
    }

    pub(crate) fn snapshotting() -> Self {
        let message = "Sandbox is creating a snapshot";
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "sandbox_snapshotting", message)
    }

    pub(crate) fn internal(error: impl Display) -> Self {
        let message = error.to_string();
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", message)
    }

    /// The refusal of a fault with this status.
    pub(crate) fn armed(status: u16, retry_after: Option<u64>) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let code = match status.as_u16() {
            401 => "unauthorized",
            403 => "forbidden",
            429 => "rate_limited",
            _ => "internal_error",
        };
        Self { retry_after, ..Self::new(status, code, "a fault was armed") }
    }
}

impl From<InitRefusal> for ApiError {
    fn from(refusal: InitRefusal) -> Self {
        match refusal.status {
            404 => Self::not_found(refusal.message),
            500..=599 => Self::internal(refusal.message),
            _ => Self::bad(refusal.message),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = json!({ "error": { "code": self.code, "message": self.message } });
        let mut response = (self.status, Json(body)).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}
