//! The word to whoever sent a prompt that its turn has ended or asks something, so that nobody waits for their next look.
//!
//! Promised: it says nothing of the turn; what it is signed with is in memory alone, and in no log; no run waits for it or
//! fails for it; https only, but for loopback, and no redirect is followed. Deliberately absent: a memory across restarts. A
//! daemon that was started anew says nothing of turns that it was given before, and they are found by a look.

use std::time::Duration;

use bobbin_http::{Hosts, Http, HttpError, Method};
use serde::Deserialize;
use serde_json::Value;

use crate::limits::{NUDGE_BYTES_MAX, NUDGE_MS_MAX, NUDGE_PAUSE_MS, NUDGE_TRIES_MAX};

/// By what it is said.
#[derive(Clone)]
pub(crate) struct Nudge {
    http: Http,
    url: String,
    token: String,
}

impl std::fmt::Debug for Nudge {
    /// Without the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nudge").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Nudge {
    /// What came with a prompt; none where it cannot be used, which is no reason to refuse the prompt.
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
        match Http::new(&url, Hosts::Named(Vec::new())) {
            Ok(http) => Some(Self { http, url, token }),
            Err(error) => {
                tracing::warn!(%error, "a prompt came with a nudge that cannot be used");
                None
            }
        }
    }

    /// Says it beside whatever else is done, a few times where nobody can take it just now.
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
