//! The ready file: one JSON object with every address and key, written where `--ready-file` says when everything is up; and
//! what of it stands in the state folder, without the keys.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::keys;

/// Addresses, keys and ids for whoever drives the stack from outside.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Ready {
    /// Name of the stack.
    pub stack: String,
    /// The chat page.
    pub console: String,
    /// Base of the ingress paths.
    pub ingress: String,
    /// The embedded AWS.
    pub aws_endpoint: String,
    /// Names the key that signs calls of it.
    pub aws_access_key_id: String,
    /// That key.
    pub aws_secret_access_key: String,
    /// What the chat page and the test calls of every local service answer to.
    pub control_key: String,
    /// The address or name by which containers reach this machine, if the stack was started for them.
    pub container_host: Option<String>,
    /// The provider's control API.
    pub daytona_api: String,
    /// Its key.
    pub daytona_api_key: String,
    /// Base of the Discord-compatible API.
    pub discord_api: String,
    /// Base of the Slack-compatible API.
    pub slack_api: String,
    /// The model's OpenAI-compatible base.
    pub model_api: String,
    /// Verifies interactions.
    pub discord_public_key: String,
    /// Signs interactions (seed, hex).
    pub discord_private_key: String,
    /// Signs Slack requests.
    pub slack_signing_secret: String,
    /// Slack bot token.
    pub slack_bot_token: String,
    /// Discord bot token.
    pub discord_bot_token: String,
    /// Discord application id.
    pub discord_application_id: String,
    /// A guild that the policy admits.
    pub discord_guild_id: String,
    /// A channel of it.
    pub discord_channel_id: String,
    /// A person there.
    pub discord_user_id: String,
    /// A team that the policy admits.
    pub slack_team_id: String,
    /// A channel of it.
    pub slack_channel_id: String,
    /// A person there.
    pub slack_user_id: String,
    /// The bot's user id.
    pub slack_bot_user_id: String,
    /// Table of sessions.
    pub table: String,
    /// Queue of messages.
    pub messages_queue_url: String,
    /// Queue of control words.
    pub control_queue_url: String,
    /// Name to process id.
    pub pids: BTreeMap<String, u32>,
}

/// Where the stack is and what can be named there, without a key: what the command lines look for in the state folder.
#[derive(Debug, Serialize)]
pub struct Whereabouts<'a> {
    stack: &'a str,
    console: &'a str,
    ingress: &'a str,
    aws_endpoint: &'a str,
    container_host: Option<&'a str>,
    discord_application_id: &'a str,
    discord_guild_id: &'a str,
    discord_channel_id: &'a str,
    discord_user_id: &'a str,
    slack_team_id: &'a str,
    slack_channel_id: &'a str,
    slack_user_id: &'a str,
    slack_bot_user_id: &'a str,
}

impl Ready {
    /// What of it may lie in the state folder.
    #[must_use]
    pub fn whereabouts(&self) -> Whereabouts<'_> {
        Whereabouts {
            stack: &self.stack,
            console: &self.console,
            ingress: &self.ingress,
            aws_endpoint: &self.aws_endpoint,
            container_host: self.container_host.as_deref(),
            discord_application_id: &self.discord_application_id,
            discord_guild_id: &self.discord_guild_id,
            discord_channel_id: &self.discord_channel_id,
            discord_user_id: &self.discord_user_id,
            slack_team_id: &self.slack_team_id,
            slack_channel_id: &self.slack_channel_id,
            slack_user_id: &self.slack_user_id,
            slack_bot_user_id: &self.slack_bot_user_id,
        }
    }
}

/// Writes such a file at once, so that a reader never sees half of it; only its owner can read it.
///
/// # Errors
/// A sentence that names the file.
pub fn write(what: &impl Serialize, file: &Path) -> Result<(), String> {
    let text = serde_json::to_string_pretty(what).map_err(|e| e.to_string())?;
    let half = file.with_extension("part");
    keys::private(&half, &text)
        .and_then(|()| fs::rename(&half, file))
        .map_err(|e| format!("{} cannot be written: {e}", file.display()))
}
