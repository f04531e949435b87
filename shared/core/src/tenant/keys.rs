//! The keys of a stack: which ones exist, which secret holds each, and the text shown when one is missing.
//!
//! A function reads only the secrets that it needs, so the keys are in one secret per need. All but the stack key are
//! absent at first, are stored with `bobbin secrets`, and can be replaced at any time. No value is in this module.

/// A key for an outside service, or the key that the stack made for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// Verifies Slack's requests.
    SlackSigningSecret,
    /// Verifies GitHub's webhooks. While it is replaced, the value has the new and the old one, with a space between.
    GitHubWebhookSecret,
    /// Lets the worker act on Discord as the bot.
    DiscordBotToken,
    /// Lets the worker act on Slack as the bot.
    SlackBotToken,
    /// Lets the agent call Anthropic's models.
    AnthropicApiKey,
    /// Pays for `OpenAI`'s models, or for the operator's own endpoint.
    OpenAiApiKey,
    /// Lets the agent call models through `OpenRouter`.
    OpenRouterApiKey,
    /// A private key: the app of the forge signs with it.
    GitHubPrivateKey,
    /// Proves the app when people sign in on the forge's page.
    GitHubClientSecret,
    /// Creates and deletes sandboxes.
    DaytonaApiKey,
    /// Creates and deletes sandboxes that Vercel runs.
    VercelToken,
    /// Makes and deletes model keys with a limit of money at `OpenRouter`; it calls no model.
    OpenRouterManagementKey,
    /// A private key: logs in over SSH to the operator's own hosts that run sandboxes.
    SshKey,
    /// The passwords of sandboxes are derived from it. The template creates it, and nothing ever changes it.
    StackKey,
}

impl Key {
    /// Every key, in the order in which set-up asks for them.
    pub const ALL: [Self; 14] = [
        Self::SlackSigningSecret,
        Self::GitHubWebhookSecret,
        Self::DiscordBotToken,
        Self::SlackBotToken,
        Self::AnthropicApiKey,
        Self::OpenAiApiKey,
        Self::OpenRouterApiKey,
        Self::GitHubPrivateKey,
        Self::GitHubClientSecret,
        Self::DaytonaApiKey,
        Self::VercelToken,
        Self::OpenRouterManagementKey,
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
            Self::GitHubWebhookSecret => "github_webhook_secret",
            Self::GitHubPrivateKey => "github_private_key",
            Self::GitHubClientSecret => "github_client_secret",
            Self::DaytonaApiKey => "daytona_api_key",
            Self::VercelToken => "vercel_token",
            Self::OpenRouterManagementKey => "openrouter_management_key",
            Self::SshKey => "ssh_key",
            Self::StackKey => "stack_key",
        }
    }

    /// The logical id of its secret in the template.
    #[must_use]
    pub const fn secret(self) -> &'static str {
        match self {
            Self::SlackSigningSecret | Self::GitHubWebhookSecret => "IngressSecret",
            Self::DiscordBotToken
            | Self::SlackBotToken
            | Self::AnthropicApiKey
            | Self::OpenAiApiKey
            | Self::OpenRouterApiKey
            | Self::GitHubPrivateKey
            | Self::GitHubClientSecret => "WorkerSecret",
            Self::DaytonaApiKey
            | Self::VercelToken
            | Self::OpenRouterManagementKey
            | Self::SshKey => "ProviderSecret",
            Self::StackKey => "StackKey",
        }
    }

    /// The key for an account of a tenant's own, in which its sandboxes are made.
    pub const OF_ACCOUNT: Self = Self::DaytonaApiKey;

    /// The keys that a tenant can have of its own, in display order: for its account, and for models.
    pub const OF_TENANTS: [Self; 4] =
        [Self::OF_ACCOUNT, Self::AnthropicApiKey, Self::OpenAiApiKey, Self::OpenRouterApiKey];

    /// The provider, as the word that people type and that is stored; `None` for a key that no tenant can have.
    #[must_use]
    pub const fn provider(self) -> Option<&'static str> {
        match self {
            Self::DaytonaApiKey => Some("daytona"),
            Self::AnthropicApiKey => Some("anthropic"),
            Self::OpenAiApiKey => Some("openai"),
            Self::OpenRouterApiKey => Some("openrouter"),
            Self::SlackSigningSecret
            | Self::GitHubWebhookSecret
            | Self::DiscordBotToken
            | Self::SlackBotToken
            | Self::GitHubPrivateKey
            | Self::GitHubClientSecret
            | Self::VercelToken
            | Self::OpenRouterManagementKey
            | Self::SshKey
            | Self::StackKey => None,
        }
    }

    /// The provider's name as the provider writes it; the key's own name if it belongs to no provider.
    #[must_use]
    pub const fn brand(self) -> &'static str {
        match self {
            Self::DaytonaApiKey => "Daytona",
            Self::VercelToken => "Vercel",
            Self::AnthropicApiKey => "Anthropic",
            Self::OpenAiApiKey => "OpenAI",
            Self::OpenRouterApiKey | Self::OpenRouterManagementKey => "OpenRouter",
            other => other.name(),
        }
    }

    /// The key for a provider, by that word, if a tenant can have one.
    #[must_use]
    pub fn of_tenant(provider: &str) -> Option<Self> {
        let typed = provider.trim().to_ascii_lowercase();
        let mut all = Self::OF_TENANTS.into_iter();
        all.find(|key| key.provider() == Some(typed.as_str()))
    }

    /// The key with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.name() == name)
    }

    /// The key for a provider of models, if a stack can hold one.
    #[must_use]
    pub fn of_model_provider(provider: &str) -> Option<Self> {
        match provider {
            "anthropic" => Some(Self::AnthropicApiKey),
            "openai" => Some(Self::OpenAiApiKey),
            "openrouter" => Some(Self::OpenRouterApiKey),
            _ => None,
        }
    }

    /// The text shown when the key is missing: which key, in which secret, and how to store it.
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
