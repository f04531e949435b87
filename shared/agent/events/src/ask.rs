//! An agent's asks.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A request for a permission.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRequest {
    /// Unique in the session, also across restarts of the agent's process.
    pub id: String,
    /// In an event the client's id of the session; before that the agent's own, or its subagent's.
    pub session_id: String,
    /// The tool's name, or the agent's name for the kind of permission.
    pub permission: String,
    /// The requested commands, paths or patterns.
    pub patterns: Vec<String>,
    /// Data needed for the answer, in the agent's format (see each converter).
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// What "always" would allow; empty if the agent offers no "always".
    pub always: Vec<String>,
    /// The call that waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolRef>,
}

/// Questions from the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuestionRequest {
    /// Unique in the session, also across restarts of the agent's process.
    pub id: String,
    /// In an event the client's id of the session; before that the agent's own, or its subagent's.
    pub session_id: String,
    /// The questions, to be answered together.
    pub questions: Vec<QuestionInfo>,
    /// The call that waits for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolRef>,
    /// Data needed for the answer, in the agent's format (see each converter). Our extension of 79bb441.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// One question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuestionInfo {
    /// Its text, as the agent wrote it.
    pub question: String,
    /// A heading of a word or two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// The options; empty if only free text is expected.
    pub options: Vec<QuestionOption>,
    /// Whether several may be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multi_select: Option<bool>,
    /// Whether free text is also accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom: Option<bool>,
}

/// An option of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionOption {
    /// Shown text, which is also the answer.
    pub label: String,
    /// Description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A tool call, by the agent's ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolRef {
    /// Id of its message; empty if the agent does not report it.
    pub message_id: String,
    /// Id of the call.
    pub call_id: String,
}
