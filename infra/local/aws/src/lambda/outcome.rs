//! An invocation's id and outcome.

use axum::body::Bytes;
use serde_json::json;

/// Generates a request id.
pub(crate) fn request_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// Outcome of an invocation.
#[derive(Clone, Debug)]
pub(crate) enum InvocationOutcome {
    /// The function's raw response.
    Answer(Bytes),
    /// The function failed; the body is AWS's error object.
    Failed(Bytes),
    /// The concurrency limit is reached.
    Throttled,
}

impl InvocationOutcome {
    /// A failure with AWS's error type.
    pub(super) fn failed(error_type: &str, message: &str) -> Self {
        Self::Failed(failure(error_type, message))
    }
}

/// AWS's JSON error object.
pub(super) fn failure(error_type: &str, message: &str) -> Bytes {
    let body = json!({ "errorType": error_type, "errorMessage": message });
    body.to_string().into()
}
