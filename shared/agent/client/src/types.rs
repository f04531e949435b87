//! What is sent and what is answered: the session API of sandbox-agent at 79bb441, and ours beyond it.

use bobbin_agent_events::{Outcome, PermissionRequest, QuestionRequest, UniversalEvent};
use serde::{Deserialize, Serialize};

/// An agent of the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AgentInfo {
    /// Its name.
    pub id: String,
    /// Whether its program is there.
    pub installed: bool,
    /// What it says of its version.
    pub version: Option<String>,
    /// Where its program is.
    pub path: Option<String>,
}

/// A mode in which an agent works.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Mode {
    /// For [`CreateSession::agent_mode`].
    pub id: String,
    /// For a person.
    pub name: String,
    /// For a person.
    pub description: String,
}

/// How a session is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateSession {
    /// The agent's name.
    pub agent: String,
    /// One of its modes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_mode: Option<String>,
    /// `default`, `plan` or `bypass`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// In the agent's own notation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Where it works: an absolute path in the sandbox. Ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// A session of the agent's own that is taken up. Ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_session_id: Option<String>,
    /// Ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the agent is told beside the prompts, where it has a place for that. Ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

/// A session that was made.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Created {
    /// Whether its agent runs or starts.
    pub healthy: bool,
    /// The agent's own id of it, where it has one already.
    pub agent_session_id: Option<String>,
    /// Why it is not healthy.
    pub error: Option<AgentProblem>,
}

/// Why an agent does not run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AgentProblem {
    /// Such as `agent_process_exited`.
    #[serde(rename = "type")]
    pub kind: String,
    /// For a person.
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
    /// Events so far, which is the id of the last.
    pub event_count: u64,
    /// The agent's own id.
    pub agent_session_id: Option<String>,
    /// Its model, where one was asked for.
    pub model: Option<String>,
    /// Where it works. Ours.
    pub directory: Option<String>,
    /// Ids of the asks that wait in it. Ours.
    #[serde(default)]
    pub asks: Vec<String>,
}

/// A message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Message {
    /// The text.
    pub message: String,
    /// The id of its turn: a repeat with it does nothing. Ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// Files in the sandbox that go with it. Ours.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The model of this turn. Ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The mode of this turn; OpenCode alone changes it between turns. Ours.
    #[serde(rename = "agentMode", skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// By what the daemon says that the turn has ended or asks; one that does not know of it says nothing. Ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nudge: Option<Nudge>,
}

/// By what the daemon says that something has happened. `Debug` shows no token.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct Nudge {
    /// Where it posts an empty body; https, or loopback.
    pub url: String,
    /// What it sends as `Authorization: Bearer`.
    pub token: String,
}

impl std::fmt::Debug for Nudge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nudge").field("url", &self.url).finish_non_exhaustive()
    }
}

/// A file that goes with a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attachment {
    /// In the sandbox: absolute, or in the session's directory.
    pub path: String,
    /// Its media type. An image is shown to the model where its agent can do that; other files are named to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// Its name, where the path's is not to be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
}

/// What came of a message: its turn's id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Submitted {
    /// It was taken and runs once.
    Accepted(String),
    /// It had been taken before; nothing was done.
    AlreadyKnown(String),
}

/// How a turn stands.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnStatus {
    /// In a word.
    pub state: TurnState,
    /// What it waits for.
    #[serde(default)]
    pub asks: Vec<Ask>,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// The agent's word for it, or the daemon's.
    pub reason: Option<String>,
    /// For a person, where it failed or was lost.
    pub message: Option<String>,
    /// The id of the session's last event.
    pub last_event: u64,
}

/// How a turn stands, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnState {
    /// The daemon does not know it.
    NotSeen,
    /// It runs, or waits for the turn before it.
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

/// What a turn that has ended changed in the files.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TurnChanges {
    /// False where it was not found out: the turn was cut, runs, or was too long ago, or there was too much to compare.
    pub known: bool,
    /// In the order of their paths.
    pub files: Vec<FileChange>,
}

/// What a turn did to one file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FileChange {
    /// Path in the repository, or in the session's directory where that is in none.
    pub file: String,
    /// How.
    pub status: FileStatus,
    /// Lines that it has and had not before.
    pub additions: u64,
    /// Lines that it had before and has not any more.
    pub deletions: u64,
    /// In git's form; empty where there is no text to compare, or too much of it.
    pub patch: String,
}

/// How a file was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileStatus {
    /// It is new.
    Added,
    /// It is gone.
    Deleted,
    /// It was there before, and is.
    Modified,
}

/// What a turn waits for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ask {
    /// The agent asks to be allowed something.
    Permission(PermissionRequest),
    /// It asks questions.
    Question(QuestionRequest),
}

/// The answer to a permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reply {
    /// This time.
    Once,
    /// And the like from now on.
    Always,
    /// No.
    Reject,
}

/// Some of a session's events.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventsPage {
    /// In order.
    pub events: Vec<UniversalEvent>,
    /// Whether there are more at once.
    pub has_more: bool,
}
