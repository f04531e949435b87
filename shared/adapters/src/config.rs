//! The configuration of the functions: environment variables that the template sets. No secret is among them.

use std::env;

use bobbin_core::access::Policy;
use bobbin_core::limits::Limits;

/// What the template's parameters say.
#[derive(Debug, Clone)]
pub struct Config {
    /// Name of the stack: part of every sandbox's name and label.
    pub stack: String,
    /// Table of sessions.
    pub table: String,
    /// Queue of messages.
    pub messages_queue_url: String,
    /// Queue of control words.
    pub control_queue_url: String,
    /// Dead letters of the two.
    pub dead_queue_urls: [String; 2],
    /// Name or ARN of the secret.
    pub secret_id: String,
    /// Base of Discord's API.
    pub discord_api: String,
    /// Discord application id; empty switches Discord off.
    pub discord_application_id: String,
    /// Discord public key, hex.
    pub discord_public_key: String,
    /// Base of Slack's API.
    pub slack_api: String,
    /// Base of Daytona's control API.
    pub daytona_api: String,
    /// Prepared snapshot; empty builds from the Dockerfile.
    pub daytona_snapshot: String,
    /// Model as provider/model.
    pub model: String,
    /// OpenAI-compatible endpoint; empty uses the provider's own.
    pub model_base_url: String,
    /// Who may use Bobbin.
    pub policy: Policy,
    /// The bounds.
    pub limits: Limits,
}

impl Config {
    /// Reads the environment.
    ///
    /// # Errors
    /// A sentence that names the variable and what is wrong with it.
    pub fn from_environment() -> Result<Self, String> {
        let required = |name: &str| {
            env::var(name)
                .ok()
                .filter(|value| !value.is_empty())
                .ok_or_else(|| {
                    format!("{name} is not set: deploy with template.yaml, which sets it")
                })
        };
        let optional = |name: &str| env::var(name).unwrap_or_default();
        let limits: Limits = match optional("LIMITS").as_str() {
            "" => Limits::DEFAULT,
            text => serde_json::from_str(text)
                .map_err(|e| format!("LIMITS is not a JSON object of known bounds: {e}"))?,
        };
        limits.check()?;
        Ok(Self {
            stack: required("STACK")?,
            table: required("TABLE")?,
            messages_queue_url: required("MESSAGES_QUEUE_URL")?,
            control_queue_url: required("CONTROL_QUEUE_URL")?,
            dead_queue_urls: [
                required("MESSAGES_DEAD_QUEUE_URL")?,
                required("CONTROL_DEAD_QUEUE_URL")?,
            ],
            secret_id: required("SECRET_ID")?,
            discord_api: required("DISCORD_API")?,
            discord_application_id: optional("DISCORD_APPLICATION_ID"),
            discord_public_key: optional("DISCORD_PUBLIC_KEY"),
            slack_api: required("SLACK_API")?,
            daytona_api: required("DAYTONA_API")?,
            daytona_snapshot: optional("DAYTONA_SNAPSHOT"),
            model: required("MODEL")?,
            model_base_url: optional("MODEL_BASE_URL"),
            policy: Policy::from_lists(
                &optional("ALLOWED_GUILDS"),
                &optional("ALLOWED_TEAMS"),
                &optional("ALLOWED_CHANNELS"),
                &optional("ALLOWED_USERS"),
            ),
            limits,
        })
    }
}
