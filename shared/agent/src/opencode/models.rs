//! Which models turns can run with, and what the server of a sandbox is told about them.
//!
//! A chosen model must be one of a provider for which there is a key, or of the endpoint of one's own. The names that
//! people use are those of the configuration: that OpenCode needs another provider's name for such an endpoint
//! ([`ModelName::COMPATIBLE`]) stays in here.

use bobbin_core::base::failure::Failure;
use bobbin_core::tenant::keys::Key;
use bobbin_http::host_of;
use serde_json::Value;

use super::request::{ModelEndpoint, ModelName, server_config};
use crate::runtime::ModelKey;

/// Hosts of the providers, for which their keys are.
const HOSTS: [(&str, &str); 3] = [
    ("anthropic", "api.anthropic.com"),
    ("openai", "api.openai.com"),
    ("openrouter", "openrouter.ai"),
];
/// The variable that holds the key of an endpoint of its own.
const ENDPOINT_KEY: &str = "BOBBIN_MODEL_KEY";

/// Keys of the model's providers; empty ones count as absent.
#[derive(Clone, Default)]
pub struct ModelKeys {
    /// The key for Anthropic's models (`ANTHROPIC_API_KEY` in a sandbox).
    pub anthropic: String,
    /// The key for `OpenAI`'s models, or for an endpoint of one's own (`OPENAI_API_KEY` in a sandbox).
    pub openai: String,
    /// The key for `OpenRouter`'s models (`OPENROUTER_API_KEY` in a sandbox).
    pub openrouter: String,
}

impl std::fmt::Debug for ModelKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ModelKeys(…)")
    }
}

/// Which models there are.
#[derive(Debug, Clone)]
pub struct ModelSettings {
    /// The model of turns that choose none, as provider/model.
    pub model: String,
    /// Further models of the endpoint, likewise; without an endpoint a provider's own models can all be chosen.
    pub models: Vec<String>,
    /// Address of an OpenAI-compatible endpoint; `None` uses the provider's own.
    pub model_base_url: Option<String>,
    /// The keys by which the models are paid; empty ones count as absent.
    pub keys: ModelKeys,
}

/// A model that somebody chose, as far as it matters where it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelRoute {
    /// Whose it is, by the name that people use.
    pub provider: String,
    /// Its own name there.
    pub model: String,
    /// What OpenCode's server calls it, as provider/model.
    pub at_server: String,
    /// The endpoint of one's own has it.
    is_served: bool,
}

/// The models of the stack. By default there is none, and every name is the server's own.
#[derive(Default)]
pub struct Models {
    /// The model of turns that choose none.
    default: ModelName,
    /// All that the endpoint of one's own serves, under the server's names; empty without one.
    served: Vec<ModelName>,
    base_url: Option<String>,
    keys: ModelKeys,
    providers: Vec<String>,
}

impl std::fmt::Debug for Models {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Models").field("default", &self.default).finish_non_exhaustive()
    }
}

impl Models {
    /// With these keys and this endpoint.
    ///
    /// # Errors
    /// What is wrong with a model's name.
    pub fn new(settings: &ModelSettings) -> Result<Self, String> {
        let parse = |name: &String| ModelName::parse(name);
        let default = parse(&settings.model)?;
        let further: Vec<ModelName> =
            settings.models.iter().map(parse).collect::<Result<_, _>>()?;
        let base_url = settings.model_base_url.clone().filter(|url| !url.is_empty());
        let mut providers = vec![default.provider.clone()];
        let mut served = Vec::new();
        if base_url.is_some() {
            providers.extend(further.iter().map(|model| model.provider.clone()));
            served.push(default.clone().compatible());
            served.extend(further.into_iter().map(ModelName::compatible));
        }
        let keys = &settings.keys;
        let own =
            keyed(keys).filter(|(provider, _, _)| base_url.is_none() || *provider != "openai");
        providers.extend(own.map(|(provider, _, _)| provider.to_owned()));
        let mut seen = std::collections::BTreeSet::new();
        providers.retain(|provider| seen.insert(provider.clone()));
        Ok(Self { default, served, base_url, keys: keys.clone(), providers })
    }

    /// Providers whose models can be chosen, the configured one first.
    #[must_use]
    pub fn providers(&self) -> &[String] {
        &self.providers
    }

    /// What a model's name comes to.
    ///
    /// # Errors
    /// It is no such name.
    pub fn route(&self, name: &str) -> Result<ModelRoute, Failure> {
        let at_server = self.at_server(name)?;
        let named = ModelName::parse(name).map_err(|reason| Failure::TurnFailed { reason })?;
        Ok(ModelRoute {
            is_served: self.served.iter().any(|one| one.provider == at_server.provider),
            at_server: at_server.to_string(),
            provider: named.provider,
            model: named.model,
        })
    }

