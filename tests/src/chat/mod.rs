//! Both chat platforms, as a person and as a reader of the documented APIs see them.

mod discord;
mod side;
mod slack;
pub mod slack_view;
mod thread;
pub mod view;

pub use discord::Discord;
pub use slack::Slack;
pub use thread::{Button, ChatFile, ChatMessage, Platform, Thread};
