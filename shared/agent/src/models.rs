//! The models that turns can use, and what a sandbox's server has to know about them.
//!
//! A chosen model must belong to a vendor for which there is a key, or to the custom endpoint. People use the names of
//! the configuration; that the server needs another provider name for such an endpoint ([`ModelName::COMPATIBLE`]) is
//! hidden here.

use bobbin_core::base::failure::Failure;
use bobbin_core::tenant::keys::Key;
use bobbin_core::tenant::prices::{ModelPrice, ModelPrices};
use bobbin_http::host_of;

use crate::runtime::ModelKey;

/// Hosts of the vendors, which may receive their keys.
const HOSTS: [(&str, &str); 3] = [
    ("anthropic", "api.anthropic.com"),
    ("openai", "api.openai.com"),
    ("openrouter", "openrouter.ai"),
];
/// The variable with the key of a custom endpoint.
const ENDPOINT_KEY: &str = "BOBBIN_MODEL_KEY";

/// A model as `provider/model`; the model's own name may hold slashes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelName {
    /// Its provider.
    pub provider: String,
    /// Model id at the provider.
    pub model: String,
}

impl ModelName {
    /// The provider id of a custom endpoint at the server: OpenCode's loader of `openai` assumes the responses API,
    /// whatever package is configured, and merely compatible endpoints do not have it (measured on 1.18.33).
    pub const COMPATIBLE: &str = "openai-compatible";

    /// Parses `provider/model`.
    ///
    /// # Errors
    /// Describes the expected form.
    pub fn parse(name: &str) -> Result<Self, String> {
        match name.split_once('/') {
            Some((provider, model)) if !provider.is_empty() && !model.is_empty() => {
                Ok(Self { provider: provider.to_owned(), model: model.to_owned() })
            }
            _ => Err(format!(
                "MODEL is {name:?}; expected provider/model, for example anthropic/claude-sonnet-4-5"
            )),
        }
    }

    /// The same model behind a custom endpoint.
    #[must_use]
    pub fn compatible(self) -> Self {
        match self.provider.as_str() {
            "openai" => Self { provider: Self::COMPATIBLE.to_owned(), ..self },
            _ => self,
        }
    }
}

impl std::fmt::Display for ModelName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

/// Keys for the vendors' models; empty ones count as absent.
#[derive(Clone, Default)]
pub struct ModelKeys {
    /// The key for Anthropic's models (`ANTHROPIC_API_KEY` in a sandbox).
    pub anthropic: String,
    /// The key for `OpenAI`'s models, or for a custom endpoint (`OPENAI_API_KEY` in a sandbox).
    pub openai: String,
    /// The key for `OpenRouter`'s models (`OPENROUTER_API_KEY` in a sandbox).
    pub openrouter: String,
}

impl std::fmt::Debug for ModelKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ModelKeys(…)")
    }
}

/// The configured models.
#[derive(Debug, Clone)]
pub struct ModelSettings {
    /// Default model, as provider/model.
    pub model: String,
    /// Further models of the endpoint, as provider/model; without an endpoint all models of a vendor can be chosen.
    pub models: Vec<String>,
    /// Address of an OpenAI-compatible endpoint; `None` uses the vendor's own.
    pub model_base_url: Option<String>,
    /// The keys that pay for the models; empty ones count as absent.
    pub keys: ModelKeys,
    /// Prices that the operator names.
    pub prices: ModelPrices,
}

/// A custom OpenAI-compatible endpoint.
#[derive(Debug, Clone, Copy)]
pub struct ModelEndpoint<'a> {
    /// Its address with the version, such as `https://models.example.com/v1`.
    pub base_url: &'a str,
    /// The variable in the server's environment with its key, so that the configuration contains no secret.
    pub key_variable: &'a str,
    /// The models that it serves.
    pub models: &'a [ModelName],
}

