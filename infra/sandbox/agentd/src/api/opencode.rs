//! `/opencode/*`: OpenCode's own API, from its own server.
//!
//! Promised: requests and answers are streamed unchanged in both directions, except for the authorization (ours is
//! replaced by the server's) and the base path. Deliberately absent: any translation; a client that works with OpenCode
//! works here.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bobbin_http::{AllowedHosts, Guard, Http};
use futures::TryStreamExt;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

use super::problem::json as answer;
use super::{DaemonApi, Problem};
use crate::agents::MissingAgent;

/// Longest answer: event streams do not end.
const ANSWER_MS_MAX: u64 = 30 * 24 * 3_600_000;
/// Per-connection headers (RFC 9110, 7.6.1), the length, which the client computes again, and the authorization.
const NOT_PASSED: [HeaderName; 8] = [
    header::CONNECTION,
    header::HOST,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::CONTENT_LENGTH,
    header::AUTHORIZATION,
];

pub(super) async fn proxy(
    State(api): State<DaemonApi>,
    request: Request,
) -> Result<Response, Problem> {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let path = path.strip_prefix("/opencode").unwrap_or(path).to_owned();
    let agent = api.host.agents.find("opencode").await;
    let agent = match agent {
        Ok(agent) => agent,
        // An unavailable health check is not the caller's error.
        Err(missing @ MissingAgent::NotInstalled { .. }) if path == "/global/health" => {
            return Ok(answer(&json!({"healthy": false, "message": missing.to_string()})));
        }
        Err(missing) => return Err(missing.into()),
    };
    // The caller may leave while the server starts (a health check is short): it goes on starting.
    let (host, shared) = (Arc::clone(&api.host), Arc::clone(&api.shared));
    let started = tokio::spawn(async move { shared.opencode.endpoint(&agent, &host).await });
    let endpoint = match started.await {
        Ok(Ok(endpoint)) => endpoint,
        Ok(Err(down)) => return Err(Problem::upstream(down.message)),
        Err(broken) => return Err(Problem::upstream(broken.to_string())),
    };
    let http = Http::guarded(Guard::new(AllowedHosts::Named(Vec::new()), true));
    let (head, body) = request.into_parts();
    let upstream = http
        .request(head.method, &format!("{}{path}", endpoint.base))
        .map_err(|error| Problem::upstream(error.to_string()))?
        .headers(passed(&head.headers))
        .header(header::AUTHORIZATION, endpoint.authorization())
        .timeout(Duration::from_millis(ANSWER_MS_MAX));
    let has_body = head.headers.contains_key(header::CONTENT_LENGTH)
        || head.headers.contains_key(header::TRANSFER_ENCODING);
    let upstream = if has_body {
        let stream = body.into_data_stream().map_err(std::io::Error::other);
        upstream.body(reqwest::Body::wrap_stream(stream))
    } else {
        upstream
    };
    let response =
        http.open(upstream).await.map_err(|error| Problem::upstream(error.to_string()))?;
    let status =
        StatusCode::from_u16(response.status().as_u16()).unwrap_or(StatusCode::BAD_GATEWAY);
    let headers = passed(response.headers());
    let body = Body::from_stream(response.bytes_stream());
    let mut answer = (status, body).into_response();
    *answer.headers_mut() = headers;
    Ok(answer)
}

fn passed(headers: &HeaderMap<HeaderValue>) -> HeaderMap<HeaderValue> {
    headers
        .iter()
        .filter(|(name, _)| !NOT_PASSED.contains(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}
