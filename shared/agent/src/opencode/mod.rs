//! OpenCode's HTTP API (v1, pinned to 1.18.33) and pure folds over it.
//!
//! [`Sse`] turns bytes into events, [`Run`] folds events and snapshots of one prompt's run into what a card shows,
//! and [`conclude`] says from the message list how the run stands: the list, not the events, is the truth.
//! Deliberately absent: the experimental v2 API, whose messages are another store.

mod answer;
mod asks;
mod cancel;
mod changes;
mod client;
mod event;
mod launch;
pub mod models;
mod options;
mod outside;
mod request;
mod run;
mod seam;
mod sse;
mod steps;
mod submit;
mod types;
mod watch;

#[cfg(test)]
mod tests;

pub use answer::{conclude, reason_of, turn_of};
pub use client::{ANSWER_BYTES_MAX, OpenCode, Via};
pub use event::Event;
pub use outside::{ToolServer, tools_config};
pub use request::{CORRELATION, VERSION, WITHOUT_PROJECT_CONFIG, session_title};
pub use run::{Run, Snapshot};
pub use seam::OpenCodeRuntime;
pub use sse::Sse;
pub use steps::{PLAN_CHARS_MAX, PLAN_MAX, STEPS_MAX, ToolCall, first_line, last_of};
pub use types::{Message, Permission, Question, Role, Status};
