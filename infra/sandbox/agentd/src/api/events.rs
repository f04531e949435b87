//! Events: a page, a long poll, or a stream.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{DaemonApi, Problem};
use crate::limits::{HEARTBEAT_MS, PAGE_BYTES_MAX, PAGE_EVENTS_MAX, POLL_MS_MAX};
use crate::log::LogPage;
use crate::session::{Progress, SessionHandle};

#[derive(Debug, Deserialize)]
pub(super) struct EventsQuery {
    /// Id of the client's last event.
    offset: Option<u64>,
    limit: Option<u64>,
    /// Ours: milliseconds to wait if there is no event.
    wait: Option<u64>,
}

pub(super) async fn page(
    State(api): State<DaemonApi>,
    Path(session): Path<String>,
    asked: Result<Query<EventsQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(asked) = asked?;
    let session = api.session(&session).await?;
    let after = asked.offset.unwrap_or(0);
    let wait = Duration::from_millis(asked.wait.unwrap_or(0).min(POLL_MS_MAX));
    let mut progress = session.progress();
    // On a time-out the page may be empty.
    let _ = tokio::time::timeout(wait, beyond(&mut progress, after)).await;
    let limit = asked.limit.unwrap_or(PAGE_EVENTS_MAX).min(PAGE_EVENTS_MAX);
    let page = session.page(after, limit, PAGE_BYTES_MAX).await?;
    let body = Body::from(page_json(&page));
    let kind = HeaderValue::from_static("application/json");
    Ok(([(header::CONTENT_TYPE, kind)], body).into_response())
}

/// Waits until there is an event after this one.
async fn beyond(progress: &mut watch::Receiver<Progress>, after: u64) {
    if progress.wait_for(|progress| progress.last_event > after).await.is_err() {
        // The session is gone: no more events will come.
        std::future::pending::<()>().await;
    }
}

/// The events as stored on disk, concatenated.
fn page_json(page: &LogPage) -> String {
    let size: usize = page.events.iter().map(|event| event.body.get().len() + 1).sum();
    let mut json = String::with_capacity(size + 32);
    json.push_str("{\"events\":[");
    for (place, event) in page.events.iter().enumerate() {
        if place > 0 {
            json.push(',');
        }
        json.push_str(event.body.get());
    }
    json.push_str("],\"hasMore\":");
    json.push_str(if page.has_more { "true}" } else { "false}" });
    json
}

#[derive(Debug, Deserialize)]
pub(super) struct Since {
    offset: Option<u64>,
}

/// Position of a stream.
struct StreamPosition {
    session: SessionHandle,
    progress: watch::Receiver<Progress>,
    after: u64,
    has_begun: bool,
}

pub(super) async fn stream(
    State(api): State<DaemonApi>,
    Path(session): Path<String>,
    since: Result<Query<Since>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Query(since) = since?;
    let session = api.session(&session).await?;
    let last_id = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.parse().ok());
    let following = StreamPosition {
        progress: session.progress(),
        session,
        // A reconnecting client's header takes precedence over its address.
        after: last_id.or(since.offset).unwrap_or(0),
        has_begun: false,
    };
    let chunks = stream::unfold(following, next_chunk);
    let kind = HeaderValue::from_static("text/event-stream");
    let cache = HeaderValue::from_static("no-cache, no-transform");
    let buffering = HeaderValue::from_static("no");
    Ok((
        [
            (header::CONTENT_TYPE, kind),
            (header::CACHE_CONTROL, cache),
            (header::HeaderName::from_static("x-accel-buffering"), buffering),
        ],
        Body::from_stream(chunks),
    )
        .into_response())
}

/// The next events as stream text, or a comment. The disk is read only when the client takes more, so that a slow one
/// costs no memory.
async fn next_chunk(
    mut following: StreamPosition,
) -> Option<(Result<Bytes, Infallible>, StreamPosition)> {
    if !following.has_begun {
        following.has_begun = true;
        // Otherwise a proxy may hold back the response's head until the first event.
        return Some((Ok(Bytes::from_static(b": connected\n\n")), following));
    }
    let deadline = Instant::now() + Duration::from_millis(HEARTBEAT_MS);
    let after = following.after;
    let waited = following.progress.wait_for(|progress| progress.last_event > after);
    let come = tokio::time::timeout_at(deadline, waited).await.map(|come| come.is_ok());
    match come {
        Ok(true) => {}
        // The session is gone.
        Ok(false) => return None,
        Err(_) => return Some((Ok(Bytes::from_static(b": heartbeat\n\n")), following)),
    }
    // An unreadable log ends the stream; the client's next call says why.
    let page = following.session.page(after, PAGE_EVENTS_MAX, PAGE_BYTES_MAX).await.ok()?;
    let mut text = String::new();
    for event in &page.events {
        text.push_str(&format!("id: {}\ndata: {}\n\n", event.id, event.body.get()));
        following.after = event.id;
    }
    if page.events.is_empty() {
        // The log lines between are damaged: readable ones come after them.
        following.after += 1;
        text.push_str(": damaged\n\n");
    }
    Some((Ok(Bytes::from(text)), following))
}
