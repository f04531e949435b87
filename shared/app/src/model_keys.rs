//! The cheapest request that a vendor answers only with a valid key: nothing is generated, nothing is paid.

use std::fmt;

use bobbin_agent::ModelKey;
use bobbin_core::base::secret::Secret;
use bobbin_core::tenant::keys::Key;
use bobbin_http::{AllowedHosts, Http, HttpError, ReceivedAnswer};
use reqwest::{Method, RequestBuilder};
use serde_json::Value;

/// A vendor whose models the agent calls with the operator's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelProvider {
    /// Anthropic: models called `anthropic/…`.
    Anthropic,
    /// OpenAI: models called `openai/…`.
    OpenAi,
    /// `OpenRouter`: models called `openrouter/…`.
    OpenRouter,
}

impl ModelProvider {
    /// All vendors, in the order in which they are listed.
    pub const ALL: [Self; 3] = [Self::Anthropic, Self::OpenAi, Self::OpenRouter];

    /// The vendor of this key; `None` if it is not a vendor's key.
    #[must_use]
    pub const fn of(key: Key) -> Option<Self> {
        match key {
            Key::AnthropicApiKey => Some(Self::Anthropic),
            Key::OpenAiApiKey => Some(Self::OpenAi),
            Key::OpenRouterApiKey => Some(Self::OpenRouter),
            _ => None,
        }
    }

    /// Prefix of its models' names, before the slash.
    #[must_use]
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::OpenRouter => "openrouter",
        }
    }

    /// Base URL of its API.
    #[must_use]
    pub const fn base(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com/v1",
            Self::OpenAi => "https://api.openai.com/v1",
            Self::OpenRouter => "https://openrouter.ai/api/v1",
        }
    }

    const fn path(self) -> &'static str {
        match self {
            Self::Anthropic => "models?limit=1",
            Self::OpenAi => "models",
            // Its list of models is public; this endpoint describes the key.
            Self::OpenRouter => "key",
        }
    }

    fn asked(self, http: &Http, base: &str, key: &Secret) -> Result<RequestBuilder, HttpError> {
        let address = format!("{}/{}", base.trim_end_matches('/'), self.path());
        let request = http.request(Method::GET, &address)?;
        Ok(match self {
            Self::Anthropic => {
                request.header("x-api-key", key.expose()).header("anthropic-version", "2023-06-01")
            }
            Self::OpenAi | Self::OpenRouter => request.bearer_auth(key.expose()),
        })
    }
}

/// A request that checks a key; it can also be sent from elsewhere.
pub struct KeyCheck {
    provider: ModelProvider,
    base: String,
}

impl KeyCheck {
    /// Asks this key's server; `None` if no server to ask is known.
    #[must_use]
    pub fn about(key: &ModelKey) -> Option<Self> {
        if let Some(base) = key.endpoint.clone() {
            // Every server with that protocol lists its models this way.
            let provider = ModelProvider::OpenAi;
            return Some(Self { provider, base });
        }
        let is_for = |provider: &ModelProvider| {
            let host = host_of(provider.base());
            key.hosts.iter().any(|one| one == host)
        };
        let provider = ModelProvider::ALL.into_iter().find(is_for)?;
        let base = provider.base().to_owned();
        Some(Self { provider, base })
    }

    /// URL of the request.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}/{}", self.base.trim_end_matches('/'), self.provider.path())
    }

    /// The header with the key or its placeholder.
    #[must_use]
    pub fn header(&self, key: &str) -> String {
        match self.provider {
            ModelProvider::Anthropic => format!("x-api-key: {key}"),
            ModelProvider::OpenAi | ModelProvider::OpenRouter => {
                format!("authorization: Bearer {key}")
            }
        }
    }

    /// Host of the request.
    #[must_use]
    pub fn host(&self) -> &str {
        host_of(&self.base)
    }

    /// Sends the request from here.
    pub async fn asked(&self, key: &Secret) -> KeyState {
        check_key(self.provider, &self.base, key).await
    }
}

fn host_of(base: &str) -> &str {
    let rest = base.split_once("://").map_or(base, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

impl fmt::Display for ModelProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anthropic => "Anthropic",
            Self::OpenAi => "OpenAI",
            Self::OpenRouter => "OpenRouter",
        })
    }
}

/// A vendor's verdict on a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyState {
    /// Valid; with further details from the vendor, in a few words.
    Valid(String),
    /// Refused: revoked, or somebody else's.
    Refused,
    /// Valid, but not permitted to ask this; it may still work for models.
    Restricted,
    /// Unknown: try again.
    Unclear(String),
}

/// Checks a key with its vendor.
pub async fn check_key(provider: ModelProvider, base: &str, key: &Secret) -> KeyState {
    let answer = match ask(provider, base, key).await {
        Ok(answer) => answer,
        Err(error) => return KeyState::Unclear(error.to_string()),
    };
    judged(&answer, |said| remaining(provider, said))
}

/// Checks a key with an OpenAI-compatible endpoint, by listing its models.
pub async fn check_endpoint(base: &str, key: &Secret) -> KeyState {
    match models(base, Some(key)).await {
        Ok(answer) => judged(&answer, |_| String::new()),
        Err(error) => KeyState::Unclear(error.to_string()),
    }
}

fn judged(answer: &ReceivedAnswer, remaining: impl Fn(&Value) -> String) -> KeyState {
    match answer.status {
        200..=299 => match answer.json::<Value>() {
            Some(said) => KeyState::Valid(remaining(&said)),
            None => KeyState::Unclear("the answer is not JSON".to_owned()),
        },
        401 => KeyState::Refused,
        403 => KeyState::Restricted,
        status => KeyState::Unclear(format!("status {status}")),
    }
}

async fn models(base: &str, key: Option<&Secret>) -> Result<ReceivedAnswer, HttpError> {
    let http = Http::new(base, AllowedHosts::Named(Vec::new()))?;
    let address = format!("{}/models", base.trim_end_matches('/'));
    let mut request = http.request(Method::GET, &address)?;
    if let Some(key) = key {
        request = request.bearer_auth(key.expose());
    }
    http.send(request).await
}

async fn ask(
    provider: ModelProvider,
    base: &str,
    key: &Secret,
) -> Result<ReceivedAnswer, HttpError> {
    let http = Http::new(base, AllowedHosts::Named(Vec::new()))?;
    http.send(provider.asked(&http, base, key)?).await
}

/// Only numbers are shown: OpenRouter labels a key with a part of it.
fn remaining(provider: ModelProvider, said: &Value) -> String {
    match provider {
        ModelProvider::OpenRouter => match said["data"]["limit_remaining"].as_f64() {
            Some(left) => format!("${left:.2} left to spend"),
            None => "no spending limit".to_owned(),
        },
        ModelProvider::Anthropic | ModelProvider::OpenAi => String::new(),
    }
}

/// The models that an OpenAI-compatible endpoint offers, by its own names.
///
/// # Errors
/// Why they are not known: no answer, or a refusal.
pub async fn offered(base: &str, key: Option<&Secret>) -> Result<Vec<String>, String> {
    let answer = models(base, key).await.map_err(|e| e.to_string())?;
    if !answer.ok() {
        return Err(format!("status {}", answer.status));
    }
    let said: Value = answer.json().ok_or("the answer is not JSON")?;
    let list = said["data"].as_array().into_iter().flatten();
    Ok(list.filter_map(|model| model["id"].as_str().map(str::to_owned)).collect())
}
