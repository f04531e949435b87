//! The bot's requests, read whole (bounded) and parsed, and their answers.

use crate::limits::REQUEST_BYTES_MAX;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Multipart, Request};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Map, Value};

/// A file of a multipart request or a raw upload.
pub struct UploadedFile {
    pub field: String,
    pub filename: String,
    pub content_type: String,
    pub bytes: Bytes,
}

/// A bot request, read and parsed.
pub struct ApiRequest {
    pub method: String,
    /// Path below the API's base, without a leading slash, percent-decoded by segment.
    pub path: Vec<String>,
    pub query: Map<String, Value>,
    pub headers: HeaderMap,
    pub body: Value,
    /// Why the body is unreadable, in a few words.
    pub unreadable: Option<&'static str>,
    pub files: Vec<UploadedFile>,
    pub raw: Bytes,
}

impl ApiRequest {
    /// A query parameter as text.
    pub fn asked(&self, name: &str) -> &str {
        self.query.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    pub fn segments(&self) -> Vec<&str> {
        self.path.iter().map(String::as_str).collect()
    }

    /// The token of `Authorization: <scheme> <token>`.
    pub fn token(&self, scheme: &str) -> Option<&str> {
        let value = self.headers.get(header::AUTHORIZATION)?.to_str().ok()?;
        value.strip_prefix(scheme)?.strip_prefix(' ').map(str::trim)
    }
}

/// An API answer: `null` is an empty body, a text is sent as it is, everything else as JSON.
pub struct ApiResponse {
    pub status: u16,
    pub body: Value,
    pub headers: Vec<(&'static str, String)>,
}

impl ApiResponse {
    pub fn json(body: Value) -> ApiResponse {
        ApiResponse { status: 200, body, headers: Vec::new() }
    }

    pub fn empty() -> ApiResponse {
        ApiResponse { status: 204, body: Value::Null, headers: Vec::new() }
    }
}

impl IntoResponse for ApiResponse {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = match self.body {
            Value::Null => status.into_response(),
            Value::String(text) => (status, text).into_response(),
            body => (status, axum::Json(body)).into_response(),
        };
        for (name, value) in self.headers {
            if let Ok(value) = value.parse() {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}

/// Reads a whole request. The error is the status to answer with.
pub async fn read(request: Request) -> Result<ApiRequest, StatusCode> {
    let (parts, body) = request.into_parts();
    let raw = axum::body::to_bytes(body, REQUEST_BYTES_MAX)
        .await
        .map_err(|_| StatusCode::PAYLOAD_TOO_LARGE)?;
    let content_type = text(&parts.headers, header::CONTENT_TYPE).to_ascii_lowercase();
    let mut call = ApiRequest {
        method: parts.method.to_string(),
        path: parts
            .uri
            .path()
            .split('/')
            .filter(|part| !part.is_empty())
            .map(percent_decoded)
            .collect(),
        query: form(parts.uri.query().unwrap_or_default().as_bytes()),
        headers: parts.headers.clone(),
        body: Value::Null,
        unreadable: None,
        files: Vec::new(),
        raw: raw.clone(),
    };
    if raw.is_empty() {
        return Ok(call);
    }
    if content_type.starts_with("application/json") {
        match serde_json::from_slice(&raw) {
            Ok(body) => call.body = body,
            Err(_) => call.unreadable = Some("invalid_json"),
        }
    } else if content_type.starts_with("application/x-www-form-urlencoded") {
        call.body = Value::Object(form(&raw));
    } else if content_type.starts_with("multipart/form-data") {
        match parts_of(Request::from_parts(parts, Body::from(raw))).await {
            Some((body, files)) => (call.body, call.files) = (body, files),
            None => call.unreadable = Some("invalid_multipart"),
        }
    } else {
        call.unreadable = Some("content_type");
    }
    Ok(call)
}

/// The fields of a multipart request; `payload_json`, if present, is the body.
async fn parts_of(request: Request) -> Option<(Value, Vec<UploadedFile>)> {
    let mut multipart = Multipart::from_request(request, &()).await.ok()?;
    let (mut fields, mut files) = (Map::new(), Vec::new());
    while let Some(field) = multipart.next_field().await.ok()? {
        let name = field.name().unwrap_or_default().to_owned();
        let filename = field.file_name().map(str::to_owned);
        let content_type = field.content_type().unwrap_or("application/octet-stream").to_owned();
        let bytes = field.bytes().await.ok()?;
        match filename {
            Some(filename) => {
                files.push(UploadedFile { field: name, filename, content_type, bytes })
            }
            None => {
                fields.insert(name, String::from_utf8_lossy(&bytes).into_owned().into());
            }
        }
    }
    let body = match fields.get("payload_json") {
        Some(payload) => serde_json::from_str(payload.as_str()?).ok()?,
        None => Value::Object(fields),
    };
    Some((body, files))
}

/// A form's fields; the last value of a repeated one counts.
fn form(raw: &[u8]) -> Map<String, Value> {
    let pairs = form_urlencoded::parse(raw).into_owned();
    pairs.map(|(name, value)| (name, value.into())).collect()
}

/// Percent-decodes; an invalid escape is kept.
fn percent_decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Percent-encodes everything but unreserved characters, as a form value.
pub fn percent_encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// Everything that RFC 3986 does not call unreserved.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

fn text(headers: &HeaderMap, name: header::HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
