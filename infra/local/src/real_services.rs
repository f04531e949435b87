//! Real services from the environment: each replaces its local counterpart.

use std::collections::BTreeMap;
use std::env;

use bobbin_core::tenant::keys::Key;
use serde_json::{Map, Value, json};

/// Default models if only a key is set (in OpenCode's naming).
const MODELS: [(&str, Key, &str); 3] = [
    ("ANTHROPIC_API_KEY", Key::AnthropicApiKey, "anthropic/claude-sonnet-4-5"),
    ("OPENAI_API_KEY", Key::OpenAiApiKey, "openai/gpt-5"),
    ("OPENROUTER_API_KEY", Key::OpenRouterApiKey, "openrouter/anthropic/claude-sonnet-4.5"),
];

/// Target of a variable.
#[derive(Clone, Copy)]
enum To {
    /// A parameter of the template.
    Parameter(&'static str),
    /// A key in one of its secrets.
    Secret(Key),
}

/// Settings from the environment, and what was found.
#[derive(Debug, Default)]
pub struct RealServices {
    /// Parameters of the template.
    pub parameters: BTreeMap<String, String>,
    /// Values in the parameter `Overrides`.
    pub overrides: Map<String, Value>,
    /// Keys by their names in the stack's secrets.
    pub keys: BTreeMap<String, String>,
    /// One line per real service in use.
    pub notes: Vec<String>,
}

impl RealServices {
    /// Reads the environment.
    ///
    /// # Errors
    /// A sentence that names what is missing.
    pub fn from_environment() -> Result<Self, String> {
        Self::from_variables(|name| env::var(name).ok().filter(|value| !value.is_empty()))
    }

    /// Whether the model is scripted.
    #[must_use]
    pub fn model_is_scripted(&self) -> bool {
        !self.parameters.contains_key("Model")
    }

