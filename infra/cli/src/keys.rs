//! The keys: their environment variables and where to find each; their stored names are in core.

use bobbin_core::tenant::keys::Key as Stored;

/// A key that a person provides.
#[derive(Debug, PartialEq, Eq)]
pub struct ProvidedKey {
    /// The stored key.
    pub key: Stored,
    /// Environment variable, such as `DAYTONA_API_KEY`.
    pub variable: &'static str,
    /// Display name, for prompts and reports.
    pub title: &'static str,
    /// Where to find it.
    pub found: &'static str,
}

impl ProvidedKey {
    /// Name in the secret.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.key.name()
    }

    /// The stack output that names its secret.
    #[must_use]
    pub fn output(&self) -> String {
        format!("{}Arn", self.key.secret())
    }
}

/// Every key that a person provides, in the order of the prompts. The stack's own key is not listed; the stack
/// generates it.
pub const KEYS: [ProvidedKey; 13] = [
    ProvidedKey {
        key: Stored::DiscordBotToken,
        variable: "DISCORD_BOT_TOKEN",
        title: "Discord bot token",
        found: "https://discord.com/developers/applications, the application, Bot, Reset Token",
    },
    ProvidedKey {
        key: Stored::SlackSigningSecret,
        variable: "SLACK_SIGNING_SECRET",
        title: "Slack signing secret",
        found: "https://api.slack.com/apps, the app, Basic Information, App Credentials",
    },
    ProvidedKey {
        key: Stored::SlackBotToken,
        variable: "SLACK_BOT_TOKEN",
        title: "Slack bot token",
        found: "https://api.slack.com/apps, the app, OAuth & Permissions, after Install to Workspace",
    },
    ProvidedKey {
        key: Stored::DaytonaApiKey,
        variable: "DAYTONA_API_KEY",
        title: "Daytona API key",
        found: "https://app.daytona.io/dashboard/keys",
    },
    ProvidedKey {
        key: Stored::VercelToken,
        variable: "VERCEL_TOKEN",
        title: "Vercel access token",
        found: "https://vercel.com/account/settings/tokens, with the team as its scope",
    },
    ProvidedKey {
        key: Stored::SshKey,
        variable: "SSH_KEY",
        title: "Private key for SSH hosts",
        found: "ssh-keygen -q -t ed25519 -N '' -f bobbin, then base64 -w0 bobbin",
    },
    ProvidedKey {
        key: Stored::GitHubPrivateKey,
        variable: "GITHUB_PRIVATE_KEY",
        title: "Private key of the GitHub App",
        found: "the app's settings at GitHub, General, Private keys, then base64 -w0 on the file",
    },
    ProvidedKey {
        key: Stored::GitHubClientSecret,
        variable: "GITHUB_CLIENT_SECRET",
        title: "Client secret of the GitHub App",
        found: "the app's settings at GitHub, General, Client secrets; only for signing in there from the chat",
    },
    ProvidedKey {
        key: Stored::GitHubWebhookSecret,
        variable: "GITHUB_WEBHOOK_SECRET",
        title: "Webhook secret of the GitHub App",
        found: "the app's settings at GitHub, General, Webhook; while you replace it, the new and the old one with a space between",
    },
    ProvidedKey {
        key: Stored::AnthropicApiKey,
        variable: "ANTHROPIC_API_KEY",
        title: "Anthropic API key",
        found: "https://platform.claude.com/settings/keys",
    },
    ProvidedKey {
        key: Stored::OpenAiApiKey,
        variable: "OPENAI_API_KEY",
        title: "OpenAI API key",
        found: "https://platform.openai.com/api-keys",
    },
    ProvidedKey {
        key: Stored::OpenRouterApiKey,
        variable: "OPENROUTER_API_KEY",
        title: "OpenRouter API key",
        found: "https://openrouter.ai/settings/keys",
    },
    ProvidedKey {
        key: Stored::OpenRouterManagementKey,
        variable: "OPENROUTER_MANAGEMENT_KEY",
        title: "OpenRouter management key",
        found: "https://openrouter.ai/settings/management-keys; only for budgets that OpenRouter enforces",
    },
];

/// The outputs that name the secrets, without repeats.
pub const OUTPUTS: [&str; 3] = ["WorkerSecretArn", "IngressSecretArn", "ProviderSecretArn"];

/// Finds a key by its name in the secret or the environment.
///
/// # Errors
/// The known names.
pub fn named(name: &str) -> Result<&'static ProvidedKey, String> {
    let known = |key: &&ProvidedKey| key.name() == name || key.variable == name;
    KEYS.iter().find(known).ok_or_else(|| {
        let all: Vec<&str> = KEYS.iter().map(|key| key.variable).collect();
        format!("the keys are {}", all.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_by_either_name() {
        for key in &KEYS {
            assert_eq!(named(key.name()), Ok(key));
            assert_eq!(named(key.variable), Ok(key));
            assert!(OUTPUTS.contains(&key.output().as_str()), "{}", key.output());
        }
        assert!(
            named("stack_key")
                .is_err_and(|why| why.starts_with("the keys are DISCORD_BOT_TOKEN, "))
        );
    }
}