/// What a server has to know of the models.
pub struct ServedModels<'a> {
    /// The default model.
    pub default: ModelName,
    /// The providers whose models can be chosen, including the default's own.
    pub providers: Vec<String>,
    /// The custom endpoint, if there is one.
    pub endpoint: Option<ModelEndpoint<'a>>,
    /// The keys for the server's environment.
    pub keys: Vec<ModelKey>,
    /// Prices of models of these providers, by the server's names.
    pub prices: Vec<(ModelName, ModelPrice)>,
}

/// A chosen model, and how it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelRoute {
    /// Its provider, by the display name.
    pub provider: String,
    /// Its name at the provider.
    pub model: String,
    /// Its name at the server, as provider/model.
    pub at_server: String,
    /// Whether the custom endpoint serves it.
    is_served: bool,
}

/// The models of the stack. The default has none, and every name is the server's own.
#[derive(Default)]
pub struct Models {
    /// The default model.
    default: ModelName,
    /// All models of the custom endpoint, by the server's names; empty without one.
    served: Vec<ModelName>,
    base_url: Option<String>,
    keys: ModelKeys,
    providers: Vec<String>,
    prices: ModelPrices,
}

impl std::fmt::Debug for Models {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Models").field("default", &self.default).finish_non_exhaustive()
    }
}

impl Models {
    /// Models with these keys and this endpoint.
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
        let prices = settings.prices.clone();
        Ok(Self { default, served, base_url, keys: keys.clone(), providers, prices })
    }

    /// Providers with models that can be chosen, the configured one first.
    #[must_use]
    pub fn providers(&self) -> &[String] {
        &self.providers
    }

    /// The price of this model, if the operator names it.
    #[must_use]
    pub fn price(&self, name: &str) -> Option<&ModelPrice> {
        self.prices.get(name)
    }

    /// Resolves a model's name.
    ///
    /// # Errors
    /// It is not a valid name.
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

    /// The custom endpoint, and the variable with its key, for agents that call this provider's models: if the provider
    /// has no key, or its key does not count beside an endpoint.
    #[must_use]
    pub fn endpoint_for(&self, provider: &str) -> Option<(&str, &'static str)> {
        let base_url = self.base_url.as_deref()?;
        let has_own = keyed(&self.keys).any(|(keyed, _, _)| keyed == provider);
        (provider == "openai" || !has_own)
            .then(|| (base_url, variable_of(&self.default.clone().compatible().provider)))
    }

    /// Whether agents that call this provider's models reach this model.
    #[must_use]
    pub fn reaches(&self, provider: &str, route: &ModelRoute) -> bool {
        match self.endpoint_for(provider) {
            Some(_) => route.is_served,
            None => route.provider == provider,
        }
    }

    /// The server's name of a model.
    pub(crate) fn at_server(&self, name: &str) -> Result<ModelName, Failure> {
        let model = ModelName::parse(name).map_err(|reason| Failure::TurnFailed { reason })?;
        Ok(match self.base_url {
            Some(_) => model.compatible(),
            None => model,
        })
    }

    /// The display name of a model of the server.
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

    /// The models, by the server's names, and the keys that it needs.
    ///
    /// # Errors
    /// [`Failure::NonRecoverable`] if there is no key for the configured model.
    pub fn for_server(&self) -> Result<ServedModels<'_>, Failure> {
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
                    "There is no key for {default}. {} The template's parameter Model chooses another model.",
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
        // An endpoint that needs no key still needs the variable to exist.
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
            // With a custom endpoint, names of openai lead to it: OpenAI itself cannot be chosen.
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
        let prices = self.prices.iter().map(|(name, price)| Ok((self.at_server(name)?, *price)));
        let mut prices: Vec<(ModelName, ModelPrice)> = prices.collect::<Result<_, Failure>>()?;
        prices.retain(|(model, _)| enabled.contains(&model.provider));
        Ok(ServedModels { default, providers: enabled, endpoint, keys: held, prices })
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

/// The key that a provider's models need, if a stack can hold it.
fn key_of(provider: &str) -> Option<Key> {
    match provider {
        ModelName::COMPATIBLE => Some(Key::OpenAiApiKey),
        other => Key::of_model_provider(other),
    }
}

