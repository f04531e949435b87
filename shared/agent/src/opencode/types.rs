//! OpenCode's shapes, read leniently (measured on 1.18.33): unknown fields are ignored, fields may vanish, and an
//! optional field of an unexpected shape counts as absent, so that one odd message never hides the others.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

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

/// A message with its parts, as lists and single reads give it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Message {
    /// Who wrote it, when, and what it cost.
    pub info: Info,
    /// The parts, in order.
    #[serde(default)]
    pub parts: Vec<Part>,
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
    /// `compaction` on the summaries that OpenCode writes by itself.
    #[serde(default, deserialize_with = "lenient")]
    pub mode: String,
    /// `true` on summaries of a compaction; an object of diffs on user messages.
    #[serde(default)]
    pub summary: Value,
    /// What its model calls cost, in US dollars.
    #[serde(default, deserialize_with = "lenient")]
    pub cost: f64,
    #[serde(default, deserialize_with = "lenient")]
    pub tokens: Tokens,
    /// `stop`, `tool-calls`, `unknown`, `error` or what the model sent.
    #[serde(default, deserialize_with = "lenient")]
    pub finish: Option<String>,
    /// Why the answer broke off; none where it did not.
    #[serde(default, deserialize_with = "lenient")]
    pub error: Option<MessageError>,
}

impl Info {
    /// Whether this is a compaction's summary, which is never shown.
    #[must_use]
    pub fn is_summary(&self) -> bool {
        self.summary == Value::Bool(true) || self.mode == "compaction"
    }
}

/// Where a message was written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Paths {
    #[serde(deserialize_with = "lenient")]
    pub cwd: String,
}

/// Tokens of one step.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct Tokens {
    /// All of them, where the provider says so.
    #[serde(deserialize_with = "lenient")]
    pub total: f64,
    /// Read by the model.
    #[serde(deserialize_with = "lenient")]
    pub input: f64,
    /// Written by the model.
    #[serde(deserialize_with = "lenient")]
    pub output: f64,
    /// Thought by the model.
    #[serde(deserialize_with = "lenient")]
    pub reasoning: f64,
    /// Served from, or written to, the provider's cache.
    #[serde(deserialize_with = "lenient")]
    pub cache: CacheTokens,
}

/// Tokens that went through the provider's cache.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct CacheTokens {
    /// Tokens that were read from the cache.
    #[serde(deserialize_with = "lenient")]
    pub read: f64,
    /// Tokens that were written to the cache.
    #[serde(deserialize_with = "lenient")]
    pub write: f64,
}

impl Tokens {
    /// All tokens in and out.
    #[must_use]
    pub fn all(&self) -> u64 {
        let sum = self.input + self.output + self.reasoning + self.cache.read + self.cache.write;
        // A float beyond the range saturates; a negative one counts as none.
        (if self.total > 0.0 { self.total } else { sum }) as u64
    }
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

/// One part of a message.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Part {
    pub id: String,
    #[serde(rename = "sessionID", default, deserialize_with = "lenient")]
    pub session_id: String,
    #[serde(rename = "messageID", default, deserialize_with = "lenient")]
    pub message_id: String,
    #[serde(flatten)]
    pub kind: PartKind,
}

/// What a part is.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum PartKind {
    /// What the agent says, or a person has written.
    Text {
        /// The words so far.
        #[serde(default, deserialize_with = "lenient")]
        text: String,
        /// Written by OpenCode, not by its author.
        #[serde(default, deserialize_with = "lenient")]
        synthetic: bool,
        /// Not for anybody's eyes.
        #[serde(default, deserialize_with = "lenient")]
        ignored: bool,
        /// `compaction_continue` and the like.
        #[serde(default)]
        metadata: Value,
    },
    /// A tool call. Its output is deliberately not read: it is never shown.
    Tool {
        /// Name; `invalid` once OpenCode found the call unusable.
        #[serde(default, deserialize_with = "lenient")]
        tool: String,
        /// Id of the call.
        #[serde(rename = "callID", default, deserialize_with = "lenient")]
        call_id: String,
        #[serde(default, deserialize_with = "lenient")]
        state: ToolState,
    },
    /// A step of the model begins; text before the last of them in a message is void (a retry).
    StepStart,
    /// A step of the model has come to its end; one that was stopped or cut has none.
    StepFinish,
    /// What a step changed; before OpenCode has summed it up on the prompt.
    Patch {
        /// Absolute paths.
        #[serde(default, deserialize_with = "lenient")]
        files: Vec<String>,
    },
    /// The conversation is being summarised.
    Compaction,
    /// Anything else: never shown.
    #[serde(other)]
    Other,
}

