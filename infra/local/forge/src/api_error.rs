//! Refusals in GitHub's format.

use std::fmt::Display;

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// A refusal: `{"message","documentation_url","status"}`, some with `errors`.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    pub(crate) errors: Option<Value>,
    /// Address of a repository by its id, for one that has moved.
    pub(crate) location: Option<String>,
    /// Seconds until a retry.
    pub(crate) retry_after: Option<u64>,
}

/// A handler's result.
pub(crate) type Answer = Result<Response, ApiError>;

impl ApiError {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), errors: None, location: None, retry_after: None }
    }

    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, message)
    }

    pub(crate) fn bad_credentials() -> Self {
        Self::unauthorized("Bad credentials")
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, message)
    }

    /// An app's token without the right.
    pub(crate) fn integration() -> Self {
        Self::forbidden("Resource not accessible by integration")
    }

    pub(crate) fn suspended() -> Self {
        Self::forbidden("This installation has been suspended")
    }

    pub(crate) fn archived() -> Self {
        Self::forbidden("Repository was archived so is read-only.")
    }

    pub(crate) fn address(organization: &str) -> Self {
        Self::forbidden(format!(
            "Although you appear to have the correct authorization credentials, the `{organization}` organization has an IP allow list enabled, and your IP address is not permitted to access this resource."
        ))
    }

    pub(crate) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "Not Found")
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }

    pub(crate) fn not_allowed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, message)
    }

    pub(crate) fn unprocessable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, message)
    }

    /// A field that is missing or not valid.
    pub(crate) fn field(resource: &str, field: &str, code: &str) -> Self {
        Self::failed(json!([{ "resource": resource, "field": field, "code": code }]))
    }

    /// A rule of a resource, in a sentence.
    pub(crate) fn custom(resource: &str, message: &str) -> Self {
        Self::failed(json!([{ "resource": resource, "code": "custom", "message": message }]))
    }

    fn failed(errors: Value) -> Self {
        Self { errors: Some(errors), ..Self::unprocessable("Validation Failed") }
    }

    pub(crate) fn full(what: &str) -> Self {
        Self::unprocessable(format!("This forge holds no more {what}"))
    }

    pub(crate) fn internal(error: impl Display) -> Self {
        tracing::error!(%error, "the forge failed");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Server Error")
    }

    /// The refusal of a fault with this status.
    pub(crate) fn armed(status: u16, retry_after: Option<u64>) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let message = match status.as_u16() {
            401 => "Bad credentials",
            403 | 429 => {
                "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
            }
            502 | 504 => "We couldn't respond to your request in time. Sorry about that.",
            _ => "Server Error",
        };
        Self { retry_after, ..Self::new(status, message) }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut body =
            json!({ "message": self.message, "documentation_url": "https://docs.github.com/rest" });
        body["status"] = self.status.as_str().into();
        if let Some(errors) = self.errors {
            body["errors"] = errors;
        }
        if let Some(location) = &self.location {
            body["url"] = location.as_str().into();
        }
        let mut response = (self.status, Json(body)).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if let Some(location) = self.location.and_then(|at| at.parse().ok()) {
            headers.insert(header::LOCATION, location);
        }
        response
    }
}