    /// The endpoint of one's own, and the variable with its key, for agents that call this provider's models: where it has
    /// no key of its own, or none that counts beside an endpoint.
    #[must_use]
    pub fn endpoint_for(&self, provider: &str) -> Option<(&str, &'static str)> {
        let base_url = self.base_url.as_deref()?;
        let has_own = keyed(&self.keys).any(|(keyed, _, _)| keyed == provider);
        (provider == "openai" || !has_own)
            .then(|| (base_url, variable_of(&self.default.clone().compatible().provider)))
    }

    /// Whether agents that call this provider's models reach that one.
    #[must_use]
    pub fn reaches(&self, provider: &str, route: &ModelRoute) -> bool {
        match self.endpoint_for(provider) {
            Some(_) => route.is_served,
            None => route.provider == provider,
        }
    }

    /// The server's name of a model.
    pub(super) fn at_server(&self, name: &str) -> Result<ModelName, Failure> {
        let model = ModelName::parse(name).map_err(|reason| Failure::TurnFailed { reason })?;
        Ok(match self.base_url {
            Some(_) => model.compatible(),
            None => model,
        })
    }

    /// The name that people use for a model of the server's.
    #[must_use]
    pub fn for_people(&self, at_server: &str) -> String {
        let inside =
            at_server.strip_prefix(ModelName::COMPATIBLE).and_then(|rest| rest.strip_prefix('/'));
        match inside {
            Some(model) if self.providers.iter().any(|one| one == "openai") => {
                format!("openai/{model}")
            }
            _ => at_server.to_owned(),
        }
    }

