//! OpenCode's HTTP API (v1, pinned to 1.18.33) and pure folds over it.
//!
//! [`Sse`] turns bytes into events, [`Run`] folds events and snapshots of one prompt's run into what a card shows,
//! and [`conclude`] says from the message list how the run stands: the list, not the events, is the truth.
//! Deliberately absent: the experimental v2 API, whose messages are another store.

pub mod answer;
pub mod asks;
mod cancel;
mod client;
pub mod event;
mod launch;
pub mod models;
pub mod offer;
pub mod request;
pub mod run;
mod seam;
pub mod sse;
pub mod steps;
mod submit;
pub mod types;
mod watch;

#[cfg(test)]
mod tests;

pub use answer::{Verdict, conclude, in_order, is_whole, people_reason, turn_of};
pub use client::{ANSWER_BYTES_MAX, Events, NotAccepted, OpenCode, OpenCodeError, PromptText};
pub use event::Event;
pub use run::{Heard, Run, Snapshot};
pub use seam::OpenCodeRuntime;
pub use sse::Sse;

/// The version of OpenCode that everything here was measured on.
pub const VERSION: &str = "1.18.33";

/// The port of its server inside a sandbox.
pub const PORT: u16 = 4096;
