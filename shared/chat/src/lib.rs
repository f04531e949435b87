//! Where people talk: the trait [`Chat`], and one folder per platform with its types, endpoints, rendering and client.

mod chat;
mod chats;
mod commands;
pub mod discord;
mod inbound;
pub mod press;
pub mod slack;

pub use bobbin_http::HttpAnswer;
pub use chat::{Chat, ChatSettings, Home, Member, Say};
pub use chats::Chats;
pub use inbound::{Direct, Entered, Inbound, KnownValues, Lookup, Sought};

#[cfg(test)]
mod recorded;
#[cfg(test)]
mod shown_tests;
