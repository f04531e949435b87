//! The stack's secret: one JSON object in Secrets Manager, read once at a cold start.

use std::fmt;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::direct::{Direct, Service};

/// Longest wait for a secret.
const READ_MS_MAX: u64 = 10_000;

/// A value that no log can show; `expose` is its only reader.
#[derive(Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The value.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether it was left empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self(value)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The credentials of the functions.
#[derive(Debug, Clone, Deserialize)]
pub struct Secrets {
    /// Discord bot token.
    #[serde(default)]
    pub discord_bot_token: Secret,
    /// Slack bot token.
    #[serde(default)]
    pub slack_bot_token: Secret,
    /// Slack signing secret.
    #[serde(default)]
    pub slack_signing_secret: Secret,
    /// Daytona API key.
    #[serde(default)]
    pub daytona_api_key: Secret,
    /// Anthropic API key.
    #[serde(default)]
    pub anthropic_api_key: Secret,
    /// `OpenAI` API key.
    #[serde(default)]
    pub openai_api_key: Secret,
    /// `OpenRouter` API key.
    #[serde(default)]
    pub openrouter_api_key: Secret,
    /// Made by the template; passwords of sandboxes are derived from it.
    pub stack_key: Secret,
}

impl Secrets {
    /// Reads the secret.
    ///
    /// # Errors
    /// What went wrong and what to look at; never a part of the value.
    pub async fn read(aws: &Direct, id: &str) -> Result<Self, String> {
        let text = text(aws, id).await?;
        let text = text.expose();
        // The decoder's message can quote the value, so only its position is told.
        let secrets: Self = serde_json::from_str(text).map_err(|e| {
            format!(
                "the secret {id} is not a JSON object with stack_key (line {}, column {})",
                e.line(),
                e.column()
            )
        })?;
        if secrets.stack_key.expose().len() < 32 {
            return Err(format!(
                "the secret {id} has a stack_key of fewer than 32 characters: deploy the template again"
            ));
        }
        Ok(secrets)
    }
}

/// The text of a secret.
///
/// # Errors
/// What went wrong and what to look at; never a part of the value.
pub async fn text(aws: &Direct, id: &str) -> Result<Secret, String> {
    let request = json!({ "SecretId": id });
    let mut answer = aws
        .call(Service::Secrets, "GetSecretValue", &request, READ_MS_MAX)
        .await
        .map_err(|e| format!("the secret {id} cannot be read: {e}"))?;
    match answer["SecretString"].take() {
        Value::String(text) => Ok(Secret(text)),
        _ => Err(format!("the secret {id} holds no text")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_show_itself() {
        let secrets: Secrets = serde_json::from_str(r#"{"stack_key":"canary"}"#).expect("valid");
        assert!(!format!("{secrets:?}").contains("canary"));
        assert_eq!(secrets.stack_key.expose(), "canary");
    }
}
