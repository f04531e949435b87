//! What runs an agent in a sandbox: the trait [`Runtime`], what a run has come to by what an agent tells ([`Fold`], over
//! universal events, whichever agent it is), and a folder a runtime with its types, its client and its part of the trait.

pub mod asks;
mod bare;
mod fold;
pub mod opencode;
mod reason;
mod retrying;
mod runtime;
mod steps;

pub use bare::Bare;
pub use fold::Fold;
pub use reason::reason_of;
pub use retrying::Retrying;
pub use runtime::{
    Agent, AgentError, AgentErrorKind, AgentResult, Conversation, InlineImage, Launch,
    LaunchInputs, Missed, ModelKey, Refresh, Reported, RunState, RunWatch, Runtime, Submission,
};
pub use steps::{PLAN_MAX, STEPS_MAX};