    /// The server's configuration, and the keys that its environment holds.
    ///
    /// # Errors
    /// [`Failure::NonRecoverable`] when there is no key for the configured model.
    pub fn for_server(&self) -> Result<(Value, Vec<ModelKey>), Failure> {
        let default = self.at_server(&self.default.to_string())?;
        let (variable, key) = keyed(&self.keys)
            .find(|(provider, _, _)| *provider == self.default.provider)
            .map_or_else(
                || (variable_of(&default.provider), ""),
                |(_, variable, key)| (variable, key),
            );
        if let (None, true, Some(missing)) =
            (&self.base_url, key.is_empty(), key_of(&default.provider))
        {
            return Err(Failure::NonRecoverable {
                advice: format!(
                    "There is no key for {default}. {} Another Model is a parameter of the template.",
                    missing.missing()
                ),
            });
        }
        let endpoint = self.base_url.as_deref().map(|base_url| ModelEndpoint {
            base_url,
            key_variable: variable,
            models: &self.served,
        });
        // All names of an endpoint's providers lead to it, under the server's names.
        let mut enabled: Vec<String> = vec![default.provider.clone()];
        enabled.extend(self.served.iter().map(|model| model.provider.clone()));
        // An endpoint that wants no key still needs the variable to be there.
        let mut held = vec![match (key, self.base_url.as_deref().and_then(host_of)) {
            ("", _) => {
                ModelKey { variable, value: "none".to_owned(), hosts: Vec::new(), endpoint: None }
            }
            (key, host) => ModelKey {
                variable,
                value: key.to_owned(),
                hosts: host.into_iter().collect(),
                endpoint: self.base_url.clone(),
            },
        }];
        for (provider, variable, key) in keyed(&self.keys) {
            // Beside an endpoint of one's own a name of openai's leads to that: OpenAI itself cannot be chosen.
            if self.base_url.is_some() && provider == "openai" {
                continue;
            }
            enabled.push(provider.to_owned());
            let own = HOSTS.iter().find(|(name, _)| *name == provider);
            let hosts = own.map(|(_, host)| (*host).to_owned());
            match held.iter_mut().find(|one| one.variable == variable) {
                Some(one) => one.hosts.extend(hosts),
                None => held.push(ModelKey {
                    variable,
                    value: key.to_owned(),
                    hosts: hosts.into_iter().collect(),
                    endpoint: None,
                }),
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        enabled.retain(|provider| seen.insert(provider.clone()));
        let config = server_config(&default, &enabled, endpoint.as_ref());
        Ok((config, held))
    }
}

fn variable_of(provider: &str) -> &'static str {
    match provider {
        "anthropic" => "ANTHROPIC_API_KEY",
        "openai" | ModelName::COMPATIBLE => "OPENAI_API_KEY",
        "openrouter" => "OPENROUTER_API_KEY",
        _ => ENDPOINT_KEY,
    }
}

/// The key that a provider's models need, where a stack can hold it.
fn key_of(provider: &str) -> Option<Key> {
    match provider {
        ModelName::COMPATIBLE => Some(Key::OpenAiApiKey),
        other => Key::of_model_provider(other),
    }
}

/// Providers for which there is a key: name, variable, key.
fn keyed(keys: &ModelKeys) -> impl Iterator<Item = (&'static str, &'static str, &str)> {
    [
        ("anthropic", keys.anthropic.as_str()),
        ("openai", keys.openai.as_str()),
        ("openrouter", keys.openrouter.as_str()),
    ]
    .into_iter()
    .filter(|(_, key)| !key.is_empty())
    .map(|(provider, key)| (provider, variable_of(provider), key))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{Value, json};

    use super::*;

    fn models(model: &str, further: &[&str], base_url: Option<&str>, keys: ModelKeys) -> Models {
        let settings = ModelSettings {
            model: model.to_owned(),
            models: further.iter().map(ToString::to_string).collect(),
            model_base_url: base_url.map(str::to_owned),
            keys,
        };
        Models::new(&settings).unwrap()
    }

    /// The configuration, and per variable its value and the hosts that it is for.
    fn config(models: &Models) -> (Value, Value) {
        let Ok((config, keys)) = models.for_server() else {
            panic!("there is a key");
        };
        let one = |key: &ModelKey| (key.variable.to_owned(), json!([key.value, key.hosts]));
        let keys = keys.iter().map(one).collect();
        (config, Value::Object(keys))
    }

    #[test]
    fn only_keyed_providers_are_offered() {
        let keys = ModelKeys {
            anthropic: "key-a".to_owned(),
            openrouter: "key-r".to_owned(),
            ..ModelKeys::default()
        };
        let models = models("anthropic/a", &[], None, keys);
        assert_eq!(models.providers(), ["anthropic", "openrouter"]);
        let (config, environment) = config(&models);
        assert_eq!(config["enabled_providers"], json!(["anthropic", "openrouter"]));
        assert_eq!(
            environment,
            json!({
                "ANTHROPIC_API_KEY": ["key-a", ["api.anthropic.com"]],
                "OPENROUTER_API_KEY": ["key-r", ["openrouter.ai"]],
            })
        );
        assert!(!config.to_string().contains("key-"));
    }

    #[test]
    fn sandbox_gets_only_usable_keys() {
        let keys = ModelKeys {
            anthropic: "key-a".to_owned(),
            openai: "key-o".to_owned(),
            openrouter: "key-r".to_owned(),
        };
        let models = models("anthropic/a", &[], Some("https://models.example.com/v1"), keys);
        assert_eq!(models.providers(), ["anthropic", "openrouter"]);
        let (_, environment) = config(&models);
        assert_eq!(
            environment,
            json!({
                "ANTHROPIC_API_KEY": ["key-a", ["models.example.com", "api.anthropic.com"]],
                "OPENROUTER_API_KEY": ["key-r", ["openrouter.ai"]],
            })
        );
    }

    #[test]
    fn model_without_key_advises_operator() {
        let keys = ModelKeys { openai: "key-o".to_owned(), ..ModelKeys::default() };
        let refused = models("anthropic/a", &[], None, keys).for_server();
        let Err(Failure::NonRecoverable { advice }) = refused else {
            panic!("there is no key for it");
        };
        assert!(
            advice.contains("The key anthropic_api_key is missing in the secret WorkerSecret."),
            "{advice}"
        );
    }

    #[test]
    fn custom_endpoint_keeps_model_names() {
        let keys = ModelKeys { openai: "key-o".to_owned(), ..ModelKeys::default() };
        let url = Some("https://models.example.com/v1");
        let models = models("openai/a", &["openai/b"], url, keys);
        assert_eq!(models.providers(), ["openai"]);
        let (config, environment) = config(&models);
        assert_eq!(config["model"], "openai-compatible/a");
        assert_eq!(config["enabled_providers"], json!(["openai-compatible"]));
        let served = &config["provider"]["openai-compatible"];
        assert_eq!(served["options"]["apiKey"], "{env:OPENAI_API_KEY}");
        assert!(served["models"]["a"].is_object() && served["models"]["b"].is_object());
        assert_eq!(environment, json!({ "OPENAI_API_KEY": ["key-o", ["models.example.com"]] }));
        assert_eq!(models.at_server("openai/b").unwrap().to_string(), "openai-compatible/b");
        assert_eq!(models.for_people("openai-compatible/b"), "openai/b");
        assert_eq!(models.for_people("x/b"), "x/b");
    }
}
