//! Parameters and secret values for the template's deployment: local defaults first, then the environment, then the
//! command line.

use std::collections::BTreeMap;

use bobbin_core::base::ids::Tenant;
use bobbin_core::tenant::keys::Key;
use bobbin_core::tenant::overrides::Overrides;
use serde_json::{Map, Value, json};

use crate::options::LaptopOptions;
use crate::ready::Ready;
use crate::real_services::RealServices;

/// The parameter for rarely changed values.
const OVERRIDES: &str = "Overrides";

/// A laptop is no new account: room for 60 concurrent threads.
const CONCURRENCY: &str = "200";

/// Template parameters and secret values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployment {
    /// Values of the template's parameters, by name.
    pub parameters: BTreeMap<String, String>,
    /// JSON objects of keys, by the secrets' logical ids. The stack key is not included: the template generates it.
    pub secrets: BTreeMap<String, String>,
}

impl Deployment {
    /// Uses the local platforms, provider and model, except where another one is named.
    ///
    /// # Errors
    /// The overrides on the command line are invalid; one line.
    pub fn new(
        ready: &Ready,
        options: &LaptopOptions,
        real_services: &RealServices,
        (model_api, nudge_url): (&str, &str),
    ) -> Result<Self, String> {
        let mut parameters: BTreeMap<String, String> = [
            ("DiscordApplicationId", &ready.discord_application_id),
            ("DiscordPublicKey", &ready.discord_public_key),
            ("AllowedGuilds", &ready.discord_guild_id),
            ("AllowedTeams", &ready.slack_team_id),
        ]
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .into();
        let tenants =
            [Tenant::discord(&ready.discord_guild_id), Tenant::slack(&ready.slack_team_id)];
        let owners = tenants.map(|tenant| format!("{tenant}={}", ready.github_owner));
        parameters.insert("GitHubAppId".to_owned(), ready.github_client_id.clone());
        parameters.insert("GitHubOwners".to_owned(), owners.join(","));
        parameters.insert("Concurrency".to_owned(), CONCURRENCY.to_owned());
        let mut overrides: Map<String, Value> = [
            ("daytona_api", &ready.daytona_api),
            ("vercel_api", &ready.vercel_api),
            ("vercel_team_id", &ready.vercel_team_id),
            ("vercel_project_id", &ready.vercel_project_id),
            ("github_api", &ready.github_api),
            ("github_git", &ready.github_git),
            ("discord_api", &ready.discord_api),
            ("slack_api", &ready.slack_api),
        ]
        .map(|(name, value)| (name, value.as_str()))
        .into_iter()
        .chain([("nudge_url", nudge_url)])
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect();
        if real_services.model_is_scripted() {
            let model = format!("scripted/{}", bobbin_local_model::MODEL_ID);
            parameters.insert("Model".to_owned(), model);
            let other = format!("scripted/{}", bobbin_local_model::OTHER_MODEL_ID);
            overrides.insert("models".to_owned(), json!([other]));
            overrides.insert("model_base_url".to_owned(), json!(model_api));
            overrides.insert("openrouter_api".to_owned(), json!(model_api));
        }
        // A key in the laptop stack's own KMS is free, and the tools start no process before they are called.
        for parameter in ["TenantCredentials", "ServeTools"] {
            parameters.insert(parameter.to_owned(), "yes".to_owned());
        }
        // Nor do its traces cost anything.
        parameters.insert("Observability".to_owned(), "full".to_owned());
        for (variable, parameter) in
            [("BOBBIN_LOG_LEVEL", "Observability"), ("SANDBOX_RUNTIME_MODE", "SandboxRuntimeMode")]
        {
            if let Ok(value) = std::env::var(variable) {
                parameters.insert(parameter.to_owned(), value);
            }
        }
        parameters.extend(real_services.parameters.clone());
        parameters.extend(options.parameters.clone());

        overrides.extend(real_services.overrides.clone());
        if let Some(limits) = &options.limits {
            let limits = serde_json::from_str(limits).map_err(|e| e.to_string())?;
            overrides.insert("limits".to_owned(), limits);
        }
        // A parameter on the command line changes only the overrides that it names.
        if let Some(own) = parameters.get(OVERRIDES) {
            Overrides::parse(own)?;
            let own: Map<String, Value> = serde_json::from_str(own).unwrap_or_default();
            overrides.extend(own);
        }
        let overrides = Value::Object(overrides).to_string();
        parameters.insert(OVERRIDES.to_owned(), overrides);
        Ok(Self { parameters, secrets: secrets(ready, options, real_services) })
    }
}

