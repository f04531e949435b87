//! Events and their data.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ask::{PermissionRequest, QuestionRequest};
use crate::message::{UniversalMessage, UniversalMessageParsed};

/// One event of an agent. Names as in sandbox-agent's session API at 79bb441; `seq`, `turn` and `raw` are our
/// extensions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UniversalEvent {
    /// Its position in the session's log, from 1: the value of an `offset`.
    pub id: u64,
    /// Its number among the session's events, from 1. It is unique even if one line of the agent becomes several
    /// events; the first of these has `raw`.
    pub seq: u64,
    /// Time of receipt: RFC 3339, UTC.
    pub timestamp: String,
    /// The client's id of the session.
    pub session_id: String,
    /// Name of the agent.
    pub agent: String,
    /// The agent's own id of the session; a subagent's if it has a separate one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_session_id: Option<String>,
    /// The client's id of its turn; `None` between turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// Its data.
    pub data: UniversalEventData,
    /// The agent's whole raw output, in the first event of an input only, unless `data` has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Value>,
}

/// Data of an event. The first five and [`Unknown`](Self::Unknown) are of 79bb441. The others are ours: they carry
/// `raw` beside their own field, so that to a client of 79bb441 they are unknown events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum UniversalEventData {
    /// A message, or a part of one: its present state or an addition.
    Message {
        /// The message.
        message: UniversalMessage,
    },
    /// A session began or was continued.
    Started {
        /// Details.
        started: Started,
    },
    /// An error; not by itself the end of the turn.
    Error {
        /// The error.
        error: CrashInfo,
    },
    /// The agent asks questions, and waits.
    QuestionAsked {
        /// The questions.
        question_asked: QuestionRequest,
    },
    /// The agent requests a permission, and waits.
    PermissionAsked {
        /// The permission.
        permission_asked: PermissionRequest,
    },
    /// The agent has ended a turn.
    TurnEnded {
        /// How it ended.
        turn_ended: TurnEnded,
        /// The agent's raw output.
        raw: Value,
    },
    /// An ask is no longer open.
    AskClosed {
        /// The closed ask.
        ask_closed: AskClosed,
        /// The agent's raw output.
        raw: Value,
    },
    /// Status of the session.
    Status {
        /// The status.
        status: Status,
        /// The agent's raw output.
        raw: Value,
    },
    /// Tokens and cost.
    Usage {
        /// The usage.
        usage: TokenUsage,
        /// The agent's raw output.
        raw: Value,
    },
    /// The agent's plan.
    Plan {
        /// The whole plan, in its present state.
        plan: Plan,
        /// The agent's raw output.
        raw: Value,
    },
    /// Any output that this language has no word for.
    Unknown {
        /// The agent's raw output.
        raw: Value,
    },
}

/// The beginning of a session.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Started {
    /// Message for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The agent's description of itself: model, directory, tools and the like, in its own format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

/// An error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrashInfo {
    /// Message of the failed component.
    pub message: String,
    /// The agent's name for the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Further details. They may contain private data, such as an agent's own error output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnEnded {
    /// How it ended.
    pub outcome: TurnOutcome,
    /// The agent's own reason: `end_turn`, `interrupted`, `refusal` and the like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Error message for a person; `None` unless it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Usage of this turn, if the agent reports it at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnOutcome {
    /// The agent had nothing more to do.
    Done,
    /// It was told to stop, or a permission that it needed was refused.
    Cancelled,
    /// The model, the agent or its process failed, or a limit was reached.
    Failed,
    /// Unknown: the agent's process went away meanwhile.
    Lost,
}

/// An ask that is no longer open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskClosed {
    /// Id of its [`PermissionRequest`] or [`QuestionRequest`].
    pub id: String,
    /// The agent's name for the answer that it received, if reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<String>,
}

/// Status of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The state itself.
    pub state: StatusState,
    /// The vendor's message, if the agent reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Time of the next attempt after a model failure, if the agent reports it: Unix milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_ms: Option<u64>,
    /// The attempt number, from 1, if the agent counts attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u64>,
}

/// States of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatusState {
    /// Idle.
    Idle,
    /// Working.
    Busy,
    /// Waiting for an answer to an ask.
    Waiting,
    /// The model failed and will be asked again.
    Retrying,
    /// The agent cannot continue.
    Failed,
}

/// Tokens and cost. Absent means unknown, not zero.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenUsage {
    /// Scope of the numbers.
    pub scope: UsageScope,
    /// Input tokens, without those from the vendor's cache if the agent separates them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Reasoning tokens, if counted separately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// Tokens read from the vendor's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Tokens written to the vendor's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// All tokens, if the agent reports a total.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// Cost in US dollars, as the agent calculates it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The model, as vendor/model, if the agent names it beside the tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// Scope of a [`TokenUsage`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UsageScope {
    /// One message of the agent, by its id; the last report for it counts.
    Message(String),
    /// The turn; the last report counts.
    Turn,
    /// The session since its beginning; the last report counts.
    Session,
    /// The present content of the model's context: not to be added up.
    Context,
}

/// The agent's plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The items, in order.
    pub items: Vec<PlanItem>,
}

/// One item of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanItem {
    /// Its text, as the agent wrote it.
    pub text: String,
    /// Its progress.
    pub state: PlanState,
}

/// Progress of a plan item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanState {
    /// Not begun.
    Pending,
    /// In progress.
    InProgress,
    /// Done.
    Completed,
    /// Abandoned.
    Cancelled,
}

impl TokenUsage {
    /// Empty usage of this scope.
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
            model: None,
        }
    }
}

impl Status {
    /// A state without a reason.
    #[must_use]
    pub const fn of(state: StatusState) -> Self {
        Self { state, message: None, next_ms: None, attempt: None }
    }
}

impl UniversalEventData {
    /// The agent's raw output, if `data` itself has it.
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

    /// The id of its ask, if it is one.
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

// The converter that creates them adds their raw value; an event of ours alone has none.
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

impl From<TokenUsage> for UniversalEventData {
    fn from(usage: TokenUsage) -> Self {
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
