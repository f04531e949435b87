//! The Slack-compatible Web API, and people's actions on Slack.

pub mod act;
mod actor;
mod announce;
mod blocks;
mod channels;
mod chat;
mod conversations;
mod deliver;
mod elements;
mod failure;
mod files;
mod home;
mod interactivity;
mod messages;
mod methods;
pub mod people;
mod sessions;
mod stream;
mod typed_message;

pub use announce::announce;
pub use methods::serve;
