//! Slack calls for setting up: the token's identity and scopes, and a test turn.

use std::time::Duration;

use bobbin_http::{AllowedHosts, Http};
use hmac::{Hmac, KeyInit, Mac};
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::Value;
use sha2::Sha256;

use super::call::{CALL_MS_MAX, read};
use super::{Identity, Slack, SlackError};
use crate::slack::render;

/// Maximum number of messages read from a thread.
const MESSAGES_MAX: u32 = 50;

/// The app's installation, by its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppInstallation {
    /// The identity of the token.
    pub identity: Identity,
    /// Name of the workspace.
    pub team_name: String,
    /// The token's scopes; `None` if Slack did not name them.
    pub scopes: Option<Vec<String>>,
}

impl Slack {
    /// The token's identity and scopes: Slack names its scopes in a header of every answer.
    ///
    /// # Errors
    /// [`SlackError`].
    pub async fn installed(&self) -> Result<AppInstallation, SlackError> {
        let method = "auth.test";
        let request = self
            .http
            .request(Method::POST, &format!("{}/{method}", self.base))
            .map_err(|e| SlackError::of_http(method, e))?
            .bearer_auth(&self.token)
            .timeout(Duration::from_millis(CALL_MS_MAX));
        let answer = self.http.send(request).await.map_err(|e| SlackError::of_http(method, e))?;
        let said = read(method, &answer)?;
        let scopes = answer.headers.get("x-oauth-scopes");
        Ok(AppInstallation {
            identity: Identity::read(&said),
            team_name: said["team"].as_str().unwrap_or_default().to_owned(),
            scopes: scopes.and_then(|list| list.to_str().ok()).map(|list| {
                let each = list.split(',').map(str::trim);
                each.filter(|scope| !scope.is_empty()).map(str::to_owned).collect()
            }),
        })
    }

    /// Posts a new message and returns its `ts`.
    ///
    /// # Errors
    /// [`SlackError`].
    pub async fn say(&self, channel: &str, text: &str) -> Result<String, SlackError> {
        let method = "chat.postMessage";
        let posted =
            self.call(method, &render::direct_message(channel, None, &render::free(text))).await?;
        let ts = posted["ts"].as_str().map(str::to_owned);
        ts.ok_or(SlackError::Unclear { method, seen: "an answer without ts".to_owned() })
    }

    /// The texts of a thread's messages, as Slack shows them in notifications.
    ///
    /// # Errors
    /// [`SlackError`].
    pub async fn words_of_thread(
        &self,
        channel: &str,
        root: &str,
    ) -> Result<Vec<String>, SlackError> {
        let fields = [
            ("channel", channel.to_owned()),
            ("ts", root.to_owned()),
            ("limit", MESSAGES_MAX.to_string()),
        ];
        let answer = self.call_form("conversations.replies", &fields).await?;
        let messages = answer["messages"].as_array().into_iter().flatten();
        Ok(messages
            .map(|message| {
                format!("{} {}", message["text"].as_str().unwrap_or_default(), message["blocks"])
            })
            .collect())
    }
}

/// Delivers a signed event to an ingress as Slack does; returns the status.
///
/// # Errors
/// Why there was no answer.
pub async fn deliver(
    ingress: &str,
    signing_secret: &str,
    event: &Value,
    now_ms: u64,
) -> Result<u16, String> {
    let address = format!("{}/slack/events", ingress.trim_end_matches('/'));
    let http = Http::new(&address, AllowedHosts::Named(Vec::new())).map_err(|e| e.to_string())?;
    let body = event.to_string();
    let timestamp = (now_ms / 1_000).to_string();
    let request = http
        .request(Method::POST, &address)
        .map_err(|e| e.to_string())?
        .header(CONTENT_TYPE, "application/json")
        .header("x-slack-request-timestamp", &timestamp)
        .header("x-slack-signature", signature(signing_secret, &timestamp, body.as_bytes()))
        .body(body);
    let answer = http.send(request).await.map_err(|e| e.to_string())?;
    Ok(answer.status)
}

/// Slack's signature, version 0: an HMAC-SHA256 over version, time and raw body.
#[must_use]
pub fn signature(secret: &str, timestamp: &str, body: &[u8]) -> String {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(format!("v0:{timestamp}:").as_bytes());
    mac.update(body);
    format!("v0={}", hex::encode(mac.finalize().into_bytes()))
}
