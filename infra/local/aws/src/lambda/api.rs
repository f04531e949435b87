//! The `Invoke` call of the Lambda API.

use std::sync::Arc;

use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::functions::Functions;
use super::outcome::{InvocationOutcome, request_id};
use crate::limits;
use crate::query::decoded;

/// Path before and after the function's name.
pub(crate) const PATH_PREFIX: &str = "/2015-03-31/functions/";
const PATH_SUFFIX: &str = "/invocations";

impl Functions {
    /// Answers a request whose path starts with [`PATH_PREFIX`].
    pub(crate) async fn answer(
        self: &Arc<Self>,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Response {
        let name = path
            .strip_prefix(PATH_PREFIX)
            .and_then(|rest| rest.strip_suffix(PATH_SUFFIX))
            .filter(|_| method == Method::POST)
            .map(decoded);
        let Some(name) = name else {
            return refusal(
                StatusCode::NOT_FOUND,
                "UnknownOperationException",
                json!({ "Message": format!("This engine does not implement {method} {path}.") }),
            );
        };
        let Some(function) = self.by_name(&name) else {
            return refusal(
                StatusCode::NOT_FOUND,
                "ResourceNotFoundException",
                json!({ "Type": "User", "Message": format!("Function not found: {name}") }),
            );
        };
        let kind = headers
            .get("x-amz-invocation-type")
            .map_or(Ok("RequestResponse"), |kind| kind.to_str())
            .unwrap_or_default();
        let payload = match payload(kind, body) {
            Ok(payload) => payload,
            Err(refusal) => return *refusal,
        };
        let request_id = request_id();
        let id = [("x-amzn-requestid", request_id.clone())];
        if kind == "Event" {
            self.invoke_event(function, request_id, payload);
            return (StatusCode::ACCEPTED, id).into_response();
        }
        (id, answered(function.invoke(&request_id, payload).await)).into_response()
    }
}

/// The payload of an invocation, or AWS's refusal.
fn payload(kind: &str, body: Bytes) -> Result<Bytes, Box<Response>> {
    let refuse = |status, name, message: String| {
        let body = json!({ "Type": "User", "message": message });
        Err(Box::new(refusal(status, name, body)))
    };
    let bytes_max = match kind {
        "Event" => limits::EVENT_PAYLOAD_BYTES_MAX,
        "RequestResponse" => limits::FUNCTION_PAYLOAD_BYTES_MAX,
        other => {
            return refuse(
                StatusCode::BAD_REQUEST,
                "InvalidParameterValueException",
                format!(
                    "This engine does not implement the invocation type {other}, only Event and RequestResponse."
                ),
            );
        }
    };
    if body.len() > bytes_max {
        let length = body.len();
        return refuse(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestTooLargeException",
            format!(
                "{length} byte payload is too large for the {kind} invocation type (limit {bytes_max} bytes)"
            ),
        );
    }
    if body.is_empty() {
        return Ok(Bytes::from_static(b"{}"));
    }
    match serde_json::from_slice::<serde::de::IgnoredAny>(&body) {
        Ok(_) => Ok(body),
        Err(error) => refuse(
            StatusCode::BAD_REQUEST,
            "InvalidRequestContentException",
            format!("Could not parse request body into json: {error}"),
        ),
    }
}

fn answered(outcome: InvocationOutcome) -> Response {
    let headers = [("x-amz-executed-version", "$LATEST"), ("content-type", "application/json")];
    match outcome {
        InvocationOutcome::Answer(body) => (headers, body).into_response(),
        InvocationOutcome::Failed(body) => {
            (headers, [("x-amz-function-error", "Unhandled")], body).into_response()
        }
        InvocationOutcome::Throttled => refusal(
            StatusCode::TOO_MANY_REQUESTS,
            "TooManyRequestsException",
            json!({
                "Type": "User",
                "message": "Rate Exceeded.",
                "Reason": "ReservedFunctionConcurrentInvocationLimitExceeded",
            }),
        ),
    }
}

fn refusal(status: StatusCode, kind: &str, body: Value) -> Response {
    let headers = [("x-amzn-errortype", kind), ("content-type", "application/json")];
    (status, headers, body.to_string()).into_response()
}