/// Providers with a key: name, variable, key.
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
            prices: ModelPrices::new(),
        };
        Models::new(&settings).unwrap()
    }

    fn served(models: &Models) -> ServedModels<'_> {
        let Ok(served) = models.for_server() else {
            panic!("there is a key");
        };
        served
    }

    /// For each variable its value and the hosts that may receive it.
    fn environment(served: &ServedModels<'_>) -> Value {
        let one = |key: &ModelKey| (key.variable.to_owned(), json!([key.value, key.hosts]));
        Value::Object(served.keys.iter().map(one).collect())
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
        let served = served(&models);
        assert_eq!(served.providers, ["anthropic", "openrouter"]);
        assert_eq!(
            environment(&served),
            json!({
                "ANTHROPIC_API_KEY": ["key-a", ["api.anthropic.com"]],
                "OPENROUTER_API_KEY": ["key-r", ["openrouter.ai"]],
            })
        );
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
        assert_eq!(
            environment(&served(&models)),
            json!({
                "ANTHROPIC_API_KEY": ["key-a", ["models.example.com", "api.anthropic.com"]],
                "OPENROUTER_API_KEY": ["key-r", ["openrouter.ai"]],
            })
        );
    }

    #[test]
    fn model_without_key_advises_operator() {
        let keys = ModelKeys { openai: "key-o".to_owned(), ..ModelKeys::default() };
        let models = models("anthropic/a", &[], None, keys);
        let Err(Failure::NonRecoverable { advice }) = models.for_server() else {
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
        let served = served(&models);
        assert_eq!(served.default.to_string(), "openai-compatible/a");
        assert_eq!(served.providers, ["openai-compatible"]);
        let endpoint = served.endpoint.unwrap();
        assert_eq!(endpoint.key_variable, "OPENAI_API_KEY");
        let names: Vec<String> = endpoint.models.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["openai-compatible/a", "openai-compatible/b"]);
        let keys = json!({ "OPENAI_API_KEY": ["key-o", ["models.example.com"]] });
        assert_eq!(environment(&served), keys);
        assert_eq!(models.at_server("openai/b").unwrap().to_string(), "openai-compatible/b");
        assert_eq!(models.for_people("openai-compatible/b"), "openai/b");
        assert_eq!(models.for_people("x/b"), "x/b");
    }

    #[test]
    fn prices_go_by_the_servers_names() {
        let price = json!({"input": 1.25, "output": 10});
        let named = ["openai/a", "anthropic/b", "nobody/c"].map(|name| (name, price.clone()));
        let settings = ModelSettings {
            model: "openai/a".to_owned(),
            models: Vec::new(),
            model_base_url: Some("https://models.example.com/v1".to_owned()),
            keys: ModelKeys { anthropic: "key-a".to_owned(), ..ModelKeys::default() },
            prices: serde_json::from_value(Value::Object(
                named.into_iter().map(|(name, price)| (name.to_owned(), price)).collect(),
            ))
            .unwrap(),
        };
        let models = Models::new(&settings).unwrap();
        let served = served(&models);
        let names: Vec<String> = served.prices.iter().map(|(name, _)| name.to_string()).collect();
        assert_eq!(names, ["anthropic/b", "openai-compatible/a"]);
        assert!(models.price("openai/a").is_some() && models.price("openai/b").is_none());
    }

    #[test]
    fn only_openai_models_become_compatible() {
        let at_home = |name| ModelName::parse(name).expect("valid").compatible().to_string();
        assert_eq!(at_home("openai/gpt-x"), "openai-compatible/gpt-x");
        assert_eq!(at_home("anthropic/claude-x"), "anthropic/claude-x");
    }

    #[test]
    fn model_name_may_contain_slashes() {
        let model = ModelName::parse("openrouter/anthropic/claude-sonnet-4.5").expect("valid");
        assert_eq!(
            (model.provider.as_str(), model.model.as_str()),
            ("openrouter", "anthropic/claude-sonnet-4.5")
        );
        assert!(
            ModelName::parse("claude").is_err()
                && ModelName::parse("/x").is_err()
                && ModelName::parse("x/").is_err()
        );
    }
}
