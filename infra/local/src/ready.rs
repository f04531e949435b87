//! The ready file: one JSON object with every address and key, written to the path in `--ready-file` when everything is
//! up; and its part without keys, for the state folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::keys;

/// Addresses, keys and ids for programs that drive the stack from outside.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Ready {
    /// Stack name; part of its sandboxes' names.
    pub stack: String,
    /// Address of the chat page, without the key that opens it.
    pub console: String,
    /// Base of the ingress paths.
    pub ingress: String,
    /// Base of the sandboxes' tools, without a trailing slash; empty if not served.
    pub tools: String,
    /// Endpoint of every API of the embedded AWS.
    pub aws_endpoint: String,
    /// Id of the access key that signs calls to the embedded AWS.
    pub aws_access_key_id: String,
    /// Secret of that access key.
    pub aws_secret_access_key: String,
    /// Key of the chat page and of every local service's test calls.
    pub control_key: String,
    /// Containers' address or name for this machine, if the stack was started for them.
    pub container_host: Option<String>,
    /// The provider's control API.
    pub daytona_api: String,
    /// Bearer token of its clients.
    pub daytona_api_key: String,
    /// API of the Vercel-compatible provider.
    pub vercel_api: String,
    /// Bearer token of its clients.
    pub vercel_token: String,
    /// The token's team.
    pub vercel_team_id: String,
    /// The team's project.
    pub vercel_project_id: String,
    /// Base of the Discord-compatible API.
    pub discord_api: String,
    /// Base of the Slack-compatible API.
    pub slack_api: String,
    /// Base of the forge's GitHub-compatible REST API.
    pub github_api: String,
    /// Base of its clone addresses.
    pub github_git: String,
    /// Id of the app that is installed there.
    pub github_app_id: String,
    /// The app's client id.
    pub github_client_id: String,
    /// The app's client secret.
    pub github_client_secret: String,
    /// The app's private key, PEM.
    pub github_private_key: String,
    /// Signs the forge's webhooks.
    pub github_webhook_secret: String,
    /// An organisation with the app, bound to both tenants.
    pub github_owner: String,
    /// Token of a person who administrates it.
    pub github_user_token: String,
    /// The model's OpenAI-compatible base.
    pub model_api: String,
    /// Ed25519 public key that verifies interactions, 64 hex digits.
    pub discord_public_key: String,
    /// Seed of the key that signs interactions, 64 hex digits.
    pub discord_private_key: String,
    /// Signing secret of Slack's requests.
    pub slack_signing_secret: String,
    /// The bot's bearer token at the local Slack.
    pub slack_bot_token: String,
    /// The bot's `Bot` token at the local Discord.
    pub discord_bot_token: String,
    /// The application with the registered commands; its bot has the same id.
    pub discord_application_id: String,
    /// A guild that the policy admits.
    pub discord_guild_id: String,
    /// Channel of that guild for the first commands.
    pub discord_channel_id: String,
    /// An administrator of that guild.
    pub discord_user_id: String,
    /// A team that the policy admits.
    pub slack_team_id: String,
    /// Channel of that team for mentioning the bot.
    pub slack_channel_id: String,
    /// An administrator of that team.
    pub slack_user_id: String,
    /// The bot's user id.
    pub slack_bot_user_id: String,
    /// Table of threads, sandboxes and the ledger.
    pub table: String,
    /// Queue of prompts, sweeps and resets for the worker.
    pub messages_queue_url: String,
    /// Queue of control messages: stops, decisions and commands.
    pub control_queue_url: String,
    /// Process ids of the stack and its functions, by name.
    pub pids: BTreeMap<String, u32>,
}

/// Addresses and names without keys: the command line looks for this file in the state folder.
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
    /// The part that may be in the state folder.
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

/// Writes such a file atomically; only its owner can read it.
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
