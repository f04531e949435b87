//! Files: people's uploads in the page, and serving of stored files.

use crate::discord;
use crate::hub::{Hub, broken};
use crate::json::JsonFields;
use crate::limits::FILE_BYTES_MAX;
use crate::store::{Blob, ChatStoreError};
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// Stored files may run nothing, whatever they contain.
const FILE_POLICY: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src 'self'";

const LOGIN_PAGE: &str = "<!DOCTYPE html><html><head><title>Slack</title></head><body>Sign in to your workspace</body></html>";

/// Stores a person's file until it is sent with a message, an option or a form.
pub async fn upload(
    State(hub): State<Arc<Hub>>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Response {
    if bytes.len() > FILE_BYTES_MAX {
        return (StatusCode::PAYLOAD_TOO_LARGE, "the file is larger than 10 MiB").into_response();
    }
    let name = query.get("name").map_or("", String::as_str);
    let name = if name.is_empty() { "file" } else { name };
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("application/octet-stream");
    match store_upload(&hub, name, kind, &bytes) {
        Ok(attachment) => axum::Json(attachment).into_response(),
        Err(error) => broken(&error).into_response(),
    }
}

fn store_upload(hub: &Hub, name: &str, kind: &str, bytes: &[u8]) -> Result<Value, ChatStoreError> {
    let store = hub.store();
    let attachment = discord::store_file(hub, &store, name, kind, bytes.to_vec())?;
    store.put("d.upload", "", attachment.str("id"), &attachment)?;
    Ok(attachment)
}

/// Serves a file to anybody with its id: both platforms show files by their address, without a token.
pub async fn serve(State(hub): State<Arc<Hub>>, Path((id, _)): Path<(String, String)>) -> Response {
    match hub.store().blob(&id) {
        Ok(Some(blob)) => served(blob),
        Ok(None) => (StatusCode::NOT_FOUND, "this file is no longer kept").into_response(),
        Err(error) => broken(&error).into_response(),
    }
}

/// Slack's files need the bot's token. For a wrong one Slack answers 200 and a login page; so does this.
pub async fn serve_to_bot(
    State(hub): State<Arc<Hub>>,
    Path((id, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let expected = format!("Bearer {}", hub.slack.bot_token);
    if headers
        .get(header::AUTHORIZATION)
        .is_none_or(|value| value.as_bytes() != expected.as_bytes())
    {
        return ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], LOGIN_PAGE).into_response();
    }
    serve(State(hub), Path((id, name))).await
}

/// Images are shown inline, everything else is offered as a download.
fn served(blob: Blob) -> Response {
    let picture = ["image/png", "image/jpeg", "image/gif", "image/webp"]
        .contains(&blob.content_type.as_str());
    let kind = if picture || blob.content_type.parse::<header::HeaderValue>().is_ok() {
        blob.content_type.as_str()
    } else {
        "application/octet-stream"
    };
    let disposition = if picture { "inline" } else { "attachment" };
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, FILE_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_DISPOSITION, disposition),
        (header::CACHE_CONTROL, "private, max-age=3600"),
    ];
    (headers, blob.bytes).into_response()
}
