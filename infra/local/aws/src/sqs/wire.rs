//! Wire format shared by the SQS actions (AWS JSON 1.0): reading requests, writing answers and errors.

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{AppendHeaders, IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::error::SqsError;

/// Output of an action.
pub(super) type SqsResult = Result<Value, SqsError>;

/// `None` is an empty body: AWS's answer for an action without an output.
pub(super) fn response(answer: Result<Option<Value>, SqsError>, headers: &HeaderMap) -> Response {
    match answer {
        Ok(value) => (
            StatusCode::OK,
            [("content-type", "application/x-amz-json-1.0")],
            value.map_or_else(String::new, |value| value.to_string()),
        )
            .into_response(),
        Err(error) => refusal(&error, asks_for_query_codes(headers)),
    }
}

/// AWS omits an empty list or map unless its model requires the member.
pub(super) fn unless_empty(member: &str, value: Value) -> Value {
    let is_empty = match &value {
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    if is_empty { json!({}) } else { json!({ member: value }) }
}

/// Clients built for the older protocol ask for its error codes beside the new ones.
pub(crate) fn asks_for_query_codes(headers: &HeaderMap) -> bool {
    headers
        .get("x-amzn-query-mode")
        .is_some_and(|mode| mode.as_bytes().eq_ignore_ascii_case(b"true"))
}

/// The queue's name is the last part of its URL; host and port may be from an earlier start.
pub(super) fn name_of_url(url: &str) -> Result<&str, SqsError> {
    match url.rsplit('/').next() {
        Some(name) if !name.is_empty() => Ok(name),
        _ => Err(SqsError::missing("QueueUrl")),
    }
}

/// A null member counts as absent.
pub(super) fn parse<T: DeserializeOwned>(body: &Bytes) -> Result<T, SqsError> {
    let mut members: Map<String, Value> =
        serde_json::from_slice(body).map_err(SqsError::serialization)?;
    members.retain(|_, value| !value.is_null());
    serde_json::from_value(Value::Object(members)).map_err(SqsError::serialization)
}

/// Serialises an answer.
pub(super) fn value<T: serde::Serialize>(of: &T) -> Value {
    serde_json::to_value(of).expect("answers are always valid JSON")
}

fn refusal(error: &SqsError, with_query_code: bool) -> Response {
    let fault = if error.status.is_server_error() { "Receiver" } else { "Sender" };
    let kind = error.type_name();
    // Errors raised before the service itself sees the request spell `Message` with a capital.
    let member = if kind.starts_with("com.amazonaws.") { "message" } else { "Message" };
    let mut body = json!({ "__type": kind });
    if !error.message.is_empty() {
        body[member] = json!(error.message);
    }
    let query_code =
        with_query_code.then(|| [("x-amzn-query-error", format!("{};{fault}", error.code))]);
    (
        error.status,
        [("content-type", "application/x-amz-json-1.0")],
        AppendHeaders(query_code.into_iter().flatten()),
        body.to_string(),
    )
        .into_response()
}
