//! Where people talk: [`Chat`], and a folder a platform with its types, intake, rendering and client.

mod chat;
pub mod discord;
mod intake;
pub mod press;
pub mod slack;

pub use bobbin_http::HttpAnswer;
pub use chat::{Chat, Settings};
pub use intake::{Intake, Lookup};
