//! The events of `GET /event`, read leniently: what is unknown or unreadable is [`Event::Other`], because every loss
//! heals at the next look at the messages.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::types::{Info, MessageError, Part, Permission, Question, Session, Status};

/// What the server tells.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The subscription stands: nothing later is lost.
    Connected,
    /// A sign of life, every ten seconds.
    Heartbeat,
    /// The instance is closing; the stream ends.
    Disposed,
    /// A session was made or changed.
    Session(Session),
    /// What a session is doing.
    Status {
        /// Id of the session, which may be a subagent's.
        session: String,
        /// Idle, busy, or asking the model again.
        status: Status,
    },
    /// A session has nothing to do: go and look.
    Idle {
        /// Id of the session, which may be a subagent's.
        session: String,
    },
    /// Something failed; not by itself the end.
    Error {
        /// Id of the session in which it failed; none where it belongs to no session.
        session: Option<String>,
        /// What failed, as a message's head says it too.
        error: MessageError,
    },
    /// The head of a message.
    Message(Info),
    /// A message is gone.
    MessageRemoved {
        /// Id of the message.
        message: String,
    },
    /// A part as it is now; an update repeats what was there before.
    Part(Part),
    /// More text of a part.
    Delta(Delta),
    /// A part is gone.
    PartRemoved {
        /// Id of the message that it was a part of.
        message: String,
        /// Id of the part.
        part: String,
    },
    /// A permission is asked for.
    PermissionAsked(Permission),
    /// The agent asks questions, and waits for their answer.
    QuestionAsked(Question),
    /// A permission or question is no longer open.
    AskClosed {
        /// Id of the permission or of the questions.
        id: String,
    },
    /// Whatever a run's card and end do not depend on.
    Other,
}

/// More text of a part.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Delta {
    #[serde(rename = "sessionID")]
    pub session_id: String,
    #[serde(rename = "messageID")]
    pub message_id: String,
    #[serde(rename = "partID")]
    pub part_id: String,
    /// Only `text` is known.
    pub field: String,
    /// Text to be appended to that field.
    pub delta: String,
}

#[derive(Deserialize)]
struct Envelope {
    r#type: String,
    #[serde(default)]
    properties: Value,
}

impl Event {
    /// Reads the data of one server-sent event.
    #[must_use]
    pub fn parse(data: &str) -> Self {
        let Ok(Envelope { r#type, properties }) = serde_json::from_str(data) else {
            return Self::Other;
        };
        Self::read(&r#type, properties).unwrap_or(Self::Other)
    }

    fn read(kind: &str, properties: Value) -> Option<Self> {
        let session = || text(&properties, "sessionID");
        Some(match kind {
            "server.connected" => Self::Connected,
            "server.heartbeat" => Self::Heartbeat,
            "server.instance.disposed" => Self::Disposed,
            "session.created" | "session.updated" => Self::Session(field(&properties, "info")?),
            "session.status" => {
                Self::Status { session: session()?, status: field(&properties, "status")? }
            }
            "session.idle" => Self::Idle { session: session()? },
            "session.error" => {
                Self::Error { session: session(), error: field(&properties, "error")? }
            }
            "message.updated" => Self::Message(field(&properties, "info")?),
            "message.removed" => Self::MessageRemoved { message: text(&properties, "messageID")? },
            "message.part.updated" => Self::Part(field(&properties, "part")?),
            "message.part.delta" => Self::Delta(serde_json::from_value(properties).ok()?),
            "message.part.removed" => Self::PartRemoved {
                message: text(&properties, "messageID")?,
                part: text(&properties, "partID")?,
            },
            "permission.asked" => Self::PermissionAsked(serde_json::from_value(properties).ok()?),
            "question.asked" => Self::QuestionAsked(serde_json::from_value(properties).ok()?),
            "permission.replied" | "question.replied" | "question.rejected" => {
                Self::AskClosed { id: text(&properties, "requestID")? }
            }
            _ => Self::Other,
        })
    }
}

fn field<T: DeserializeOwned>(properties: &Value, name: &str) -> Option<T> {
    serde_json::from_value(properties.get(name)?.clone()).ok()
}

fn text(properties: &Value, name: &str) -> Option<String> {
    properties.get(name)?.as_str().map(str::to_owned)
}
