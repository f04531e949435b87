//! Nudges the sender of a prompt when its turn has ended or asks something, so that nobody waits for the next poll.
//!
//! Promised: it contains nothing about the turn; its token is in memory only, and in no log; no run waits for it or
//! fails because of it; https only, except on loopback, and no redirects. Deliberately absent: memory across restarts.
//! A restarted daemon does not nudge for turns from before; polls find them.

use std::time::Duration;

use bobbin_http::{AllowedHosts, Http, HttpError, Method};
use serde::Deserialize;
use serde_json::Value;

use crate::limits::{NUDGE_BYTES_MAX, NUDGE_MS_MAX, NUDGE_PAUSE_MS, NUDGE_TRIES_MAX};

/// Address and token of a nudge.
#[derive(Clone)]
pub(crate) struct NudgeTarget {
    http: Http,
    url: String,
    token: String,
}

impl std::fmt::Debug for NudgeTarget {
    /// Omits the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nudge").field("url", &self.url).finish_non_exhaustive()
    }
}

impl NudgeTarget {
    /// Parses the nudge of a prompt; `None` if invalid, which is no reason to refuse the prompt.
    pub(crate) fn given(value: Value) -> Option<Self> {
        #[derive(Deserialize)]
        struct Given {
            url: String,
            token: String,
        }
        // The decoder's message could quote the token.
        let given: Option<Given> = serde_json::from_value(value).ok();
        let fits = |given: &Given| given.url.len() + given.token.len() <= NUDGE_BYTES_MAX;
        let Some(Given { url, token }) = given.filter(fits) else {
            tracing::warn!("a prompt came with a nudge that cannot be read");
            return None;
        };
        match Http::new(&url, AllowedHosts::Named(Vec::new())) {
            Ok(http) => Some(Self { http, url, token }),
            Err(error) => {
                tracing::warn!(%error, "a prompt came with a nudge that cannot be used");
                None
            }
        }
    }

    /// Sends it in the background, with a few retries.
    pub(crate) fn say(self) {
        tokio::spawn(async move {
            for number in 0..NUDGE_TRIES_MAX {
                if number > 0 {
                    tokio::time::sleep(Duration::from_millis(NUDGE_PAUSE_MS << (number - 1))).await;
                }
                match self.say_once().await {
                    Ok(409 | 429 | 500..) => {}
                    Ok(status) => {
                        tracing::debug!(status, "a nudge was sent");
                        return;
                    }
                    Err(HttpError::Refused { .. }) => return,
                    Err(error) => tracing::info!(%error, "a nudge did not arrive"),
                }
            }
        });
    }

    async fn say_once(&self) -> Result<u16, HttpError> {
        let request = self
            .http
            .request(Method::POST, &self.url)?
            .timeout(Duration::from_millis(NUDGE_MS_MAX))
            .bearer_auth(&self.token);
        let response = self.http.open(request).await?;
        Ok(response.status().as_u16())
    }
}
