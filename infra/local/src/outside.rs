//! Which real services the environment names: each replaces its local counterpart.

use std::collections::BTreeMap;
use std::env;

/// Models that are taken when only a key is there (as OpenCode names them).
const MODELS: [(&str, &str, &str); 3] = [
    (
        "ANTHROPIC_API_KEY",
        "AnthropicApiKey",
        "anthropic/claude-sonnet-4-5",
    ),
    ("OPENAI_API_KEY", "OpenAiApiKey", "openai/gpt-5"),
    (
        "OPENROUTER_API_KEY",
        "OpenRouterApiKey",
        "openrouter/anthropic/claude-sonnet-4.5",
    ),
];

/// Template parameters that the environment sets, and what was found.
#[derive(Debug, Default)]
pub struct Outside {
    /// Parameters of the template.
    pub parameters: BTreeMap<String, String>,
    /// One line for each real service that is used.
    pub notes: Vec<String>,
}

impl Outside {
    /// Looks.
    ///
    /// # Errors
    /// A sentence that names what is missing beside what is there.
    pub fn look() -> Result<Self, String> {
        Self::from(|name| env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn from(var: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let mut outside = Self::default();
        for (name, parameter, model) in MODELS {
            if let Some(key) = var(name) {
                outside.parameters.insert(parameter.to_owned(), key);
                outside
                    .parameters
                    .entry("Model".to_owned())
                    .or_insert_with(|| model.to_owned());
                outside
                    .notes
                    .push(format!("{name} is set: a real model answers"));
            }
        }
        if let Some(model) =
            var("BOBBIN_MODEL").filter(|_| outside.parameters.contains_key("Model"))
        {
            outside.parameters.insert("Model".to_owned(), model);
        }
        if let Some(key) = var("DAYTONA_API_KEY") {
            outside.parameters.insert("DaytonaApiKey".to_owned(), key);
            outside.parameters.insert(
                "DaytonaApi".to_owned(),
                var("DAYTONA_API_URL").unwrap_or_else(|| "https://app.daytona.io/api".to_owned()),
            );
            if let Some(snapshot) = var("DAYTONA_SNAPSHOT") {
                outside
                    .parameters
                    .insert("DaytonaSnapshot".to_owned(), snapshot);
            }
            outside
                .notes
                .push("DAYTONA_API_KEY is set: real sandboxes run at Daytona".to_owned());
        }
        let discord = [
            ("DISCORD_APPLICATION_ID", "DiscordApplicationId"),
            ("DISCORD_PUBLIC_KEY", "DiscordPublicKey"),
            ("DISCORD_BOT_TOKEN", "DiscordBotToken"),
            ("DISCORD_GUILD_ID", "AllowedGuilds"),
        ];
        if outside.platform(&var, &discord)? {
            outside.parameters.insert(
                "DiscordApi".to_owned(),
                "https://discord.com/api/v10".to_owned(),
            );
            outside.notes.push("DISCORD_* is set: the real Discord is used; point its interactions endpoint at a tunnel to the ingress address".to_owned());
        }
        let slack = [
            ("SLACK_SIGNING_SECRET", "SlackSigningSecret"),
            ("SLACK_BOT_TOKEN", "SlackBotToken"),
            ("SLACK_TEAM_ID", "AllowedTeams"),
        ];
        if outside.platform(&var, &slack)? {
            outside
                .parameters
                .insert("SlackApi".to_owned(), "https://slack.com/api".to_owned());
            outside.notes.push("SLACK_* is set: the real Slack is used; point its request URLs at a tunnel to the ingress address".to_owned());
        }
        Ok(outside)
    }

    /// All of a platform's variables, or none.
    fn platform(
        &mut self,
        var: &impl Fn(&str) -> Option<String>,
        names: &[(&str, &str)],
    ) -> Result<bool, String> {
        let found: Vec<_> = names
            .iter()
            .map(|(name, parameter)| (name, parameter, var(name)))
            .collect();
        if found.iter().all(|(_, _, value)| value.is_none()) {
            return Ok(false);
        }
        for (name, parameter, value) in found {
            let value = value.ok_or_else(|| format!("{name} is not set, but other variables of this platform are: set all of {}, or none.", names.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")))?;
            self.parameters.insert((*parameter).to_owned(), value);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_the_environment_means_everything_local() {
        let outside = Outside::from(|_| None).expect("valid");
        assert!(outside.parameters.is_empty() && outside.notes.is_empty());
    }

    #[test]
    fn a_model_key_chooses_its_model_and_half_a_platform_is_refused() {
        let outside = Outside::from(|name| (name == "OPENAI_API_KEY").then(|| "k".to_owned()))
            .expect("valid");
        assert_eq!(outside.parameters["Model"], "openai/gpt-5");
        let error = Outside::from(|name| (name == "SLACK_BOT_TOKEN").then(|| "x".to_owned()))
            .expect_err("half");
        assert!(
            error.starts_with("SLACK_SIGNING_SECRET is not set"),
            "{error}"
        );
    }
}
