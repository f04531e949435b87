//! One language for what coding agents say: [`UniversalEvent`], [`UniversalMessage`] and [`UniversalMessagePart`], named as
//! the session API of sandbox-agent (commit 79bb441) names them, and a converter an agent.
//!
//! Promised: a converter is total. Each raw value becomes one event or more, the first of which has it whole; what nobody
//! knows or what does not decode is an event of its own, never an error. A converter's memory is bounded and can be stored.
//! Deliberately absent: clocks, numbers of events, asking an agent anything. Those are whoever's who runs it.

pub mod acp;
pub mod amp;
mod ask;
pub mod claude;
pub mod codex;
mod convert;
mod converter;
mod event;
mod form;
mod generated;
mod message;
pub mod opencode;
mod recent;
mod rpc;
mod stream_json;

pub use ask::{PermissionRequest, QuestionInfo, QuestionOption, QuestionRequest, ToolRef};
pub use convert::{Converted, Envelope};
pub use converter::Converter;
pub use event::{
    AskClosed, CrashInfo, Outcome, Plan, PlanItem, PlanState, Started, State, Status, TurnEnded,
    UniversalEvent, UniversalEventData, Usage, UsageScope,
};
pub use message::{
    AttachmentSource, UniversalMessage, UniversalMessageParsed, UniversalMessagePart,
};
pub use rpc::error_said;
