//! What an agent asks of people.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The agent asks to be allowed something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRequest {
    /// Unique in the session, also across starts of the agent's process.
    pub id: String,
    /// In an event the session that its client asked for; before that the agent's own, or its subagent's.
    pub session_id: String,
    /// What for: the tool's name, or the agent's word for the kind of permission.
    pub permission: String,
    /// What exactly: commands, paths or patterns.
    pub patterns: Vec<String>,
    /// What whoever answers the agent needs, in the agent's words (see each converter).
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// What "always" would allow; empty where the agent offers no "always".
    pub always: Vec<String>,
    /// The call that waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolRef>,
}

/// The agent asks questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuestionRequest {
    /// Unique in the session, also across starts of the agent's process.
    pub id: String,
    /// In an event the session that its client asked for; before that the agent's own, or its subagent's.
    pub session_id: String,
    /// The questions, to be answered together.
    pub questions: Vec<QuestionInfo>,
    /// The call that waits for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolRef>,
    /// What whoever answers the agent needs, in the agent's words (see each converter). Ours beyond 79bb441.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// One question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuestionInfo {
    /// In the agent's words.
    pub question: String,
    /// A heading of a word or two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// What may be chosen; none where any words will do.
    pub options: Vec<QuestionOption>,
    /// Whether several may be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multi_select: Option<bool>,
    /// Whether words of one's own will do too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom: Option<bool>,
}

/// What may be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionOption {
    /// What is shown, and what is answered.
    pub label: String,
    /// What it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A tool call, by the agent's ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolRef {
    /// Of the message that it stands in; empty where the agent does not tell.
    pub message_id: String,
    /// Of the call.
    pub call_id: String,
}