    fn from_variables(var: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let mut services = Self::default();
        for (name, key, model) in MODELS {
            if let Some(value) = var(name) {
                services.keys.insert(key.name().to_owned(), value);
                services.parameters.entry("Model".to_owned()).or_insert_with(|| model.to_owned());
                services.notes.push(format!("{name} is set: a real model answers"));
            }
        }
        if let Some(value) = var("OPENROUTER_MANAGEMENT_KEY") {
            let name = Key::OpenRouterManagementKey.name().to_owned();
            services.keys.insert(name, value);
        }
        if let Some(model) =
            var("BOBBIN_MODEL").filter(|_| services.parameters.contains_key("Model"))
        {
            services.parameters.insert("Model".to_owned(), model);
        }
        if let Some(key) = var("DAYTONA_API_KEY") {
            let name = Key::DaytonaApiKey.name().to_owned();
            services.keys.insert(name, key);
            let api =
                var("DAYTONA_API_URL").unwrap_or_else(|| "https://app.daytona.io/api".to_owned());
            services.overrides.insert("daytona_api".to_owned(), json!(api));
            if let Some(snapshot) = var("DAYTONA_SNAPSHOT") {
                services.parameters.insert("DaytonaSnapshot".to_owned(), snapshot);
            }
            services.notes.push("DAYTONA_API_KEY is set: real sandboxes run at Daytona".to_owned());
        }
        if let Some(key) = var("VERCEL_TOKEN") {
            let needed = |name: &str| {
                var(name).ok_or_else(|| format!("VERCEL_TOKEN is set, but {name} is not."))
            };
            let api = var("VERCEL_API_URL").unwrap_or_else(|| "https://vercel.com/api".to_owned());
            for (name, value) in [
                ("provider", "vercel".to_owned()),
                ("vercel_api", api),
                ("vercel_team_id", needed("VERCEL_TEAM_ID")?),
                ("vercel_project_id", needed("VERCEL_PROJECT_ID")?),
            ] {
                services.overrides.insert(name.to_owned(), json!(value));
            }
            let name = Key::VercelToken.name().to_owned();
            services.keys.insert(name, key);
            services.notes.push("VERCEL_TOKEN is set: real sandboxes run at Vercel".to_owned());
        }
        if let Some(id) = var("GITHUB_APP_ID") {
            let needed = |name: &str| {
                var(name).ok_or_else(|| format!("GITHUB_APP_ID is set, and {name} is not."))
            };
            let key = needed("GITHUB_PRIVATE_KEY")?;
            services.keys.insert(Key::GitHubPrivateKey.name().to_owned(), key);
            for (key, name) in [
                (Key::GitHubClientSecret, "GITHUB_CLIENT_SECRET"),
                (Key::GitHubWebhookSecret, "GITHUB_WEBHOOK_SECRET"),
            ] {
                services.keys.insert(key.name().to_owned(), var(name).unwrap_or_default());
            }
            services.parameters.insert("GitHubAppId".to_owned(), id);
            services.parameters.insert("GitHubOwners".to_owned(), needed("GITHUB_OWNERS")?);
            let api = var("GITHUB_API_URL").unwrap_or_else(|| "https://api.github.com".to_owned());
            services.overrides.insert("github_api".to_owned(), json!(api));
            services.overrides.insert("github_git".to_owned(), json!(""));
            services
                .notes
                .push("GITHUB_APP_ID is set: repositories come from the real GitHub".to_owned());
        }
        let discord = [
            ("DISCORD_APPLICATION_ID", To::Parameter("DiscordApplicationId")),
            ("DISCORD_PUBLIC_KEY", To::Parameter("DiscordPublicKey")),
            ("DISCORD_BOT_TOKEN", To::Secret(Key::DiscordBotToken)),
            ("DISCORD_GUILD_ID", To::Parameter("AllowedGuilds")),
        ];
        if services.platform(&var, &discord)? {
            services
                .overrides
                .insert("discord_api".to_owned(), json!("https://discord.com/api/v10"));
            services.notes.push("DISCORD_* is set: the real Discord is used; point its interactions endpoint at a tunnel to the ingress address".to_owned());
        }
        let slack = [
            ("SLACK_SIGNING_SECRET", To::Secret(Key::SlackSigningSecret)),
            ("SLACK_BOT_TOKEN", To::Secret(Key::SlackBotToken)),
            ("SLACK_TEAM_ID", To::Parameter("AllowedTeams")),
        ];
        if services.platform(&var, &slack)? {
            services.overrides.insert("slack_api".to_owned(), json!("https://slack.com/api"));
            services.notes.push("SLACK_* is set: the real Slack is used; point its request URLs at a tunnel to the ingress address".to_owned());
        }
        Ok(services)
    }

    /// All variables of a platform, or none.
    fn platform(
        &mut self,
        var: &impl Fn(&str) -> Option<String>,
        names: &[(&str, To)],
    ) -> Result<bool, String> {
        let found: Vec<_> = names.iter().map(|(name, to)| (name, to, var(name))).collect();
        if found.iter().all(|(_, _, value)| value.is_none()) {
            return Ok(false);
        }
        for (name, to, value) in found {
            let value = value.ok_or_else(|| format!("{name} is not set, but other variables of this platform are: set all of {}, or none.", names.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")))?;
            match to {
                To::Parameter(name) => self.parameters.insert((*name).to_owned(), value),
                To::Secret(key) => self.keys.insert(key.name().to_owned(), value),
            };
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_environment_means_all_local() {
        let services = RealServices::from_variables(|_| None).expect("valid");
        assert!(services.parameters.is_empty() && services.notes.is_empty());
        assert!(services.overrides.is_empty() && services.keys.is_empty());
    }

    #[test]
    fn model_key_chooses_its_model() {
        let services =
            RealServices::from_variables(|name| (name == "OPENAI_API_KEY").then(|| "k".to_owned()))
                .expect("valid");
        assert_eq!(services.parameters["Model"], "openai/gpt-5");
        assert_eq!(services.keys["openai_api_key"], "k");
        let error = RealServices::from_variables(|name| {
            (name == "SLACK_BOT_TOKEN").then(|| "x".to_owned())
        })
        .expect_err("half");
        assert!(error.starts_with("SLACK_SIGNING_SECRET is not set"), "{error}");
    }
}
