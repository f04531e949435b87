//! Slack: requests that come in, the JSON of what is posted, and in `client` the calls. All but `client` is pure.
//!
//! Promised: nothing of a body is read before its signature holds; every signed request gets an answer within the
//! protocol; one message leads to one turn, whichever of its two events comes first and however often; no text of a
//! model or a person can ping anybody. Types are tolerant: a field of another kind than expected counts as absent.
//! Absent: modals (the inputs that are needed stand in messages and on the Home), replies
//! without a mention outside of direct messages (they need the session's record, which ingress does not read).

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
mod people;
pub(crate) mod render;
mod sandboxes;
mod suggest;
#[cfg(test)]
mod tests;
mod types;
mod verify;
mod who;
mod words;

pub use actions::{ASK_ACTION, FIELD_ACTION, SEND, STOP_ACTION};
pub(crate) use client::off;
pub use client::{Identity, Installed, Slack, SlackError, deliver, signature};
pub use commands::commands;
pub use endpoint::{App, BAD_SIGNATURE, message_id, message_ts};
pub use events::events;
pub use help::{CONFIG_HELP, help};
pub use interactivity::interactivity;
pub(crate) use render::split;
pub(crate) use suggest::suggested;
pub use verify::{Unverified, looks_signed, verify};
