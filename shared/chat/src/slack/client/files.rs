//! Files out, by Slack's three steps. Those that come in are fetched where they are needed: `sandbox/attach.rs`.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;

use super::{Slack, SlackError};

/// A file on its way into a thread.
pub struct Upload<'a> {
    /// Name of the file; with [`stamped`] one that is in the thread can be found again.
    pub name: String,
    /// What people read on it.
    pub title: &'a str,
    /// Words above it, as mrkdwn.
    pub comment: Option<String>,
    /// What is in it.
    pub bytes: &'a [u8],
}

/// The name with a part of a post's key in it: Slack knows no key by which a repeated upload would be recognised, but
/// tells the names of the files in a thread.
#[must_use]
pub fn stamped(name: &str, key: &str) -> String {
    let stamp = &key[..key.len().min(STAMP_CHARS)];
    match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => format!("{stem}-{stamp}.{ending}"),
        _ => format!("{name}-{stamp}"),
    }
}

/// Characters of a key in a file's name.
const STAMP_CHARS: usize = 8;
/// The bytes of one file take no longer.
const TRANSFER_MS_MAX: u64 = 60_000;

impl Slack {
    /// Puts a file into a thread.
    ///
    /// # Errors
    /// [`SlackError`]; [`SlackError::Unclear`] also when the bytes were not taken.
    pub async fn upload(
        &self,
        channel: &str,
        root_ts: &str,
        file: &Upload<'_>,
    ) -> Result<(), SlackError> {
        let fields = [
            ("filename", file.name.clone()),
            ("length", file.bytes.len().to_string()),
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
            .body(file.bytes.to_vec());
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
        let mut arguments = json!({ "files": [{ "id": id, "title": file.title }], "channel_id": channel, "thread_ts": root_ts });
        if let Some(comment) = &file.comment {
            arguments["initial_comment"] = comment.as_str().into();
        }
        self.call("files.completeUploadExternal", &arguments)
            .await?;
        Ok(())
    }
}
