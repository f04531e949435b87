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
    /// Name of the stack, which is part of its sandboxes' names.
    pub stack: String,
    /// Where the chat page is, without the key that opens it.
    pub console: String,
    /// Base of the ingress paths.
    pub ingress: String,
    /// Where the tools of sandboxes are served, without a slash at its end; empty where they are not.
    pub tools: String,
    /// Where every API of the embedded AWS answers.
    pub aws_endpoint: String,
    /// Id of the access key that signs calls of the embedded AWS.
    pub aws_access_key_id: String,
    /// Secret of that access key.
    pub aws_secret_access_key: String,
    /// What the chat page and the test calls of every local service answer to.
    pub control_key: String,
    /// The address or name by which containers reach this machine, if the stack was started for them.
    pub container_host: Option<String>,
    /// The provider's control API.
    pub daytona_api: String,
    /// What its clients send as bearer token.
    pub daytona_api_key: String,
    /// The API of the provider that is compatible with Vercel Sandbox.
    pub vercel_api: String,
    /// What its clients send as bearer token.
    pub vercel_token: String,
    /// The team that the token is of.
    pub vercel_team_id: String,
    /// The team's project.
    pub vercel_project_id: String,
    /// Base of the Discord-compatible API.
    pub discord_api: String,
    /// Base of the Slack-compatible API.
    pub slack_api: String,
    /// The model's OpenAI-compatible base.
    pub model_api: String,
    /// The Ed25519 key that interactions are verified with, 64 hex digits.
    pub discord_public_key: String,
    /// The seed of the key that signs interactions, 64 hex digits.
    pub discord_private_key: String,
    /// The secret that requests of Slack are signed with.
    pub slack_signing_secret: String,
    /// What the bot sends to the local Slack as bearer token.
    pub slack_bot_token: String,
    /// What the bot sends to the local Discord as `Bot` token.
    pub discord_bot_token: String,
    /// The application that commands are registered for; its bot has the same id.
    pub discord_application_id: String,
    /// A guild that the policy admits.
    pub discord_guild_id: String,
    /// The channel of that guild in which the first commands are typed.
    pub discord_channel_id: String,
    /// A person of that guild, who is an administrator.
    pub discord_user_id: String,
    /// A team that the policy admits.
    pub slack_team_id: String,
    /// The channel of that team in which the bot is mentioned.
    pub slack_channel_id: String,
    /// A person of that team, who is an administrator.
    pub slack_user_id: String,
    /// The bot's user id.
    pub slack_bot_user_id: String,
    /// Name of the table that holds threads, sandboxes and the ledger.
    pub table: String,
    /// The queue that the worker takes prompts, sweeps and resets from.
    pub messages_queue_url: String,
    /// The queue that stops, decisions and commands travel in, past the runs.
    pub control_queue_url: String,
    /// The process ids of the stack and of its functions, by name.
    pub pids: BTreeMap<String, u32>,
}

/// Where the stack is and what can be named there, without a key: what the command lines look for in the state folder.
#[derive(Debug, Serialize)]
pub struct Whereabouts<'a> {
    stack: &'a str,
    console: &'a str,
    ingress: &'a str,
    tools: &'a str,
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
            tools: &self.tools,
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
