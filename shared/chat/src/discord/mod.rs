//! Discord: incoming HTTP requests, outgoing JSON, and the calls in `client`. All but `client` is pure.
//!
//! Promised: a request is verified before it is parsed; every interaction is checked against the policy, clicks and
//! forms included; no body rendered here exceeds a bound of Discord or lets a model mention anybody. Deliberately
//! absent: the gateway, direct messages and user installs.

mod answer;
mod app;
pub mod bounds;
mod client;
mod commands;
mod completion;
mod components;
mod configure;
mod content;
mod custom_id;
mod editing;
mod flags;
mod form;
mod inbound;
mod interaction;
mod quoting;
pub(crate) mod render;
mod verify;

#[cfg(test)]
use bobbin_rules::discord as check;

pub use app::App;
pub use bounds::CHUNK_UNITS;
pub use client::{
    Application, Discord, DiscordError, ORIGINAL_WAIT_MS_MAX, RATE_WAIT_MS_MAX, TestChannel,
    application,
};
pub(crate) use client::{files, off};
pub use commands::{Difference, commands, guild_commands};
pub(crate) use completion::completed;
pub(crate) use inbound::DiscordEndpoints;
pub use inbound::interactions;
pub(crate) use render::split;
pub use verify::{BadKey, verify, verifying_key};
