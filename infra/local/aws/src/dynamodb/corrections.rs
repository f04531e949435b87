//! Answers that dynoxide gives otherwise than AWS.

use axum::body::Body;
use axum::http::{Response, StatusCode, header};
use axum::response::IntoResponse as _;
use serde_json::{Value, json};

use super::error::{DynamoError, engine};
use crate::limits;

/// CRC32 of the body, which SDKs compare.
const CHECKSUM: &str = "x-amz-crc32";

/// The answer to a request that the tables could not be asked.
pub(super) fn failure(error: &DynamoError) -> Response<Body> {
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    let members = json!({ "message": error.to_string() });
    refusal(status, "InternalServerError", members)
}

/// A refusal of this kind.
pub(super) fn refusal(status: StatusCode, kind: &str, mut members: Value) -> Response<Body> {
    members["__type"] = format!("com.amazonaws.dynamodb.v20120810#{kind}").into();
    let body = members.to_string();
    let headers = [
        ("content-type", "application/x-amz-json-1.0".to_owned()),
        (CHECKSUM, crc32fast::hash(body.as_bytes()).to_string()),
    ];
    (status, headers, body).into_response()
}

/// Where dynoxide answers otherwise than AWS's model of the service has it, its answer is put right: a member that the
/// model does not know, a body where there is no output, a message under another name.
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
