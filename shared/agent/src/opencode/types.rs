//! OpenCode's shapes, parsed leniently (measured on 1.18.33): unknown fields are ignored, fields may be missing, and an
//! optional field of an unexpected shape counts as absent, so that one odd message never hides the others.

use std::collections::BTreeMap;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

/// Parses a field of any shape; an unexpected one counts as absent.
pub(super) fn lenient<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// The answer of `GET /global/health`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Health {
    /// The server is up.
    pub healthy: bool,
    #[serde(default, deserialize_with = "lenient")]
    pub version: String,
}

/// A conversation with the agent; a subagent has a separate one.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct OpenCodeSession {
    pub id: String,
    /// As given at creation.
    #[serde(default, deserialize_with = "lenient")]
    pub title: String,
    /// Absolute path of its working directory, whatever directory a call about it names.
    #[serde(default, deserialize_with = "lenient")]
    pub directory: String,
    /// The session that started this one as a subagent.
    #[serde(rename = "parentID", default, deserialize_with = "lenient")]
    pub parent_id: Option<String>,
    /// What its own messages have cost, in US dollars.
    #[serde(default, deserialize_with = "lenient")]
    pub cost: f64,
    /// As given at creation.
    #[serde(default)]
    pub metadata: Value,
    #[serde(default, deserialize_with = "lenient")]
    pub time: Time,
}

/// The server's default working directory (`GET /path`).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ServerPaths {
    /// Absolute path of the directory.
    pub directory: String,
}

/// Times in milliseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Time {
    #[serde(deserialize_with = "lenient")]
    pub created: f64,
    /// Last change of a session; zero for messages.
    #[serde(deserialize_with = "lenient")]
    pub updated: f64,
    /// Completion time (assistant messages); absent while it is being written, and for ever if the server died
    /// meanwhile.
    #[serde(deserialize_with = "lenient")]
    pub completed: Option<f64>,
}

/// Status of a session. `GET /session/status` lists only those that are not idle.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum OpenCodeStatus {
    /// It waits for a prompt.
    Idle,
    /// Running, or waiting for an ask.
    Busy,
    /// The model failed and will be asked again.
    Retry {
        /// The attempt number, from 1.
        #[serde(default, deserialize_with = "lenient")]
        attempt: f64,
        /// The vendor's message.
        #[serde(default, deserialize_with = "lenient")]
        message: String,
        /// Time of the next attempt, in milliseconds since the epoch.
        #[serde(default, deserialize_with = "lenient")]
        next: f64,
    },
    /// A status newer than this client: not idle.
    #[serde(other)]
    Other,
}

/// The answer of `GET /session/status`.
pub type OpenCodeStatuses = BTreeMap<String, OpenCodeStatus>;

/// Author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A person, or OpenCode itself (compaction).
    User,
    /// The agent's answer, or one step of it.
    Assistant,
    /// A role newer than this client.
    #[default]
    #[serde(other)]
    Other,
}

/// A message with its parts, as returned by lists and single reads. Output of tools, images and the model's reasoning
/// are not kept.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenCodeMessage {
    /// Author, times and end.
    pub info: Info,
    /// The whole message, for the converter.
    pub(super) raw: Value,
}

impl OpenCodeMessage {
    /// Its parts, in order.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Value> {
        self.raw["parts"].as_array().into_iter().flatten()
    }
}

impl<'de> Deserialize<'de> for OpenCodeMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct ListedMessage {
            info: Value,
            #[serde(default)]
            parts: Vec<KeptPart>,
        }
        /// A part, shortened before the next one is parsed.
        #[derive(Deserialize, Serialize)]
        #[serde(from = "Value")]
        struct KeptPart(Value);
        impl From<Value> for KeptPart {
            fn from(mut part: Value) -> Self {
                shorten(&mut part);
                Self(part)
            }
        }
        let ListedMessage { info: mut head, parts } = ListedMessage::deserialize(deserializer)?;
        // A prompt's head contains the changes of all files.
        if let Some(fields) = head.as_object_mut()
            && fields.get("summary").is_some_and(Value::is_object)
        {
            fields.remove("summary");
        }
        let info = Info::deserialize(&head).map_err(D::Error::custom)?;
        Ok(Self { info, raw: json!({"info": head, "parts": parts}) })
    }
}

