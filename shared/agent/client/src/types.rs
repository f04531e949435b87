//! Requests and answers: the session API of sandbox-agent at 79bb441, and our extensions.

use bobbin_agent_events::{PermissionRequest, QuestionRequest, TurnOutcome, UniversalEvent};
use serde::{Deserialize, Serialize};

/// An agent of the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AgentInfo {
    /// Its name.
    pub id: String,
    /// Whether its program is installed.
    pub installed: bool,
    /// Version, as it reports it.
    pub version: Option<String>,
    /// Path of its program.
    pub path: Option<String>,
}

/// A mode of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AgentMode {
    /// Id for [`CreateSession::agent_mode`].
    pub id: String,
    /// Display name.
    pub name: String,
    /// Description for a person.
    pub description: String,
}

/// Request for a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateSession {
    /// Name of the agent.
    pub agent: String,
    /// One of its modes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_mode: Option<String>,
    /// `default`, `plan` or `bypass`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// Model, in the agent's own notation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Variant of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Working directory: an absolute path in the sandbox. Our extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// An existing session of the agent to continue. Our extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_session_id: Option<String>,
    /// Title. Our extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Instructions besides the prompts, if the agent supports them. Our extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

/// A created session.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreatedSession {
    /// Whether its agent runs or starts.
    pub healthy: bool,
    /// The agent's own session id, if it already has one.
    pub agent_session_id: Option<String>,
    /// Why it is not healthy.
    pub error: Option<AgentProblem>,
}

/// Why an agent does not run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AgentProblem {
    /// Error type, such as `agent_process_exited`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Message for a person.
    pub message: String,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionInfo {
    /// The client's id.
    pub session_id: String,
    /// The agent's name.
    pub agent: String,
    /// Its mode.
    pub agent_mode: String,
    /// `default`, `plan` or `bypass`.
    pub permission_mode: String,
    /// Whether it was terminated.
    pub ended: bool,
    /// Number of events so far, which is the id of the last.
    pub event_count: u64,
    /// The agent's own id.
    pub agent_session_id: Option<String>,
    /// Its model, if one was requested.
    pub model: Option<String>,
    /// Working directory. Our extension.
    pub directory: Option<String>,
    /// Ids of its open asks. Our extension.
    #[serde(default)]
    pub asks: Vec<String>,
}

/// A message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NewMessage {
    /// The text.
    pub message: String,
    /// The id of its turn: a repeat with it does nothing. Our extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// Files in the sandbox that go with it. Our extension.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<MessageAttachment>,
    /// The model of this turn. Our extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The mode of this turn; only OpenCode can change it between turns. Our extension.
    #[serde(rename = "agentMode", skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Address and token for reporting the end or an ask; a daemon that does not know this field reports nothing. Our
    /// extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nudge: Option<NudgeAddress>,
}

/// Address and token with which the daemon reports an event. `Debug` shows no token.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct NudgeAddress {
    /// Address to which it posts an empty body; https, or loopback.
    pub url: String,
    /// Token that it sends as `Authorization: Bearer`.
    pub token: String,
}

impl std::fmt::Debug for NudgeAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nudge").field("url", &self.url).finish_non_exhaustive()
    }
}

/// A file that goes with a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MessageAttachment {
    /// Path in the sandbox: absolute, or relative to the session's directory.
    pub path: String,
    /// Its media type. An image is shown to the model if the agent supports that; of other files it gets the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// Display name, if not the path's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
}

/// Result of sending a message: its turn's id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Submitted {
    /// Accepted; it runs once.
    Accepted(String),
    /// Already accepted earlier; nothing was done.
    AlreadyKnown(String),
}

/// State of a turn.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnStatus {
    /// The state itself.
    pub state: TurnState,
    /// The asks for which it waits.
    #[serde(default)]
    pub asks: Vec<DaemonAsk>,
    /// How it ended.
    pub outcome: Option<TurnOutcome>,
    /// The agent's reason for the end, or the daemon's.
    pub reason: Option<String>,
    /// Message for a person, if it failed or was lost.
    pub message: Option<String>,
    /// The id of the session's last event.
    pub last_event: u64,
}

/// States of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnState {
    /// The daemon does not know it.
    NotSeen,
    /// It runs, or waits for the previous turn.
    Running,
    /// It waits for a person.
    Waiting,
    /// It ended: by itself, or cancelled.
    Done,
    /// It failed.
    Failed,
    /// It was cut when the daemon or its sandbox was stopped.
    Lost,
}

/// The file changes of a turn that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TurnChanges {
    /// False if they are unknown: the turn was cut, still runs, or was too long ago, or there was too much to compare.
    pub known: bool,
    /// The changes, sorted by path.
    pub files: Vec<FileChange>,
}

/// The change of one file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FileChange {
    /// Path in the repository, or in the session's directory if that is in none.
    pub file: String,
    /// Kind of change.
    pub status: FileStatus,
    /// Number of added lines.
    pub additions: u64,
    /// Number of deleted lines.
    pub deletions: u64,
    /// Patch in git's format; empty if there is no text to compare, or too much of it.
    pub patch: String,
}

/// Kinds of file change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileStatus {
    /// Added.
    Added,
    /// Deleted.
    Deleted,
    /// Modified.
    Modified,
}

/// An open ask of a turn.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DaemonAsk {
    /// The agent requests a permission.
    Permission(PermissionRequest),
    /// The agent asks questions.
    Question(QuestionRequest),
}

/// The answer to a permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PermissionAnswer {
    /// Allow this time.
    Once,
    /// Allow this and similar requests from now on.
    Always,
    /// Refuse.
    Reject,
}

/// A page of a session's events.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventsPage {
    /// The events, in order.
    pub events: Vec<UniversalEvent>,
    /// Whether more are available at once.
    pub has_more: bool,
}
