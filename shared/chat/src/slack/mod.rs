//! Slack: incoming requests, the JSON of posts, and the calls in `client`. All but `client` is pure.
//!
//! Promised: nothing in a body is read before its signature is verified; every signed request gets an answer within the
//! protocol; one message leads to one turn, whichever of its two events comes first and however often; no text from a
//! model or a person can ping anybody. Types are tolerant: a field of an unexpected type counts as absent. Absent:
//! modals (the inputs are in messages and on the Home), replies without a mention outside direct messages (they need
//! the session's record, which ingress does not read).

mod actions;
mod blocks;
mod client;
mod commands;
mod direct;
mod endpoint;
mod escape;
mod events;
mod help;
mod home;
mod interactivity;
mod limits;
pub mod manifest;
mod paths;
mod people;
pub(crate) mod render;
mod sandboxes;
mod scope;
mod suggest;
#[cfg(test)]
mod tests;
mod types;
mod verify;
mod who;
mod words;

pub use actions::{ASK_ACTION, FIELD_ACTION, SEND, STOP_ACTION};
pub use client::{AppInstallation, Identity, Slack, SlackError, deliver, signature};
pub(crate) use client::{files, off};
pub use commands::commands;
pub(crate) use direct::{begun_by, is_direct_thread};
pub use endpoint::{App, message_id, message_ts};
pub use events::events;
pub use help::{CONFIG_HELP, help};
pub use interactivity::interactivity;
pub(crate) use paths::SlackEndpoints;
pub(crate) use render::split;
pub(crate) use scope::scope;
pub(crate) use suggest::suggested;
pub use verify::{Unverified, verify};
