//! The keys of a stack: which there are, in which secret each one lies, and what is said when one is missing.
//!
//! A function reads the secrets that it needs and no other, so the keys lie in one secret for each need. All but the
//! stack key begin absent, are put there by `bobbin secrets`, and may be replaced at any time. No value is here.

/// A key that an outside service asks for, or that the stack made for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// Verifies what Slack sends.
    SlackSigningSecret,
    /// Lets the worker speak on Discord as the bot.
    DiscordBotToken,
    /// Lets the worker speak on Slack as the bot.
    SlackBotToken,
    /// Lets the agent call Anthropic's models.
    AnthropicApiKey,
    /// Pays `OpenAI`'s models, or an endpoint of one's own.
    OpenAiApiKey,
    /// Lets the agent call models through `OpenRouter`.
    OpenRouterApiKey,
    /// Makes and ends sandboxes.
    DaytonaApiKey,
    /// Makes and ends sandboxes, where Vercel runs them.
    VercelToken,
    /// Logs in at hosts of one's own that run sandboxes, over SSH: a private key.
    SshKey,
    /// The passwords of sandboxes are derived from it; the template makes it, and nothing ever changes it.
    StackKey,
}

impl Key {
    /// Every key, in the order in which set-up asks for them.
    pub const ALL: [Self; 10] = [
        Self::SlackSigningSecret,
        Self::DiscordBotToken,
        Self::SlackBotToken,
        Self::AnthropicApiKey,
        Self::OpenAiApiKey,
        Self::OpenRouterApiKey,
        Self::DaytonaApiKey,
        Self::VercelToken,
        Self::SshKey,
        Self::StackKey,
    ];

    /// Its name in the secret's JSON object.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SlackSigningSecret => "slack_signing_secret",
            Self::DiscordBotToken => "discord_bot_token",
            Self::SlackBotToken => "slack_bot_token",
            Self::AnthropicApiKey => "anthropic_api_key",
            Self::OpenAiApiKey => "openai_api_key",
            Self::OpenRouterApiKey => "openrouter_api_key",
            Self::DaytonaApiKey => "daytona_api_key",
            Self::VercelToken => "vercel_token",
            Self::SshKey => "ssh_key",
            Self::StackKey => "stack_key",
        }
    }

    /// The logical id of its secret in the template.
    #[must_use]
    pub const fn secret(self) -> &'static str {
        match self {
            Self::SlackSigningSecret => "IngressSecret",
            Self::DiscordBotToken
            | Self::SlackBotToken
            | Self::AnthropicApiKey
            | Self::OpenAiApiKey
            | Self::OpenRouterApiKey => "WorkerSecret",
            Self::DaytonaApiKey | Self::VercelToken | Self::SshKey => "ProviderSecret",
            Self::StackKey => "StackKey",
        }
    }

    /// The keys that a tenant can have of its own, in the order in which they are told.
    pub const OF_TENANTS: [Self; 4] =
        [Self::DaytonaApiKey, Self::AnthropicApiKey, Self::OpenAiApiKey, Self::OpenRouterApiKey];

    /// Whose key it is, as one word that people type and that is stored; none for a key that no tenant has.
    #[must_use]
    pub const fn provider(self) -> Option<&'static str> {
        match self {
            Self::DaytonaApiKey => Some("daytona"),
            Self::AnthropicApiKey => Some("anthropic"),
            Self::OpenAiApiKey => Some("openai"),
            Self::OpenRouterApiKey => Some("openrouter"),
            Self::SlackSigningSecret
            | Self::DiscordBotToken
            | Self::SlackBotToken
            | Self::VercelToken
            | Self::SshKey
            | Self::StackKey => None,
        }
    }

    /// The same as the provider writes itself; the key's own name where it is nobody's.
    #[must_use]
    pub const fn brand(self) -> &'static str {
        match self {
            Self::DaytonaApiKey => "Daytona",
            Self::VercelToken => "Vercel",
            Self::AnthropicApiKey => "Anthropic",
            Self::OpenAiApiKey => "OpenAI",
            Self::OpenRouterApiKey => "OpenRouter",
            other => other.name(),
        }
    }

    /// The key of a provider that a tenant can have one of, by its word.
    #[must_use]
    pub fn of_tenant(provider: &str) -> Option<Self> {
        let typed = provider.trim().to_ascii_lowercase();
        let mut all = Self::OF_TENANTS.into_iter();
        all.find(|key| key.provider() == Some(typed.as_str()))
    }

    /// The key that has this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.name() == name)
    }

    /// The key of a provider of models, for those whose keys a stack can hold.
    #[must_use]
    pub fn of_model_provider(provider: &str) -> Option<Self> {
        match provider {
            "anthropic" => Some(Self::AnthropicApiKey),
            "openai" => Some(Self::OpenAiApiKey),
            "openrouter" => Some(Self::OpenRouterApiKey),
            _ => None,
        }
    }

    /// What is said when it is not there: which key, in which secret, and what puts it there.
    #[must_use]
    pub fn missing(self) -> String {
        format!(
            "The key {} is missing in the secret {}. The operator stores it with `bobbin secrets`.",
            self.name(),
            self.secret()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_key_names_secret_and_command() {
        assert_eq!(
            Key::DaytonaApiKey.missing(),
            "The key daytona_api_key is missing in the secret ProviderSecret. The operator stores it with `bobbin secrets`."
        );
    }

    #[test]
    fn every_key_has_a_unique_name() {
        for key in Key::ALL {
            assert_eq!(Key::named(key.name()), Some(key));
        }
        assert_eq!(Key::named("password"), None);
    }
}
