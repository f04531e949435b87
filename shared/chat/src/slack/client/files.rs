//! Outgoing files, in Slack's three steps. Incoming files are fetched where they are needed: `sandbox/attach.rs`.

use std::time::Duration;

use bobbin_core::base::ids::{PostRef, ThreadKey, TurnId};
use bobbin_core::base::names::PostKind;
use bobbin_core::records::card::ShownFile;
use reqwest::Method;
use serde_json::json;

use super::memory::FILE;
use super::wanted::WantedPost;
use super::{Slack, SlackError};
use crate::slack::render::{self, RenderedBlocks};

/// A file to be uploaded into a thread.
pub struct FileUpload<'a> {
    /// Name of the file; a name from [`stamped`] can be found again in the thread.
    pub name: String,
    /// Title shown to people.
    pub title: &'a str,
    /// Text above it, as mrkdwn.
    pub comment: Option<String>,
    /// Content of the file.
    pub bytes: &'a [u8],
}

/// The name with a part of a post's key in it: Slack has no key that identifies a repeated upload, but lists the names
/// of the files in a thread.
#[must_use]
pub fn stamped(name: &str, key: &str) -> String {
    let stamp = &key[..key.len().min(STAMP_CHARS)];
    match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => format!("{stem}-{stamp}.{ending}"),
        _ => format!("{name}-{stamp}"),
    }
}

/// Characters of the key in a file's name.
const STAMP_CHARS: usize = 8;
/// Longest time to transfer one file.
const TRANSFER_MS_MAX: u64 = 60_000;

impl Slack {
    /// Uploads a file into a thread.
    ///
    /// # Errors
    /// [`SlackError`]; also [`SlackError::Unclear`] if the bytes were not accepted.
    pub async fn upload(
        &self,
        channel: &str,
        root_ts: Option<&str>,
        file: &FileUpload<'_>,
    ) -> Result<(), SlackError> {
        let fields = [("filename", file.name.clone()), ("length", file.bytes.len().to_string())];
        let ticket = self.call_form("files.getUploadURLExternal", &fields).await?;
        let (Some(address), Some(id)) = (ticket["upload_url"].as_str(), ticket["file_id"].as_str())
        else {
            return Err(SlackError::Unclear {
                method: "files.getUploadURLExternal",
                seen: "an answer without an address".to_owned(),
            });
        };
        // The address is itself a ticket: the token is not sent along.
        let request = self
            .http
            .request(Method::POST, address)
            .map_err(|e| SlackError::Address { seen: e.to_string() })?
            .header("content-type", "application/octet-stream")
            .timeout(Duration::from_millis(TRANSFER_MS_MAX))
            .body(file.bytes.to_vec());
        let answer =
            self.http.send(request).await.map_err(|e| SlackError::of_http("the upload", e))?;
        if !answer.ok() {
            return Err(SlackError::Unclear {
                method: "the upload",
                seen: format!("status {}", answer.status),
            });
        }
        let mut arguments =
            json!({ "files": [{ "id": id, "title": file.title }], "channel_id": channel });
        if let Some(root_ts) = root_ts {
            arguments["thread_ts"] = root_ts.into();
        }
        if let Some(comment) = &file.comment {
            arguments["initial_comment"] = comment.as_str().into();
        }
        self.call("files.completeUploadExternal", &arguments).await?;
        Ok(())
    }
}

impl Slack {
    /// Posts a turn's changes into the thread as a file, with its summary, unless it is already there. True: it was
    /// already there.
    ///
    /// # Errors
    /// [`SlackError`].
    pub(super) async fn post_diff(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        patch: &str,
    ) -> Result<bool, SlackError> {
        let wanted = self.wanted(thread, turn, &PostKind::Diff)?;
        // Another process may have answered an earlier request.
        self.memory().forget(&wanted.memory_key());
        let file = FileUpload {
            name: stamped("changes.diff", &wanted.key),
            title: "What the task changed",
            comment: Some(render::diff_summary(patch)),
            bytes: patch.as_bytes(),
        };
        self.uploaded_once(&wanted, &file).await.map(|at| at.is_some())
    }

    /// Posts a file that the agent left to be shown.
    pub(super) async fn shown(
        &self,
        wanted: &WantedPost<'_>,
        file: &ShownFile,
    ) -> Result<PostRef, SlackError> {
        let upload = FileUpload {
            name: stamped(&file.name, &wanted.key),
            title: &file.name,
            comment: None,
            bytes: &file.bytes,
        };
        let stood = self.uploaded_once(wanted, &upload).await?;
        // Slack does not return the `ts` of a file's message; nobody edits it.
        Ok(PostRef { channel: wanted.channel.clone(), id: stood.unwrap_or_default() })
    }

    /// Uploads a file unless one with its name is in the thread; returns the `ts` of the existing one.
    pub(super) async fn uploaded_once(
        &self,
        wanted: &WantedPost<'_>,
        file: &FileUpload<'_>,
    ) -> Result<Option<String>, SlackError> {
        let key = wanted.memory_key();
        let mut posts = self.posts(wanted).await?;
        let name = format!("{FILE}{}", file.name);
        if let Some(ts) = posts.get(&name) {
            return Ok(Some(ts.clone()));
        }
        // If this future is dropped during the upload, or its outcome is unclear, the next attempt has to check.
        self.memory().forget(&key);
        let done = self.upload(&wanted.channel, wanted.root, file).await;
        match &done {
            Ok(()) => {
                posts.insert(name, String::new());
                self.memory().learn(&key, posts);
            }
            Err(error) if !error.passes() => self.memory().learn(&key, posts),
            Err(_) => {}
        }
        done.map(|()| None)
    }

    /// Uploads the whole answer into the thread as a file, once; the message posted afterwards is the one that counts.
    pub(super) async fn with_file(
        &self,
        wanted: &WantedPost<'_>,
        whole: RenderedBlocks,
        text: &str,
        file: &str,
    ) -> Result<RenderedBlocks, SlackError> {
        let upload = FileUpload {
            name: stamped("answer.md", &wanted.key),
            title: "answer.md",
            comment: None,
            bytes: file.as_bytes(),
        };
        match self.uploaded_once(wanted, &upload).await {
            Ok(_) => Ok(whole),
            Err(error) if error.passes() || matches!(error, SlackError::Token { .. }) => Err(error),
            Err(error) => {
                tracing::warn!(event = "slack.file.refused", %error, "an answer's file cannot be posted to Slack");
                Ok(render::free(&format!(
                    "_The answer was too long for messages, and its file could not be attached ({error})._\n\n{text}"
                )))
            }
        }
    }
}
