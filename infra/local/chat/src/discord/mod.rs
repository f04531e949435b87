//! The Discord-compatible API, and people's actions on Discord.

pub mod act;
mod announce;
mod application;
mod attachments;
mod callback;
pub mod channel;
pub mod commands;
mod components;
mod compose;
mod delivery;
mod flags;
mod inputs;
mod message;
mod modal;
mod options;
mod outcome;
mod payload;
pub mod permissions;
mod rates;
mod refusal;
mod routes;
mod stored_message;
mod thread;
mod typed_message;
mod users;
mod validation;
mod webhook;

pub use announce::{adopt, announce};
pub use attachments::store_file;
pub use outcome::ANSWERS;
pub use routes::serve;
