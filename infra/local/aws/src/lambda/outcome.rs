//! What an invocation is called and what it comes to.

use axum::body::Bytes;
use serde_json::json;

/// An id for an invocation.
pub(crate) fn request_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// What an invocation came to.
#[derive(Clone, Debug)]
pub(crate) enum InvocationOutcome {
    /// The function's response, as it sent it.
    Answer(Bytes),
    /// The function failed; the body is AWS's error object.
    Failed(Bytes),
    /// No more processes at once are allowed.
    Throttled,
}

impl InvocationOutcome {
    /// A failure with AWS's name for it.
    pub(super) fn failed(error_type: &str, message: &str) -> Self {
        Self::Failed(failure(error_type, message))
    }
}

/// The JSON object in which AWS tells of a failure.
pub(super) fn failure(error_type: &str, message: &str) -> Bytes {
    let body = json!({ "errorType": error_type, "errorMessage": message });
    body.to_string().into()
}
