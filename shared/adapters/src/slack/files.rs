//! Files: out by Slack's three steps, in with the bot's token.

use std::time::Duration;

use bobbin_core::message::Attachment;
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

    /// Fetches a file that came along with a message. Slack answers a token that may not read it with 200 and a login
    /// page, so kind and size are compared with what the message said.
    ///
    /// # Errors
    /// [`SlackError::File`] with a reason for people, or what the transport saw.
    pub async fn fetch(
        &self,
        attachment: &Attachment,
        bytes_max: usize,
    ) -> Result<Vec<u8>, SlackError> {
        let refuse = |seen: String| Err(SlackError::File { seen });
        if attachment.url.is_empty() {
            return refuse("Slack names no address for it".to_owned());
        }
        let http = self.http.with_body_bytes_max(bytes_max);
        let request = http
            .request(Method::GET, &attachment.url)
            .map_err(|e| SlackError::File {
                seen: e.to_string(),
            })?
            .bearer_auth(&self.token)
            .timeout(Duration::from_millis(TRANSFER_MS_MAX));
        let answer = http.send(request).await.map_err(|e| SlackError::File {
            seen: e.to_string(),
        })?;
        if !answer.ok() {
            return refuse(format!("status {}", answer.status));
        }
        let is_page = answer.media_type() == "text/html"
            && attachment.media_type.as_deref() != Some("text/html");
        if is_page {
            return refuse(
                "a login page came instead; the app may lack the scope files:read".to_owned(),
            );
        }
        let bytes = answer.body.len();
        if attachment.size > 0 && attachment.size != bytes as u64 {
            return refuse(format!("{bytes} bytes came instead of {}", attachment.size));
        }
        Ok(answer.body)
    }
}
