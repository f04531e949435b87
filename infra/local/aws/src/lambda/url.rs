//! Function URLs: a listener each, whose requests become events in payload format 2.0.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bobbin_local_breakpoint::has_own_host;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::event::{self, UrlRequest};
use super::outcome::{InvocationOutcome, request_id};
use super::pool::Function;
use crate::clock::Clock;
use crate::limits;

pub(crate) struct FunctionUrl {
    pub(crate) function: Arc<Function>,
    pub(crate) clock: Clock,
    pub(crate) domain: String,
    /// Host name of this machine for callers that do not share its loopback.
    pub(crate) also_named: Option<String>,
}

/// Passes every request to the function, except those with a foreign host name that resolves here.
pub(crate) fn router(url: FunctionUrl) -> Router {
    Router::new().fallback(serve).with_state(Arc::new(url))
}

async fn serve(
    State(url): State<Arc<FunctionUrl>>,
    ConnectInfo(source): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    if !has_own_host(&parts.headers, url.also_named.as_deref()) {
        return message(StatusCode::FORBIDDEN, "Forbidden");
    }
    let Ok(body) = axum::body::to_bytes(body, limits::FUNCTION_PAYLOAD_BYTES_MAX).await else {
        return message(StatusCode::PAYLOAD_TOO_LARGE, "Request Entity Too Large");
    };
    let request_id = request_id();
    let event = event::url_event(&UrlRequest {
        method: &parts.method,
        uri: &parts.uri,
        headers: &parts.headers,
        body: &body,
        source_ip: &source.ip().to_string(),
        domain: &url.domain,
        now_ms: url.clock.now_ms(),
        request_id: &request_id,
    });
    if event.len() > limits::FUNCTION_PAYLOAD_BYTES_MAX {
        return message(StatusCode::PAYLOAD_TOO_LARGE, "Request Entity Too Large");
    }
    let mut response = match url.function.invoke(&request_id, event).await {
        InvocationOutcome::Answer(answer) => rendered(answer).unwrap_or_else(bad_gateway),
        InvocationOutcome::Failed(_) => bad_gateway(),
        InvocationOutcome::Throttled => message(StatusCode::TOO_MANY_REQUESTS, "Rate Exceeded."),
    };
    let id = HeaderValue::from_str(&request_id).expect("an id is plain text");
    response.headers_mut().insert("x-amzn-requestid", id);
    response
}

fn bad_gateway() -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json")];
    (StatusCode::BAD_GATEWAY, headers, "Internal Server Error").into_response()
}

fn message(status: StatusCode, text: &str) -> Response {
    let body = serde_json::json!({ "Message": text }).to_string();
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UrlResponse {
    status_code: u16,
    #[serde(default)]
    headers: Option<Map<String, Value>>,
    #[serde(default)]
    cookies: Option<Vec<String>>,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    is_base64_encoded: bool,
}

/// An object with a status is a response; any other JSON is the body of a 200. `None` if HTTP cannot carry it.
fn rendered(answer: Bytes) -> Option<Response> {
    let value: Value = serde_json::from_slice(&answer).ok()?;
    if value.get("statusCode").is_none() {
        let headers = [(header::CONTENT_TYPE, "application/json")];
        return Some((headers, answer).into_response());
    }
    let response: UrlResponse = serde_json::from_value(value).ok()?;
    let text = response.body.unwrap_or_default();
    let body =
        if response.is_base64_encoded { STANDARD.decode(text).ok()? } else { text.into_bytes() };
    let mut rendered = Response::new(Body::from(body));
    *rendered.status_mut() = StatusCode::from_u16(response.status_code).ok()?;
    let headers = rendered.headers_mut();
    for (name, value) in response.headers.unwrap_or_default() {
        let text = match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let name: HeaderName = name.parse().ok()?;
        headers.insert(name, HeaderValue::from_str(&text).ok()?);
    }
    headers.entry(header::CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
    for cookie in response.cookies.unwrap_or_default() {
        headers.append(header::SET_COOKIE, HeaderValue::from_str(&cookie).ok()?);
    }
    // The length is computed from the body, whatever the function set.
    headers.remove(header::CONTENT_LENGTH);
    Some(rendered)
}
