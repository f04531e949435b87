//! Agents of any kind in a sandbox, run by its daemon (`bobbin-agentd`) and seen through universal events.
//!
//! Promised: a prompt has one id in the daemon, which runs it once however often it is sent; what decides is the daemon's
//! record of the turn, and what its events tell only makes a card livelier. A turn that was cut when the sandbox stopped is
//! sent again as a further try of the same prompt, by whoever decides that.
mod asks;
mod attempt;
mod choice;
mod daemon;
mod native;
mod observe;
mod runtime;
pub mod standing;

pub use runtime::NativeRuntime;
