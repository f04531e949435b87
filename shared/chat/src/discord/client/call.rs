//! One call of Discord's API.

use reqwest::Method;

/// One request of the API, which may be sent several times.
#[derive(Debug, Clone)]
pub(super) struct Call {
    /// For errors and logs: the route without ids or tokens.
    pub(super) name: &'static str,
    pub(super) method: Method,
    /// Behind the base, with ids.
    pub(super) path: String,
    /// What its rate limit hangs on beside the route: the channel, the guild or the token.
    pub(super) major: String,
    /// An interaction's token is in the path; otherwise the bot's goes into the header.
    pub(super) by_token: bool,
}
