//! The message of a stack that is up.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

/// Addresses and keys of a running stack, as it writes them into its `--ready-file`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Ready {
    pub console: String,
    pub ingress: String,
    pub tools: String,
    pub aws_endpoint: String,
    pub aws_access_key_id: String,
    pub aws_secret_access_key: String,
    pub control_key: String,
    pub daytona_api: String,
    pub daytona_api_key: String,
    pub vercel_api: String,
    pub vercel_token: String,
    pub vercel_team_id: String,
    pub vercel_project_id: String,
    pub discord_api: String,
    pub slack_api: String,
    pub github_api: String,
    pub github_git: String,
    pub github_client_secret: String,
    pub github_private_key: String,
    pub github_webhook_secret: String,
    pub github_owner: String,
    pub github_user_token: String,
    pub model_api: String,
    pub discord_public_key: String,
    pub discord_private_key: String,
    pub slack_signing_secret: String,
    pub slack_bot_token: String,
    pub discord_bot_token: String,
    pub discord_application_id: String,
    pub discord_guild_id: String,
    pub discord_channel_id: String,
    pub discord_user_id: String,
    pub slack_team_id: String,
    pub slack_channel_id: String,
    pub slack_user_id: String,
    pub slack_bot_user_id: String,
    pub table: String,
    pub messages_queue_url: String,
    pub control_queue_url: String,
    pub pids: BTreeMap<String, u32>,
}

impl Ready {
    /// The `Authorization` of a test's calls to local services.
    #[must_use]
    pub fn control(&self) -> String {
        format!("Bearer {}", self.control_key)
    }

    /// The address by which a browser comes into the chat page.
    #[must_use]
    pub fn page_url(&self) -> String {
        format!("{}/?key={}", self.console, self.control_key)
    }

    /// The content of a ready file; `None` while it is missing or half-written.
    #[must_use]
    pub fn read(file: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(file).ok()?).ok()
    }
}
