//! One language for the output of coding agents: [`UniversalEvent`], [`UniversalMessage`] and [`UniversalMessagePart`],
//! named as in the session API of sandbox-agent (commit 79bb441), and a converter per agent.
//!
//! Promised: a converter is total. Each raw value becomes one or more events, the first of which has the whole value;
//! unknown or undecodable values become events too, never errors. A converter's memory is bounded and can be stored.
//! Deliberately absent: clocks, event numbers, and calls to an agent; those are the caller's.

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
pub use convert::{Converted, EventEnvelope};
pub use converter::Converter;
pub use event::{
    AskClosed, CrashInfo, Plan, PlanItem, PlanState, Started, Status, StatusState, TokenUsage,
    TurnEnded, TurnOutcome, UniversalEvent, UniversalEventData, UsageScope,
};
pub use message::{
    AttachmentSource, UniversalMessage, UniversalMessageParsed, UniversalMessagePart,
};
pub use rpc::error_said;
