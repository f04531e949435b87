//! The event stream of a server.

use std::time::Duration;

use bobbin_http::{ReceivedAnswer, broken, media_type};
use reqwest::{Method, Response};
use serde_json::Value;

use super::error::{CallKind, OpenCodeError, classify, not_an_answer};
use super::{OpenCode, OpenCodeResult};
use crate::sse::Sse;

/// Bound of waiting for the head of the event stream.
const STREAM_HEAD_MS_MAX: u64 = 15_000;
/// Longest life of an event stream; it is reopened after that.
pub(super) const STREAM_MS_MAX: u64 = 14 * 60_000;

impl OpenCode {
    /// Opens the event stream. Nothing is replayed: read everything anew after `server.connected`.
    ///
    /// # Errors
    /// [`OpenCodeError`].
    pub async fn events(&self) -> OpenCodeResult<Events> {
        match self.open_events().await {
            Err(error) if error.is_of_the_endpoint() && self.renew().await? => {
                self.open_events().await
            }
            other => other,
        }
    }

    async fn open_events(&self) -> OpenCodeResult<Events> {
        let request = self
            .request(Method::GET, "/event", &[])?
            .timeout(Duration::from_millis(self.stream_ms_max));
        let head = tokio::time::timeout(
            Duration::from_millis(STREAM_HEAD_MS_MAX),
            self.http.open(request),
        );
        let response = head.await.map_err(|_| OpenCodeError::Unreachable {
            seen: "the event stream did not start in time".to_owned(),
        })??;
        let status = response.status().as_u16();
        if status == 200 && media_type(response.headers()) == "text/event-stream" {
            return Ok(Events { response, sse: Sse::default(), ready: Vec::new() });
        }
        let headers = response.headers().clone();
        let answer = ReceivedAnswer { status, headers, body: Vec::new() };
        Err(classify(&answer, CallKind::Other).unwrap_or_else(|| not_an_answer(&answer)))
    }
}

/// An open event stream.
pub struct Events {
    response: Response,
    sse: Sse,
    ready: Vec<Value>,
}

impl Events {
    /// The next events, at least one; `None` at the end of the stream. Safe to drop and call again.
    ///
    /// # Errors
    /// [`OpenCodeError::Unreachable`] when the stream broke.
    pub async fn next(&mut self) -> OpenCodeResult<Option<Vec<Value>>> {
        while self.ready.is_empty() {
            let Some(bytes) = self.response.chunk().await.map_err(broken)? else {
                return Ok(None);
            };
            let data = self
                .sse
                .push(&bytes)
                .map_err(|e| OpenCodeError::Unreachable { seen: e.to_string() })?;
            self.ready = data.iter().filter_map(|data| serde_json::from_str(data).ok()).collect();
        }
        Ok(Some(std::mem::take(&mut self.ready)))
    }
}