/// Removes what is never shown and may be large from a part.
pub(super) fn shorten(part: &mut Value) {
    match part.get("type").and_then(Value::as_str) {
        Some("file") => drop_data(part),
        Some("reasoning") => empty(part.get_mut("text")),
        Some("tool") => {
            let Some(Value::Object(state)) = part.get_mut("state") else {
                return;
            };
            state.remove("attachments");
            empty(state.get_mut("output"));
            empty(state.get_mut("error"));
            if let Some(Value::Object(metadata)) = state.get_mut("metadata") {
                metadata.retain(|name, _| matches!(name.as_str(), "exit" | "sessionId"));
            }
        }
        _ => {}
    }
}

/// Removes the bytes from a part with a data URL.
pub fn drop_data(part: &mut Value) {
    if let Some(Value::String(url)) = part.get_mut("url")
        && url.starts_with("data:")
        && let Some(comma) = url.find(',')
    {
        url.truncate(comma + 1);
    }
}

fn empty(text: Option<&mut Value>) {
    if let Some(text @ Value::String(_)) = text {
        *text = Value::String(String::new());
    }
}

/// The head of a message.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Info {
    pub id: String,
    #[serde(rename = "sessionID", default, deserialize_with = "lenient")]
    pub session_id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub role: Role,
    /// The user message that it answers (assistant messages).
    #[serde(rename = "parentID", default, deserialize_with = "lenient")]
    pub parent_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub time: Time,
    /// Working directory (assistant messages).
    #[serde(default, deserialize_with = "lenient")]
    pub path: Paths,
    /// `stop`, `tool-calls`, `unknown`, `error` or the model's own value.
    #[serde(default, deserialize_with = "lenient")]
    pub finish: Option<String>,
    /// Why the answer broke off; `None` if it did not.
    #[serde(default, deserialize_with = "lenient")]
    pub error: Option<MessageError>,
    /// What it has cost, in US dollars; 0 if it broke off.
    #[serde(default, deserialize_with = "lenient")]
    pub cost: f64,
}

/// Working directory of a message.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Paths {
    #[serde(deserialize_with = "lenient")]
    pub cwd: String,
}

/// An error of the model or the agent.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct MessageError {
    /// `APIError`, `MessageAbortedError`, `ContextOverflowError`, …
    #[serde(deserialize_with = "lenient")]
    pub name: String,
    /// Details.
    #[serde(deserialize_with = "lenient")]
    pub data: MessageErrorData,
}

/// Details of an error.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MessageErrorData {
    /// The message of the failed component.
    #[serde(deserialize_with = "lenient")]
    pub message: String,
    /// HTTP status from the vendor.
    #[serde(deserialize_with = "lenient")]
    pub status_code: Option<u16>,
    /// The vendor's answer.
    #[serde(deserialize_with = "lenient")]
    pub response_body: String,
}

/// One changed file of a turn (`GET /session/{id}/diff?messageID=…`).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FileDiff {
    /// Path relative to the project.
    pub file: String,
    #[serde(default, deserialize_with = "lenient")]
    pub additions: u64,
    #[serde(default, deserialize_with = "lenient")]
    pub deletions: u64,
    /// `added`, `deleted` or `modified`.
    #[serde(default, deserialize_with = "lenient")]
    pub status: String,
    /// A unified diff; empty for binary files.
    #[serde(default, deserialize_with = "lenient")]
    pub patch: String,
}

impl From<FileDiff> for bobbin_core::records::changes::ChangedFile {
    fn from(diff: FileDiff) -> Self {
        use bobbin_core::records::changes::How;
        Self {
            how: match diff.status.as_str() {
                "added" => How::Added,
                "deleted" => How::Deleted,
                _ => How::Modified,
            },
            file: diff.file,
            added: diff.additions,
            removed: diff.deletions,
            patch: diff.patch,
        }
    }
}
