//! Where people talk: the trait [`Chat`], and one folder per platform with its types, endpoints, rendering and client.

mod chat;
mod chats;
mod commands;
pub mod discord;
mod endpoints;
mod inbound;
pub mod press;
mod pull_request;
mod pull_review;
mod review;
pub mod slack;

pub use bobbin_http::HttpAnswer;
pub use chat::{Chat, ChatSettings, FileSource, Home, Member, OverviewScope, Say};
pub use chats::Chats;
pub use endpoints::{BAD_SIGNATURE, EndpointSettings, Endpoints, RawRequest, Verifier};
pub use inbound::{Direct, Entered, Inbound, KnownValues, Lookup, Repeat, SuggestionKind};

#[cfg(test)]
mod recorded;
#[cfg(test)]
mod shown_tests;
