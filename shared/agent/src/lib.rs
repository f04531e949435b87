//! What runs an agent in a sandbox: the trait [`Runtime`], and a folder a runtime with its types, pure folds over them, its
//! client and its part of the trait.

mod bare;
pub mod opencode;
mod retrying;
mod runtime;

pub use bare::Bare;
pub use retrying::Retrying;
pub use runtime::{
    Agent, AgentError, AgentErrorKind, AgentResult, Conversation, InlineImage, Launch,
    LaunchInputs, Missed, ModelKey, Refresh, Reported, RunState, RunWatch, Runtime, Submission,
};
