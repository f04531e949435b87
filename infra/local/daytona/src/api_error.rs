//! Refusals in Daytona's two formats: the control API's and the toolbox's.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::clock;

/// A refusal. [`write_body`] writes its body, since it knows the path.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    /// Code in the toolbox's format.
    pub(crate) code: String,
    pub(crate) message: String,
    /// Seconds until a retry may succeed, sent with a 429.
    pub(crate) retry_after: Option<u64>,
}

impl ApiError {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        ApiError {
            status,
            code: code_of(status).to_owned(),
            message: message.into(),
            retry_after: None,
        }
    }

    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(400, message)
    }

    pub(crate) fn no_sandbox(id_or_name: &str) -> Self {
        Self::new(404, format!("Sandbox with ID or name {id_or_name} not found"))
    }

    /// The proxy's answer for a missing sandbox.
    pub(crate) fn no_container(id: &str) -> Self {
        Self::new(404, format!("not found: sandbox container not found: {id}"))
    }

    /// The proxy's answer when its cache of sandbox locations is stale.
    pub(crate) fn runner_info(names: &[String]) -> Self {
        let id = names.first().map_or("?", String::as_str);
        Self::bad(format!("bad request: failed to get runner info: sandbox {id}"))
    }

    /// The proxy's answer for a sandbox without processes.
    pub(crate) fn not_started(id: &str) -> Self {
        Self::bad(format!(
            "bad request: failed to reach sandbox {id}: no IP address found. Is the Sandbox started?"
        ))
    }

    pub(crate) fn internal(message: impl std::fmt::Display) -> Self {
        Self::new(500, format!("local provider: {message}"))
    }

    /// Body in the toolbox's format, from the daemon in the sandbox or the proxy before it.
    pub(crate) fn toolbox_body(&self, source: &str, path: &str, method: &str) -> Value {
        json!({
            "statusCode": self.status.as_u16(), "source": source, "code": self.code, "message": self.message,
            "timestamp": clock::iso(clock::system_ms()), "path": path, "method": method,
        })
    }

    fn api_body(&self, path: &str) -> Value {
        match self.status.as_u16() {
            429 => json!({
                "statusCode": 429, "message": self.message, "error": "Too Many Requests",
            }),
            status => json!({
                "path": path, "timestamp": clock::iso(clock::system_ms()), "statusCode": status,
                "error": self.status.canonical_reason().unwrap_or("Error"), "message": self.message,
            }),
        }
    }

    pub(crate) fn code(mut self, code: &str) -> Self {
        code.clone_into(&mut self.code);
        self
    }
}

fn code_of(status: StatusCode) -> &'static str {
    match status.as_u16() {
        400 => "BAD_REQUEST",
        401 => "UNAUTHORIZED",
        403 => "FORBIDDEN",
        404 => "NOT_FOUND",
        408 => "REQUEST_TIMEOUT",
        409 => "CONFLICT",
        410 => "GONE",
        422 => "UNPROCESSABLE_ENTITY",
        _ => "INTERNAL_SERVER_ERROR",
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// Writes a refusal's body in the format of the side that was called.
pub(crate) async fn write_body(request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let method = request.method().clone();
    let mut response = next.run(request).await;
    let Some(error) = response.extensions_mut().remove::<ApiError>() else {
        return response;
    };
    let body = match path.strip_prefix("/toolbox/") {
        Some(rest) => {
            let inner_path = rest.find('/').map_or("/", |at| &rest[at..]);
            error.toolbox_body("DAYTONA_DAEMON", inner_path, method.as_str())
        }
        None => error.api_body(&path),
    };
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
    response.headers_mut().remove(header::CONTENT_LENGTH);
    *response.body_mut() = Body::from(body.to_string());
    response
}