fn secrets(
    ready: &Ready,
    options: &LaptopOptions,
    real_services: &RealServices,
) -> BTreeMap<String, String> {
    let mut keys: BTreeMap<String, String> = [
        (Key::SlackSigningSecret, &ready.slack_signing_secret),
        (Key::DiscordBotToken, &ready.discord_bot_token),
        (Key::SlackBotToken, &ready.slack_bot_token),
        (Key::DaytonaApiKey, &ready.daytona_api_key),
        (Key::VercelToken, &ready.vercel_token),
        (Key::GitHubPrivateKey, &ready.github_private_key),
        (Key::GitHubClientSecret, &ready.github_client_secret),
        (Key::GitHubWebhookSecret, &ready.github_webhook_secret),
    ]
    .map(|(key, value)| (key.name().to_owned(), value.clone()))
    .into();
    keys.extend(real_services.keys.clone());
    keys.extend(options.keys.clone());
    let mut secrets: BTreeMap<&str, Map<String, Value>> = Key::ALL
        .into_iter()
        .filter(|key| *key != Key::StackKey)
        .map(|key| (key.secret(), Map::new()))
        .collect();
    for (name, value) in keys.into_iter().filter(|(_, value)| !value.is_empty()) {
        let secret = Key::named(&name).and_then(|key| secrets.get_mut(key.secret()));
        if let Some(secret) = secret {
            secret.insert(name, Value::String(value));
        }
    }
    secrets.into_iter().map(|(id, keys)| (id.to_owned(), Value::Object(keys).to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Addresses of the model and of the nudge endpoint.
    const AT: (&str, &str) = ("http://m/v1", "http://127.0.0.1:4/nudge");

    fn ready() -> Ready {
        Ready {
            discord_api: "http://127.0.0.1:1/discord".to_owned(),
            slack_api: "http://127.0.0.1:1/slack".to_owned(),
            daytona_api: "http://127.0.0.1:2/api".to_owned(),
            vercel_api: "http://127.0.0.1:3/api".to_owned(),
            github_api: "http://127.0.0.1:4".to_owned(),
            slack_signing_secret: "signing".to_owned(),
            daytona_api_key: "dtn".to_owned(),
            ..Ready::default()
        }
    }

    #[test]
    fn each_key_lands_in_its_secret() {
        let options = LaptopOptions {
            keys: BTreeMap::from([
                ("openai_api_key".to_owned(), "sk".to_owned()),
                ("daytona_api_key".to_owned(), String::new()),
            ]),
            ..LaptopOptions::default()
        };
        let made = Deployment::new(&ready(), &options, &RealServices::default(), AT);
        let secrets = made.expect("valid").secrets;
        assert_eq!(secrets["IngressSecret"], r#"{"slack_signing_secret":"signing"}"#);
        assert_eq!(secrets["WorkerSecret"], r#"{"openai_api_key":"sk"}"#);
        assert_eq!(secrets["ProviderSecret"], "{}");
        assert!(!secrets.contains_key("StackKey"));
    }

    #[test]
    fn command_line_overrides_merge_with_defaults() {
        let options = LaptopOptions {
            limits: Some(r#"{"poll_ms": 300}"#.to_owned()),
            parameters: BTreeMap::from([(
                "Overrides".to_owned(),
                r#"{"slack_stream_answers": true}"#.to_owned(),
            )]),
            ..LaptopOptions::default()
        };
        let made = Deployment::new(&ready(), &options, &RealServices::default(), AT);
        let text = made.expect("valid").parameters["Overrides"].clone();
        let read = Overrides::parse(&text).expect("valid");
        assert!(read.chats.slack_stream_answers);
        assert_eq!(read.limits.poll.poll_ms, 300);
        assert_eq!(read.chats.slack_api, "http://127.0.0.1:1/slack");
        assert_eq!(read.agents.model_base_url, "http://m/v1");
        assert_eq!(read.providers.nudge_url, "http://127.0.0.1:4/nudge");

        let options = LaptopOptions {
            parameters: BTreeMap::from([("Overrides".to_owned(), r#"{"x": 1}"#.to_owned())]),
            ..LaptopOptions::default()
        };
        let refused =
            Deployment::new(&ready(), &options, &RealServices::default(), AT).expect_err("unknown");
        assert!(refused.contains("unknown field `x`"), "{refused}");
    }
}
