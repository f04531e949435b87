//! One call of the Web API: sends it, repeats it after a short wait that Slack asks for, and reads the answer.

use std::time::Duration;

use bobbin_http::{HttpError, ReceivedAnswer};
use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use super::error::RETRY_AFTER_MS_DEFAULT;
use super::{Identity, Slack, SlackError};

/// Longest time for one call.
pub(super) const CALL_MS_MAX: u64 = 15_000;
/// Longest wait for a rate limit in place; a longer one goes back to the queue.
const WAIT_IN_PLACE_MS_MAX: u64 = 2_000;
/// Maximum waits in place for one call.
const WAITS_IN_PLACE_MAX: u32 = 2;

impl Slack {
    /// Calls a method with JSON arguments and returns its answer, `ok: true`.
    ///
    /// # Errors
    /// [`SlackError`].
    pub async fn call(&self, method: &'static str, arguments: &Value) -> Result<Value, SlackError> {
        // Slack's documentation wants the charset named; without it every answer contains a warning.
        let body = arguments.to_string();
        self.asked(method, CALL_MS_MAX, |request| {
            request.header("content-type", "application/json; charset=utf-8").body(body.clone())
        })
        .await
    }

    /// Calls a method that takes no JSON: reading methods, and the first step of an upload.
    pub(super) async fn call_form(
        &self,
        method: &'static str,
        fields: &[(&str, String)],
    ) -> Result<Value, SlackError> {
        self.asked(method, CALL_MS_MAX, |request| request.form(fields)).await
    }

    /// Sends a call, waits in place if Slack asks for a short wait, and reads the answer.
    pub(super) async fn asked(
        &self,
        method: &'static str,
        within_ms: u64,
        fill: impl Fn(RequestBuilder) -> RequestBuilder + Send,
    ) -> Result<Value, SlackError> {
        let mut waits = 0;
        loop {
            let request = self
                .http
                .request(Method::POST, &format!("{}/{method}", self.base))
                .map_err(|e| SlackError::of_http(method, e))?
                .bearer_auth(&self.token)
                .timeout(Duration::from_millis(within_ms));
            let answer =
                self.http.send(fill(request)).await.map_err(|e| SlackError::of_http(method, e))?;
            match read(method, &answer) {
                Err(SlackError::RateLimited { after_ms, .. })
                    if after_ms <= WAIT_IN_PLACE_MS_MAX && waits < WAITS_IN_PLACE_MAX =>
                {
                    waits += 1;
                    tokio::time::sleep(Duration::from_millis(after_ms)).await;
                }
                outcome => return outcome,
            }
        }
    }

    /// The identity behind the token; asked once.
    ///
    /// # Errors
    /// [`SlackError`].
    pub async fn auth_test(&self) -> Result<&Identity, SlackError> {
        self.identity
            .get_or_try_init(|| async {
                let answer = self.call("auth.test", &serde_json::json!({})).await?;
                Ok(Identity::read(&answer))
            })
            .await
    }
}

/// The answer to a call: HTTP 200 with `ok`, or the error that it means.
pub(super) fn read(method: &'static str, answer: &ReceivedAnswer) -> Result<Value, SlackError> {
    if answer.status == 429 {
        return Err(SlackError::RateLimited {
            method,
            after_ms: answer.retry_after_ms().unwrap_or(RETRY_AFTER_MS_DEFAULT),
        });
    }
    let body = answer.json::<Value>().filter(|body| body["ok"].is_boolean());
    match body {
        Some(body) if body["ok"] == true => Ok(body),
        Some(body) if answer.status < 500 => Err(SlackError::of_answer(method, &body)),
        _ => Err(SlackError::Unclear {
            method,
            seen: format!(
                "status {} with {}",
                answer.status,
                Some(answer.media_type())
                    .filter(|t| !t.is_empty())
                    .unwrap_or_else(|| "no media type".to_owned())
            ),
        }),
    }
}

impl SlackError {
    pub(super) fn of_http(method: &'static str, error: HttpError) -> Self {
        let seen = error.to_string();
        match error {
            HttpError::Refused { .. } => Self::Address { seen },
            HttpError::Transport { unsent: true, .. } => Self::NotSent { method, seen },
            HttpError::Timeout { .. }
            | HttpError::Transport { .. }
            | HttpError::TooLarge { .. } => Self::Unclear { method, seen },
        }
    }
}
