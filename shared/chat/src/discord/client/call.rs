//! One call of Discord's API.

use bobbin_core::base::ids::digest;
use reqwest::Method;

/// One request of the API, which may be sent several times.
#[derive(Debug, Clone)]
pub(super) struct Call {
    /// For errors and logs: the route without ids or tokens.
    pub(super) name: &'static str,
    pub(super) method: Method,
    /// Path after the base URL, with ids.
    pub(super) path: String,
    /// The resource of its rate limit, besides the route: the channel, the guild or the token.
    pub(super) major: String,
    /// An interaction's token is in the path; otherwise the bot's token goes into the header.
    pub(super) by_token: bool,
}

/// A call on a channel, by the bot.
pub(super) fn in_channel(name: &'static str, method: Method, channel: &str, rest: &str) -> Call {
    Call {
        name,
        method,
        path: format!("/channels/{channel}{rest}"),
        major: channel.to_owned(),
        by_token: false,
    }
}

/// A call on an answer to an interaction, by the interaction's token.
pub(super) fn by_token(
    name: &'static str,
    method: Method,
    application: &str,
    token: &str,
    rest: &str,
) -> Call {
    Call {
        name,
        method,
        path: format!("/webhooks/{application}/{token}{rest}"),
        major: digest(&[token]),
        by_token: true,
    }
}
