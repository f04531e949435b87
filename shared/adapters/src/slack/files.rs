//! Files out, by Slack's three steps. Those that come in are fetched where they are needed: `sandbox/attach.rs`.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use super::{Slack, SlackError};

/// The bytes of one file take no longer.
const TRANSFER_MS_MAX: u64 = 60_000;

impl Slack {
    /// Puts a text file into a thread.
    ///
    /// # Errors
    /// [`SlackError`]; [`SlackError::Unclear`] also when the bytes were not taken.
    pub async fn upload(
        &self,
        channel: &str,
        root_ts: &str,
        name: &str,
        title: &str,
        text: &str,
    ) -> Result<(), SlackError> {
        let fields = [
            ("filename", name.to_owned()),
            ("length", text.len().to_string()),
        ];
        let ticket = self
            .call_form("files.getUploadURLExternal", &fields)
            .await?;
        let (Some(address), Some(id)) = (ticket["upload_url"].as_str(), ticket["file_id"].as_str())
        else {
            return Err(SlackError::Unclear {
                method: "files.getUploadURLExternal",
                seen: "an answer without an address".to_owned(),
            });
        };
        // The address is a ticket of its own: the token is not sent along.
        let request = self
            .http
            .request(Method::POST, address)
            .map_err(|e| SlackError::Address {
                seen: e.to_string(),
            })?
            .header("content-type", "application/octet-stream")
            .timeout(Duration::from_millis(TRANSFER_MS_MAX))
            .body(text.to_owned());
        let answer = self
            .http
            .send(request)
            .await
            .map_err(|e| SlackError::of_http("the upload", e))?;
        if !answer.ok() {
            return Err(SlackError::Unclear {
                method: "the upload",
                seen: format!("status {}", answer.status),
            });
        }
        let arguments = json!({ "files": [{ "id": id, "title": title }], "channel_id": channel, "thread_ts": root_ts });
        self.call("files.completeUploadExternal", &arguments)
            .await?;
        Ok(())
    }
}