/// How a tool call stands.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct ToolState {
    #[serde(deserialize_with = "lenient")]
    pub status: ToolStatus,
    /// What the tool was called with, as the model gave it.
    pub input: Value,
    /// `exit` of bash, `sessionId` of task.
    #[serde(deserialize_with = "lenient")]
    pub metadata: ToolMetadata,
}

/// How far a tool call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolStatus {
    /// The model is writing its arguments.
    #[default]
    Pending,
    /// Under way, or waiting for an ask.
    Running,
    /// It has ended without an error.
    Completed,
    /// Refused, broken off or failed.
    Error,
    /// Something newer than this client.
    #[serde(other)]
    Other,
}

/// What a tool says about its call, as far as it is shown or followed.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub struct ToolMetadata {
    /// Exit status of a command.
    #[serde(deserialize_with = "lenient")]
    pub exit: Option<i64>,
    /// Session of a subagent.
    #[serde(rename = "sessionId", deserialize_with = "lenient")]
    pub session_id: Option<String>,
}

/// The tool call that an ask belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct ToolRef {
    /// Id of the call.
    #[serde(rename = "callID", deserialize_with = "lenient")]
    pub call_id: String,
}

/// A permission that is asked for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Permission {
    /// Its id at OpenCode.
    pub id: String,
    /// Session that asks: a subagent's own.
    #[serde(rename = "sessionID", default, deserialize_with = "lenient")]
    pub session_id: String,
    /// `bash`, `edit`, `external_directory`, `read`, …
    #[serde(default, deserialize_with = "lenient")]
    pub permission: String,
    /// What for: the command, a path, a pattern.
    #[serde(default, deserialize_with = "lenient")]
    pub patterns: Vec<String>,
    /// What the tool says of the call, such as `command` and `filepath`.
    #[serde(default)]
    pub metadata: Value,
    /// What "always" would cover, as patterns.
    #[serde(default, deserialize_with = "lenient")]
    pub always: Vec<String>,
    /// The tool call that waits for it.
    #[serde(default, deserialize_with = "lenient")]
    pub tool: ToolRef,
}

/// Questions of the agent, asked together.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Question {
    /// Its id at OpenCode.
    pub id: String,
    /// Session that asks: a subagent's own.
    #[serde(rename = "sessionID", default, deserialize_with = "lenient")]
    pub session_id: String,
    /// In the order in which they are asked.
    #[serde(default, deserialize_with = "lenient")]
    pub questions: Vec<QuestionItem>,
}

/// A question with the options that the agent gives.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct QuestionItem {
    #[serde(deserialize_with = "lenient")]
    pub question: String,
    /// A word or two that name it.
    #[serde(deserialize_with = "lenient")]
    pub header: String,
    /// What can be chosen.
    #[serde(deserialize_with = "lenient")]
    pub options: Vec<QuestionOption>,
    /// More than one option may be chosen.
    #[serde(deserialize_with = "lenient")]
    pub multiple: bool,
    /// Whether own words are an answer too; OpenCode takes them unless this is false.
    #[serde(deserialize_with = "lenient")]
    pub custom: Option<bool>,
}

/// One thing to choose.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct QuestionOption {
    /// Its name, which is also the answer.
    #[serde(deserialize_with = "lenient")]
    pub label: String,
    #[serde(deserialize_with = "lenient")]
    pub description: String,
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

impl From<FileDiff> for bobbin_core::changes::Change {
    fn from(diff: FileDiff) -> Self {
        use bobbin_core::changes::How;
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
