//! Agents of any kind in a sandbox, run by its daemon (`bobbin-agentd`) and observed through universal events.
//!
//! Promised: a prompt has one id in the daemon, which runs it once however often it is sent. Decisions rest on the
//! daemon's record of the turn; its events only make a card livelier. A turn that was cut when the sandbox stopped is
//! sent again as a further attempt at the same prompt, if the caller decides so.
mod asks;
mod attempt;
mod choice;
mod daemon;
mod native;
mod observe;
mod runtime;
pub mod standing;

pub use runtime::NativeRuntime;
