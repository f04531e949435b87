//! The ingress client: one post, and its first answer within the platforms' time limit.

use crate::limits::INGRESS_ANSWER_BYTES_MAX;
use futures::StreamExt;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

/// The ingress's first answer.
pub struct IngressAnswer {
    pub status: u16,
    pub no_retry: bool,
    pub body: Vec<u8>,
}

/// Why there was no first answer.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    #[error("the ingress's address is unknown so far; wait until the stack is up")]
    NoIngress,
    #[error("no answer in the platform's time")]
    TooLate,
    #[error("the ingress could not be reached")]
    Unreachable,
}

/// Posts to the ingress, whose address may be set late.
pub struct IngressClient {
    base: RwLock<Option<String>>,
    http: reqwest::Client,
}

impl IngressClient {
    pub fn new(base: Option<String>, answer_ms: u64) -> Result<IngressClient, reqwest::Error> {
        // Another part of the program may have installed a provider already; then that one is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_millis(answer_ms))
            .build()?;
        Ok(IngressClient { base: RwLock::new(base), http })
    }

    /// Sets the base of the function URL.
    pub fn set_base(&self, base: String) {
        let base = base.trim_end_matches('/').to_owned();
        *self.base.write().unwrap_or_else(PoisonError::into_inner) = Some(base);
    }

    /// Posts to the ingress and waits for its first answer as long as the platforms do.
    pub async fn deliver(
        &self,
        path: &str,
        headers: &[(&str, String)],
        body: Vec<u8>,
    ) -> Result<IngressAnswer, NoAnswer> {
        let base = self
            .base
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
            .ok_or(NoAnswer::NoIngress)?;
        self.deliver_to(&format!("{base}{path}"), headers, body).await
    }

    /// Like `deliver`, to a given address.
    pub async fn deliver_to(
        &self,
        url: &str,
        headers: &[(&str, String)],
        body: Vec<u8>,
    ) -> Result<IngressAnswer, NoAnswer> {
        let mut request = self.http.post(url).body(body);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let failed = |error: reqwest::Error| {
            if error.is_timeout() { NoAnswer::TooLate } else { NoAnswer::Unreachable }
        };
        let response = request.send().await.map_err(failed)?;
        let status = response.status().as_u16();
        let no_retry = response.headers().get("x-slack-no-retry").is_some_and(|value| value == "1");
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            body.extend_from_slice(&chunk.map_err(failed)?);
            if body.len() > INGRESS_ANSWER_BYTES_MAX {
                return Err(NoAnswer::Unreachable);
            }
        }
        Ok(IngressAnswer { status, no_retry, body })
    }
}
