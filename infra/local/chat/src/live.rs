//! Live notices (`/live`): they only say what to reload; a page that missed some reloads everything.

use crate::hub::{Hub, lock};
use crate::limits::{INSPECTOR_POLL_MS, INSPECTOR_READ_MS_MAX};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::{FutureExt, Stream, StreamExt};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;

/// Live notices. Too many viewers are refused; one that lags behind is told to reload everything.
pub async fn serve(State(hub): State<Arc<Hub>>) -> Response {
    let Ok(seat) = Arc::clone(&hub.viewers).try_acquire_owned() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many pages are open").into_response();
    };
    let stop = hub.stop.clone();
    let notices = notices(hub.live.subscribe()).map(move |notice| {
        // Frees the seat when the stream ends.
        let _ = &seat;
        Ok::<_, Infallible>(Event::default().data(notice.to_string()))
    });
    let ended = async move { stop.cancelled().await };
    Sse::new(notices.take_until(ended.boxed())).keep_alive(KeepAlive::default()).into_response()
}

fn notices(live: tokio::sync::broadcast::Receiver<Value>) -> impl Stream<Item = Value> {
    futures::stream::unfold((live, true), |(mut live, first)| async move {
        if first {
            return Some((json!({"kind": "everything"}), (live, false)));
        }
        match live.recv().await {
            Ok(notice) => Some((notice, (live, false))),
            Err(RecvError::Lagged(_)) => Some((json!({"kind": "everything"}), (live, false))),
            Err(RecvError::Closed) => None,
        }
    })
}

/// Reads the session records while a page is open, and notifies the pages of changes.
pub async fn watch_inspector(hub: Arc<Hub>) {
    loop {
        tokio::select! {
            () = hub.stop.cancelled() => return,
            () = tokio::time::sleep(Duration::from_millis(INSPECTOR_POLL_MS)) => {}
        }
        if hub.live.receiver_count() == 0 {
            continue;
        }
        let reading = async { futures::join!(hub.inspector.sessions(), hub.inspector.sandboxes()) };
        let Ok((sessions, sandboxes)) =
            tokio::time::timeout(Duration::from_millis(INSPECTOR_READ_MS_MAX), reading).await
        else {
            tracing::debug!("the session records could not be read in time");
            continue;
        };
        let now = json!({"sessions": sessions, "sandboxes": sandboxes});
        let changed = {
            let mut inspected = lock(&hub.inspected);
            let changed = *inspected != now;
            *inspected = now;
            changed
        };
        if changed {
            hub.notify(json!({"kind": "inspector"}));
        }
    }
}
