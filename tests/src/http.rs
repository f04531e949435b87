//! One small HTTP client for all of the tests' calls: loopback only in practice, JSON in and out, bounded.

use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder};
use serde_json::Value;

use crate::limits::CALL_MS_MAX;

/// An answer that has been read to its end.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Status code of the answer.
    pub status: u16,
    /// The body as text.
    pub text: String,
}

impl Answer {
    /// The body as JSON; null if it is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// The body as JSON of a success.
    ///
    /// # Errors
    /// Status and body of anything else.
    pub fn ok(&self) -> Result<Value, String> {
        if (200..300).contains(&self.status) {
            Ok(self.json())
        } else {
            Err(format!("HTTP {}: {}", self.status, self.text))
        }
    }
}

/// A client for one test; its connections belong to the test's runtime.
///
/// # Panics
/// When no client can be made, which happens only on a broken machine.
#[must_use]
pub fn client() -> Client {
    // Another test may have chosen the provider already; then that one serves.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(Duration::from_millis(CALL_MS_MAX))
        .build()
        .expect("a client without certificates needs nothing of the machine")
}

/// Sends a request and reads the whole answer.
///
/// # Errors
/// When there was none.
pub async fn send(request: RequestBuilder) -> Result<Answer, String> {
    let response = request.send().await.map_err(|error| format!("no answer: {}", chain(&error)))?;
    let status = response.status().as_u16();
    let text = response
        .text()
        .await
        .map_err(|error| format!("the answer broke off: {}", chain(&error)))?;
    Ok(Answer { status, text })
}

/// An error with its causes: only the last says whether nobody listens or nobody answers.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    std::iter::once(error.to_string())
        .chain(causes.map(ToString::to_string))
        .collect::<Vec<_>>()
        .join(": ")
}

/// A call with a JSON body (none for null) and an optional bearer or bot token.
///
/// # Errors
/// When there was no answer.
pub async fn call(
    client: &Client,
    method: Method,
    url: &str,
    authorization: &str,
    body: &Value,
) -> Result<Answer, String> {
    let mut request = client.request(method, url);
    if !authorization.is_empty() {
        request = request.header("authorization", authorization);
    }
    if !body.is_null() {
        request = request.json(body);
    }
    send(request).await
}
