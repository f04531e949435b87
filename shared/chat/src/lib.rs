//! Where people talk: the trait [`Chat`], and a folder a platform with its types, intake, rendering and client.

mod chat;
mod chats;
pub mod discord;
mod intake;
pub mod press;
pub mod slack;

pub use bobbin_http::HttpAnswer;
pub use chat::{Chat, Home, Member, Settings};
pub use chats::Chats;
pub use intake::{Intake, Lookup};
