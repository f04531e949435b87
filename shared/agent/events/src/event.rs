//! An event, and what it may be about.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ask::{PermissionRequest, QuestionRequest};
use crate::message::{UniversalMessage, UniversalMessageParsed};

/// Something that an agent said or that happened to it. Names as in sandbox-agent's session API at 79bb441; `seq`, `turn`
/// and `raw` are ours beyond it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UniversalEvent {
    /// Its place in the session's log, counted from 1: what an `offset` names.
    pub id: u64,
    /// Its number among the session's events, counted from 1. No two share it, also where one line of the agent's becomes
    /// several; the first of these has `raw`.
    pub seq: u64,
    /// When it was taken in: RFC 3339, UTC.
    pub timestamp: String,
    /// The session, by the id that its client chose.
    pub session_id: String,
    /// Name of the agent.
    pub agent: String,
    /// The session by the agent's own id; of a subagent where the agent gives it one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_session_id: Option<String>,
    /// The turn that it belongs to, by the id that the client chose; none between turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// What it is about.
    pub data: UniversalEventData,
    /// What the agent said, whole: with the first event of an input, unless `data` has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Value>,
}

/// What an event is about. The first five and [`Unknown`](Self::Unknown) are of 79bb441. The others are ours: they carry
/// `raw` beside their own field, so that to a client of 79bb441 they are events that it does not know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum UniversalEventData {
    /// A message, or a part of one, as it is now or grown by so much.
    Message {
        /// Whose it is, and what is in it.
        message: UniversalMessage,
    },
    /// A session began or was taken up again.
    Started {
        /// With what.
        started: Started,
    },
    /// Something failed; by itself not the end of the turn.
    Error {
        /// What, and how.
        error: CrashInfo,
    },
    /// The agent asks questions, and waits.
    QuestionAsked {
        /// Which.
        question_asked: QuestionRequest,
    },
    /// The agent asks to be allowed something, and waits.
    PermissionAsked {
        /// What.
        permission_asked: PermissionRequest,
    },
    /// The agent has ended a turn.
    TurnEnded {
        /// How.
        turn_ended: TurnEnded,
        /// What the agent said.
        raw: Value,
    },
    /// An ask is no longer open.
    AskClosed {
        /// Which.
        ask_closed: AskClosed,
        /// What the agent said.
        raw: Value,
    },
    /// What the session is doing.
    Status {
        /// That.
        status: Status,
        /// What the agent said.
        raw: Value,
    },
    /// Tokens and money.
    Usage {
        /// How much.
        usage: Usage,
        /// What the agent said.
        raw: Value,
    },
    /// What the agent means to do.
    Plan {
        /// All of it, as it is now.
        plan: Plan,
        /// What the agent said.
        raw: Value,
    },
    /// Anything that this language has no word for.
    Unknown {
        /// What the agent said.
        raw: Value,
    },
}

/// The beginning of a session.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Started {
    /// For a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What the agent tells about itself: model, directory, tools and the like, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

/// A failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrashInfo {
    /// In the words of whoever failed.
    pub message: String,
    /// The agent's name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// What else the agent tells. It may hold what must not be shown: an agent's own error output, say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnEnded {
    /// How it ended.
    pub outcome: Outcome,
    /// The agent's own word for it: `end_turn`, `interrupted`, `refusal` and the like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What failed, for a person; none unless it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Of this turn, where the agent tells it with the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The agent had nothing more to do.
    Done,
    /// It was told to stop, or what it needed was refused.
    Cancelled,
    /// The model, the agent or its process failed, or a limit was reached.
    Failed,
    /// Nobody knows: the agent's process went away meanwhile.
    Lost,
}

/// An ask that is no longer open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskClosed {
    /// Its id: that of [`PermissionRequest`] or [`QuestionRequest`].
    pub id: String,
    /// The agent's word for the answer that it took, where it tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
}

/// What a session is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// In one word.
    pub state: State,
    /// Why, where the agent tells: what the model's provider said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When a model that failed is asked again, where the agent tells: Unix milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_ms: Option<u64>,
    /// The attempt number, from 1, where the agent counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u64>,
}

/// What a session is doing, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nothing.
    Idle,
    /// Working.
    Busy,
    /// Waiting for an answer to an ask.
    Waiting,
    /// The model failed and is asked again.
    Retrying,
    /// The agent cannot go on.
    Failed,
}

/// Tokens and money. Absent is unknown, not zero.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Of what.
    pub scope: UsageScope,
    /// Tokens that the model read, those from its provider's cache not counted in where the agent tells them apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens that it wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Tokens that it thought, where they are counted apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// Tokens read from its provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Tokens written to its provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// All tokens, where the agent says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// US dollars, as the agent reckons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// What a [`Usage`] is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UsageScope {
    /// Of one message of the agent's, by its id; the last one told for it counts.
    Message(String),
    /// Of the turn; the last one told counts.
    Turn,
    /// Of the session since its beginning; the last one told counts.
    Session,
    /// What stands in the model's context at present: nothing to be added up.
    Context,
}

