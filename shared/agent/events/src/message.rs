//! Messages and what they are made of.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A message, or what should have been one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum UniversalMessage {
    /// It could be read.
    Parsed(UniversalMessageParsed),
    /// It could not.
    Unparsed {
        /// What the agent said.
        raw: Value,
        /// Why it could not be read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
}

/// A message, or a part of one.
///
/// Where `metadata.delta` is true, the text of its only part is to be put behind what was there. Where `metadata.part` names
/// a part (by the agent's id for it), the parts take its place, and none means that it is gone; where it names none, they are
/// the next ones of the message, or none where the event tells the head alone. Where `metadata.removed` is true, the message
/// is gone.
///
/// Of the message as a whole `metadata` may tell: `parent`, `parentToolCall` and `subagentSession` (whose it is), `turn` and
/// `clientId` (the agent's turn, and the client's own id of a prompt), `provider`, `model`, `title`, `kind`, `server`,
/// `phase`, `pending` (a tool call whose arguments are still being written), `finish`, `error` (the agent's name for what it broke off with), `completed`, `exit` (of a command), and of text
/// that is not to be shown as its author's `summary`, `synthetic`, `ignored` and `compactionContinue`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UniversalMessageParsed {
    /// `user`, `assistant` or `system`; anything else is the agent's own word.
    pub role: String,
    /// The agent's id of the message; several events may be about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `delta`, `part`, and what the agent tells of the message as a whole.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// In order.
    pub parts: Vec<UniversalMessagePart>,
}

impl UniversalMessageParsed {
    /// A message of this role, of which nothing is known yet.
    #[must_use]
    pub fn of(role: &str, id: Option<String>) -> Self {
        Self { role: role.to_owned(), id, metadata: Map::new(), parts: Vec::new() }
    }

    /// With a further fact about it; nothing where there is none.
    #[must_use]
    pub fn with<T: Into<Value>>(mut self, name: &str, fact: Option<T>) -> Self {
        if let Some(fact) = fact {
            self.metadata.insert(name.to_owned(), fact.into());
        }
        self
    }

    /// With this as its part of this name.
    #[must_use]
    pub fn with_part(mut self, name: &str, parts: Vec<UniversalMessagePart>) -> Self {
        self.parts = parts;
        self.with("part", Some(name))
    }

    /// With this text behind what its part of this name has.
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
    /// Words.
    Text {
        /// Markdown.
        text: String,
    },
    /// A tool is called.
    ToolCall {
        /// The agent's id of the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The agent's name of the tool.
        name: String,
        /// With what.
        input: Value,
    },
    /// What a tool answered.
    ToolResult {
        /// The call's id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The tool's name, where the agent repeats it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// As the agent has it.
        output: Value,
        /// Whether it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        is_error: Option<bool>,
    },
    /// A function is called, which is what some agents name a tool.
    FunctionCall {
        /// The agent's id of the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// Its name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// With what.
        arguments: Value,
        /// What the agent said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<Value>,
    },
    /// What a function answered.
    FunctionResult {
        /// The call's id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// Its name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// As the agent has it.
        result: Value,
        /// Whether it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        is_error: Option<bool>,
        /// What the agent said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<Value>,
    },
    /// A file.
    File {
        /// Where it is.
        source: AttachmentSource,
        /// Its media type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// Its name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        filename: Option<String>,
        /// What the agent said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<Value>,
    },
    /// An image.
    Image {
        /// Where it is.
        source: AttachmentSource,
        /// Its media type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// In words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        alt: Option<String>,
        /// What the agent said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<Value>,
    },
    /// What failed in the message.
    Error {
        /// In the words of whoever failed.
        message: String,
    },
    /// Anything else: what the model thought, and what nobody knows.
    Unknown {
        /// What the agent said.
        raw: Value,
    },
}

/// Where an attachment is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AttachmentSource {
    /// On the agent's disk.
    Path {
        /// As the agent has it.
        path: String,
    },
    /// At an address.
    Url {
        /// That.
        url: String,
    },
    /// Here.
    Data {
        /// Itself.
        data: String,
        /// `base64`, or none for text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        encoding: Option<String>,
    },
}
