//! OpenCode's shapes, read leniently (measured on 1.18.33): unknown fields are ignored, fields may vanish, and an
//! optional field of an unexpected shape counts as absent, so that one odd message never hides the others.

use std::collections::BTreeMap;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

/// Reads a field whatever its shape; what does not fit counts as absent.
fn lenient<'de, D, T>(deserializer: D) -> Result<T, D::Error>
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

/// A conversation with the agent; a subagent has one of its own.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Session {
    pub id: String,
    /// As given at creation.
    #[serde(default, deserialize_with = "lenient")]
    pub title: String,
    /// Absolute path of the directory that it works in, whatever directory a call about it names.
    #[serde(default, deserialize_with = "lenient")]
    pub directory: String,
    /// The session that started this one as a subagent's.
    #[serde(rename = "parentID", default, deserialize_with = "lenient")]
    pub parent_id: Option<String>,
    /// As given at creation.
    #[serde(default)]
    pub metadata: Value,
    #[serde(default, deserialize_with = "lenient")]
    pub time: Time,
}

/// Where a server works where no call says otherwise (`GET /path`).
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
    /// When a session was last changed; zero for messages.
    #[serde(deserialize_with = "lenient")]
    pub updated: f64,
    /// Finished (assistant messages); absent while it is written, and for ever if the server died meanwhile.
    #[serde(deserialize_with = "lenient")]
    pub completed: Option<f64>,
}

/// What a session is doing. `GET /session/status` lists only those that are not idle.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Status {
    /// It waits for a prompt.
    Idle,
    /// Running, or waiting for an ask.
    Busy,
    /// The model failed and is asked again.
    Retry {
        /// Which try this is, the first being 1.
        #[serde(default, deserialize_with = "lenient")]
        attempt: f64,
        /// What the model's provider said.
        #[serde(default, deserialize_with = "lenient")]
        message: String,
        /// When it is asked again, in milliseconds since the epoch.
        #[serde(default, deserialize_with = "lenient")]
        next: f64,
    },
    /// Something newer than this client: not idle.
    #[serde(other)]
    Other,
}

/// The answer of `GET /session/status`.
pub type Statuses = BTreeMap<String, Status>;

/// Who wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A person, or OpenCode itself (compaction).
    User,
    /// The agent's answer, or one step of it.
    Assistant,
    /// Something newer than this client.
    #[default]
    #[serde(other)]
    Other,
}

/// A message with its parts, as lists and single reads give it. Of what tools answered, of images and of what the model
/// thought nothing is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Who wrote it, when, and how it ended.
    pub info: Info,
    /// All of it, for the converter.
    pub(super) raw: Value,
}

impl Message {
    /// Its parts, in order.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Value> {
        self.raw["parts"].as_array().into_iter().flatten()
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Listed {
            info: Value,
            #[serde(default)]
            parts: Vec<Kept>,
        }
        /// A part, shortened before the next one is read.
        #[derive(Deserialize, Serialize)]
        #[serde(from = "Value")]
        struct Kept(Value);
        impl From<Value> for Kept {
            fn from(mut part: Value) -> Self {
                shorten(&mut part);
                Self(part)
            }
        }
        let Listed { info: mut head, parts } = Listed::deserialize(deserializer)?;
        // On a prompt the changes of all files stand there.
        if let Some(fields) = head.as_object_mut()
            && fields.get("summary").is_some_and(Value::is_object)
        {
            fields.remove("summary");
        }
        let info = Info::deserialize(&head).map_err(D::Error::custom)?;
        Ok(Self { info, raw: json!({"info": head, "parts": parts}) })
    }
}

/// Takes out of a part what is never shown and may be large.
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

/// Takes the bytes out of a part whose address holds them.
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
    /// `stop`, `tool-calls`, `unknown`, `error` or what the model sent.
    #[serde(default, deserialize_with = "lenient")]
    pub finish: Option<String>,
    /// Why the answer broke off; none where it did not.
    #[serde(default, deserialize_with = "lenient")]
    pub error: Option<MessageError>,
}

/// Where a message was written.
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
    /// What the error's name does not say.
    #[serde(deserialize_with = "lenient")]
    pub data: MessageErrorData,
}

/// The rest of an error.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MessageErrorData {
    /// In the words of whoever failed.
    #[serde(deserialize_with = "lenient")]
    pub message: String,
    /// HTTP status of the model's provider.
    #[serde(deserialize_with = "lenient")]
    pub status_code: Option<u16>,
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

impl From<FileDiff> for bobbin_core::records::changes::Change {
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