/// What the agent means to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// In order.
    pub items: Vec<PlanItem>,
}

/// One thing that the agent means to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanItem {
    /// In its words.
    pub text: String,
    /// How far it is.
    pub state: PlanState,
}

/// How far a thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanState {
    /// Not begun.
    Pending,
    /// Under way.
    InProgress,
    /// Done.
    Completed,
    /// Given up.
    Cancelled,
}

impl Usage {
    /// Nothing known yet.
    #[must_use]
    pub const fn of(scope: UsageScope) -> Self {
        Self {
            scope,
            input_tokens: None,
            output_tokens: None,
            reasoning_tokens: None,
            cache_read_tokens: None,
            cache_write_tokens: None,
            total_tokens: None,
            cost_usd: None,
        }
    }
}

impl Status {
    /// A state without a reason.
    #[must_use]
    pub const fn of(state: State) -> Self {
        Self { state, message: None, next_ms: None, attempt: None }
    }
}

impl UniversalEventData {
    /// What the agent said, where `data` itself has it.
    #[must_use]
    pub const fn raw(&self) -> Option<&Value> {
        match self {
            Self::TurnEnded { raw, .. }
            | Self::AskClosed { raw, .. }
            | Self::Status { raw, .. }
            | Self::Usage { raw, .. }
            | Self::Plan { raw, .. }
            | Self::Unknown { raw }
            | Self::Message { message: UniversalMessage::Unparsed { raw, .. } } => Some(raw),
            Self::Message { .. }
            | Self::Started { .. }
            | Self::Error { .. }
            | Self::QuestionAsked { .. }
            | Self::PermissionAsked { .. } => None,
        }
    }

    /// The id of the ask that it puts, if it is one.
    #[must_use]
    pub fn asked(&self) -> Option<&str> {
        match self {
            Self::PermissionAsked { permission_asked } => Some(&permission_asked.id),
            Self::QuestionAsked { question_asked } => Some(&question_asked.id),
            _ => None,
        }
    }

    pub(crate) const fn raw_mut(&mut self) -> Option<&mut Value> {
        match self {
            Self::TurnEnded { raw, .. }
            | Self::AskClosed { raw, .. }
            | Self::Status { raw, .. }
            | Self::Usage { raw, .. }
            | Self::Plan { raw, .. }
            | Self::Unknown { raw }
            | Self::Message { message: UniversalMessage::Unparsed { raw, .. } } => Some(raw),
            Self::Message { .. }
            | Self::Started { .. }
            | Self::Error { .. }
            | Self::QuestionAsked { .. }
            | Self::PermissionAsked { .. } => None,
        }
    }
}

// Their raw value is put in by the converter that makes them; an event of ours alone has none.
impl From<TurnEnded> for UniversalEventData {
    fn from(turn_ended: TurnEnded) -> Self {
        let raw = Value::Null;
        Self::TurnEnded { turn_ended, raw }
    }
}

impl From<AskClosed> for UniversalEventData {
    fn from(ask_closed: AskClosed) -> Self {
        let raw = Value::Null;
        Self::AskClosed { ask_closed, raw }
    }
}

impl From<Status> for UniversalEventData {
    fn from(status: Status) -> Self {
        let raw = Value::Null;
        Self::Status { status, raw }
    }
}

impl From<Usage> for UniversalEventData {
    fn from(usage: Usage) -> Self {
        let raw = Value::Null;
        Self::Usage { usage, raw }
    }
}

impl From<Plan> for UniversalEventData {
    fn from(plan: Plan) -> Self {
        let raw = Value::Null;
        Self::Plan { plan, raw }
    }
}

impl From<Started> for UniversalEventData {
    fn from(started: Started) -> Self {
        Self::Started { started }
    }
}

impl From<CrashInfo> for UniversalEventData {
    fn from(error: CrashInfo) -> Self {
        Self::Error { error }
    }
}

impl From<PermissionRequest> for UniversalEventData {
    fn from(permission_asked: PermissionRequest) -> Self {
        Self::PermissionAsked { permission_asked }
    }
}

impl From<QuestionRequest> for UniversalEventData {
    fn from(question_asked: QuestionRequest) -> Self {
        Self::QuestionAsked { question_asked }
    }
}

impl From<UniversalMessageParsed> for UniversalEventData {
    fn from(message: UniversalMessageParsed) -> Self {
        let message = UniversalMessage::Parsed(message);
        Self::Message { message }
    }
}
