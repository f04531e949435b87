//! Agents in sandboxes: the trait [`Runtime`], the state of a run folded from universal events ([`Fold`], the same for
//! every agent), and a folder per runtime with its types and its client, which is an [`Agent`].

pub mod asks;
mod bare;
mod fold;
pub mod models;
mod observe;
pub mod opencode;
pub mod openrouter;
mod reason;
mod retrying;
mod runtime;
mod sse;
mod steps;

pub use bare::Bare;
pub use fold::Fold;
pub use observe::{Observation, Observe, Pulse, RunCursor, RunRef, RunState};
pub use reason::Reason;
pub use retrying::Retrying;
pub use runtime::{
    ANSWER_BYTES_MAX, Agent, AgentError, AgentErrorKind, AgentResult, ConversationKey, InlineImage,
    LaunchInputs, Missed, ModelKey, Refresh, Reported, RunStop, Runtime, RuntimeFacts,
    ServerLaunch, Submission, ToolServer, server_http,
};
pub use sse::Sse;
pub use steps::{PLAN_MAX, STEPS_MAX};
