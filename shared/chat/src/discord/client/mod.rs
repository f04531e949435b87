//! Discord's HTTP API as Bobbin uses it: posts that are never made twice, threads, answers by token, commands.
//!
//! Promised: a repeat of [`Discord::post`] with the same thread, turn and kind finds the first one; short rate limits
//! are waited for, long ones told; after a 401 the bot token is left alone for a while, a dead interaction
//! token for good. Deliberately absent: the gateway, and any decision about a session.

mod answers;
mod call;
mod error;
mod messages;
mod opening;
mod pace;
mod registration;
mod setting_up;
mod transport;

#[cfg(test)]
use std::time::Duration;

use bobbin_http::Http;

pub use self::answers::ORIGINAL_WAIT_MS_MAX;
pub use self::error::DiscordError;
pub use self::registration::{Application, application};
pub use self::setting_up::Channel;
use self::transport::Client;
pub use self::transport::RATE_WAIT_MS_MAX;

/// Discord's HTTP API, for one application.
#[derive(Debug, Clone)]
pub struct Discord {
    client: Client,
    application: String,
}

impl Discord {
    /// `base` ends in the version (`https://discord.com/api/v10`); `http` must allow its host.
    #[must_use]
    pub fn new(http: Http, base: &str, application: &str, bot_token: &str) -> Self {
        Self {
            client: Client::new(http, base, application, bot_token),
            application: application.to_owned(),
        }
    }

    /// Tries a bot token that was refused again after so long.
    #[cfg(test)]
    fn leaving_a_refused_token_for(mut self, refused_for: Duration) -> Self {
        self.client.refused_for = refused_for;
        self
    }
}

#[cfg(test)]
mod tests;
