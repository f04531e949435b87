//! A stream of events.

use std::collections::VecDeque;
use std::time::Duration;

use bobbin_agent::Sse;
use bobbin_agent_events::UniversalEvent;
use reqwest::Response;

use crate::{ClientError, ClientResult};

/// Longest life of one stream.
pub(crate) const STREAM_MAX: Duration = Duration::from_secs(24 * 3600);
/// A stream without a byte for this long is dead: the daemon sends a comment every 15 s.
const SILENCE_MAX: Duration = Duration::from_secs(45);

/// A live stream of events.
#[derive(Debug)]
pub struct EventStream {
    response: Response,
    sse: Sse,
    waiting: VecDeque<String>,
}

impl EventStream {
    pub(crate) fn new(response: Response) -> Self {
        Self { response, sse: Sse::default(), waiting: VecDeque::new() }
    }

    /// The next event. May be dropped and called again.
    ///
    /// # Errors
    /// [`ClientError::StreamEnded`]: open another one after the last event.
    pub async fn next(&mut self) -> ClientResult<UniversalEvent> {
        loop {
            if let Some(text) = self.waiting.pop_front() {
                return serde_json::from_str(&text).map_err(|_| ClientError::NotADaemon);
            }
            self.take_in().await?;
        }
    }

    /// All events in the next bytes; empty if those were only a keepalive. May be dropped and called again.
    ///
    /// # Errors
    /// As [`EventStream::next`].
    pub async fn receive(&mut self) -> ClientResult<Vec<UniversalEvent>> {
        if self.waiting.is_empty() {
            self.take_in().await?;
        }
        let texts = self.waiting.drain(..);
        texts.map(|text| serde_json::from_str(&text).map_err(|_| ClientError::NotADaemon)).collect()
    }

    async fn take_in(&mut self) -> ClientResult<()> {
        let chunk = tokio::time::timeout(SILENCE_MAX, self.response.chunk()).await;
        let Ok(Ok(Some(bytes))) = chunk else {
            return Err(ClientError::StreamEnded);
        };
        let events = self.sse.push(&bytes).map_err(|_| ClientError::StreamEnded)?;
        self.waiting.extend(events);
        Ok(())
    }
}
