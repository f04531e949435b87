//! Corrects answers in which dynoxide differs from AWS.

use axum::body::Body;
use axum::http::{Response, StatusCode, header};
use axum::response::IntoResponse as _;
use serde_json::{Value, json};

use super::error::{DynamoError, engine};
use crate::limits;

/// CRC32 of the body; SDKs check it.
const CHECKSUM: &str = "x-amz-crc32";

/// The answer if the tables cannot be reached.
pub(super) fn failure(error: &DynamoError) -> Response<Body> {
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    let members = json!({ "message": error.to_string() });
    refusal(status, "InternalServerError", members)
}

/// A refusal with this error type.
pub(super) fn refusal(status: StatusCode, kind: &str, mut members: Value) -> Response<Body> {
    members["__type"] = format!("com.amazonaws.dynamodb.v20120810#{kind}").into();
    let body = members.to_string();
    let headers = [
        ("content-type", "application/x-amz-json-1.0".to_owned()),
        (CHECKSUM, crc32fast::hash(body.as_bytes()).to_string()),
    ];
    (status, headers, body).into_response()
}

/// Corrects an answer that differs from AWS's service model: an unknown member, a body without an output, a message
/// under another name.
pub(super) async fn as_aws_answers(
    action: &str,
    response: Response<Body>,
) -> Result<Response<Body>, DynamoError> {
    let is_fine = response.status().is_success();
    let differs = match action {
        "CreateTable" | "DescribeTable" | "UpdateTable" | "DeleteTable" | "TagResource"
        | "UntagResource" => is_fine,
        "TransactWriteItems" | "ExecuteTransaction" => !is_fine,
        _ => false,
    };
    if !differs {
        return Ok(response);
    }
    let (mut parts, body) = response.into_parts();
    let bytes = axum::body::to_bytes(body, limits::REQUEST_BYTES_MAX).await.map_err(engine)?;
    let body = if matches!(action, "TagResource" | "UntagResource") {
        String::new()
    } else {
        let mut value: Value = serde_json::from_slice(&bytes).map_err(engine)?;
        correct(&mut value);
        value.to_string()
    };
    parts.headers.insert(CHECKSUM, crc32fast::hash(body.as_bytes()).into());
    parts.headers.insert(header::CONTENT_LENGTH, body.len().into());
    Ok(Response::from_parts(parts, Body::from(body)))
}

fn correct(value: &mut Value) {
    for table in ["Table", "TableDescription"] {
        if let Some(table) = value.get_mut(table).and_then(Value::as_object_mut) {
            table.remove("TableThroughputModeSummary");
        }
    }
    const CAPITAL: [&str; 2] =
        ["IdempotentParameterMismatchException", "TransactionInProgressException"];
    let kind = value["__type"].as_str().unwrap_or_default();
    if CAPITAL.iter().any(|name| kind.ends_with(name))
        && let Some(members) = value.as_object_mut()
        && let Some(message) = members.remove("message")
    {
        members.insert("Message".to_owned(), message);
    }
}
