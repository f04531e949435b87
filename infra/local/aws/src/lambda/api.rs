//! The `Invoke` call of the Lambda API.

use std::sync::Arc;

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::{Functions, Outcome};
use crate::limits;
use crate::query::decoded;

/// Before the function's name in the path, and after it.
pub(crate) const PATH_PREFIX: &str = "/2015-03-31/functions/";
const PATH_SUFFIX: &str = "/invocations";

impl Functions {
    /// Answers a request whose path starts with [`PATH_PREFIX`].
    pub(crate) async fn answer(
        self: &Arc<Self>,
        path: &str,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Response {
        let name = path
            .strip_prefix(PATH_PREFIX)
            .and_then(|rest| rest.strip_suffix(PATH_SUFFIX))
            .map(decoded);
        let function = name.as_deref().and_then(|name| self.by_name(name));
        let Some(function) = function else {
            return refusal(
                StatusCode::NOT_FOUND,
                "ResourceNotFoundException",
                &format!("Function not found: {}", name.unwrap_or_default()),
            );
        };
        if body.len() > limits::FUNCTION_PAYLOAD_BYTES_MAX {
            return refusal(
                StatusCode::PAYLOAD_TOO_LARGE,
                "RequestTooLargeException",
                "The payload is longer than 6 MiB.",
            );
        }
        let payload = if body.is_empty() {
            Bytes::from_static(b"{}")
        } else {
            body
        };
        if serde_json::from_slice::<serde::de::IgnoredAny>(&payload).is_err() {
            return refusal(
                StatusCode::BAD_REQUEST,
                "InvalidRequestContentException",
                "Could not parse request body into json.",
            );
        }
        let kind = headers
            .get("x-amz-invocation-type")
            .and_then(|kind| kind.to_str().ok())
            .unwrap_or("RequestResponse");
        match kind {
            "DryRun" => StatusCode::NO_CONTENT.into_response(),
            "Event" => {
                self.invoke_event(function, payload);
                StatusCode::ACCEPTED.into_response()
            }
            _ => answered(function.invoke(payload).await),
        }
    }
}

fn answered(outcome: Outcome) -> Response {
    let version = ("x-amz-executed-version", "$LATEST");
    match outcome {
        Outcome::Answer(body) => ([version], body).into_response(),
        Outcome::Failed(body) => {
            ([version, ("x-amz-function-error", "Unhandled")], body).into_response()
        }
        Outcome::Throttled => refusal(
            StatusCode::TOO_MANY_REQUESTS,
            "TooManyRequestsException",
            "Rate Exceeded.",
        ),
    }
}

fn refusal(status: StatusCode, kind: &str, message: &str) -> Response {
    let body = json!({ "Type": "User", "Message": message });
    (
        status,
        [
            ("x-amzn-errortype", kind),
            ("content-type", "application/json"),
        ],
        body.to_string(),
    )
        .into_response()
}
