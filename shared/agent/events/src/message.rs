//! Messages and their parts.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A message, parsed or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum UniversalMessage {
    /// It could be read.
    Parsed(UniversalMessageParsed),
    /// It could not.
    Unparsed {
        /// The agent's raw output.
        raw: Value,
        /// Why it could not be parsed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
}

/// A message, or a part of one.
///
/// If `metadata.delta` is true, the text of its only part is appended to the existing text. If `metadata.part` names a
/// part (by the agent's id), the parts replace it, and an empty list removes it; if it names none, they are the next
/// parts of the message, or the list is empty because the event has only the head. If `metadata.removed` is true, the
/// message is removed.
///
/// For the whole message `metadata` may contain: `parent`, `parentToolCall` and `subagentSession` (its origin), `turn`
/// and `clientId` (the agent's turn, and the client's own id of a prompt), `provider`, `model`, `title`, `kind`,
/// `server`, `phase`, `pending` (a tool call whose arguments are still being written), `finish`, `error` (the agent's
/// name for the error that broke it off), `completed`, `exit` (of a command), and for text that is not to be shown as
/// its author's `summary`, `synthetic`, `ignored` and `compactionContinue`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UniversalMessageParsed {
    /// `user`, `assistant` or `system`; anything else is the agent's own name.
    pub role: String,
    /// The agent's id of the message; several events may be about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `delta`, `part`, and the agent's facts about the whole message.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The parts, in order.
    pub parts: Vec<UniversalMessagePart>,
}

impl UniversalMessageParsed {
    /// An empty message of this role.
    #[must_use]
    pub fn of(role: &str, id: Option<String>) -> Self {
        Self { role: role.to_owned(), id, metadata: Map::new(), parts: Vec::new() }
    }

    /// Adds a fact, if there is one.
    #[must_use]
    pub fn with<T: Into<Value>>(mut self, name: &str, fact: Option<T>) -> Self {
        if let Some(fact) = fact {
            self.metadata.insert(name.to_owned(), fact.into());
        }
        self
    }

    /// Sets the part with this name.
    #[must_use]
    pub fn with_part(mut self, name: &str, parts: Vec<UniversalMessagePart>) -> Self {
        self.parts = parts;
        self.with("part", Some(name))
    }

    /// Appends this text to the part with this name.
    #[must_use]
    pub fn with_delta(self, name: &str, text: String) -> Self {
        let text = UniversalMessagePart::Text { text };
        self.with_part(name, vec![text]).with("delta", Some(true))
    }
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum UniversalMessagePart {
    /// Text.
    Text {
        /// Markdown.
        text: String,
    },
    /// A tool call.
    ToolCall {
        /// The agent's id of the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The agent's name for the tool.
        name: String,
        /// The input.
        input: Value,
    },
    /// The result of a tool call.
    ToolResult {
        /// Id of the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// Name of the tool, if the agent repeats it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Output in the agent's format.
        output: Value,
        /// Whether it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        is_error: Option<bool>,
    },
    /// A function call, as some agents name a tool call.
    FunctionCall {
        /// The agent's id of the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// Name of the function.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The arguments.
        arguments: Value,
        /// The agent's raw output.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<Value>,
    },
    /// The result of a function call.
    FunctionResult {
        /// Id of the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// Name of the function.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Result in the agent's format.
        result: Value,
        /// Whether it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        is_error: Option<bool>,
        /// The agent's raw output.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<Value>,
    },
    /// A file.
    File {
        /// Its location or content.
        source: AttachmentSource,
        /// Its media type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// Its name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        filename: Option<String>,
        /// The agent's raw output.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<Value>,
    },
    /// An image.
    Image {
        /// Its location or content.
        source: AttachmentSource,
        /// Its media type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// Alternative text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        alt: Option<String>,
        /// The agent's raw output.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<Value>,
    },
    /// An error in the message.
    Error {
        /// Message of the failed component.
        message: String,
    },
    /// Anything else: the model's reasoning, and unknown parts.
    Unknown {
        /// The agent's raw output.
        raw: Value,
    },
}

/// Location or content of an attachment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AttachmentSource {
    /// On the agent's disk.
    Path {
        /// Path, as the agent gives it.
        path: String,
    },
    /// At an address.
    Url {
        /// The address.
        url: String,
    },
    /// Inline.
    Data {
        /// The content.
        data: String,
        /// `base64`, or `None` for text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        encoding: Option<String>,
    },
}
