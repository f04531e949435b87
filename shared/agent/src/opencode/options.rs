//! Options of an OpenCode server: models (`GET /config/providers`) and agents (`GET /agent`).
//!
//! Only names are kept: the first of the two answers contains the vendors' keys in plain text.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::types::lenient;

/// The answer of `GET /config/providers`.
#[derive(Debug, Deserialize)]
pub struct ConfigProviders {
    providers: Vec<ProviderEntry>,
}

#[derive(Debug, Deserialize)]
struct ProviderEntry {
    id: String,
    #[serde(default)]
    models: BTreeMap<String, ModelEntry>,
}

#[derive(Debug, Deserialize)]
struct ModelEntry {
    #[serde(default, deserialize_with = "lenient")]
    cost: ListedCost,
}

/// US dollars for a million tokens; 0 where OpenCode knows no price.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListedCost {
    input: f64,
    output: f64,
}

/// One entry of the answer of `GET /agent`.
#[derive(Debug, Deserialize)]
pub struct AgentEntry {
    name: String,
    #[serde(default)]
    mode: String,
    #[serde(default)]
    hidden: bool,
}

/// The models, as provider/model.
#[must_use]
pub fn models(answer: &ConfigProviders) -> Vec<String> {
    let each = answer.providers.iter().flat_map(|provider| {
        let names = provider.models.keys();
        names.map(|model| format!("{}/{model}", provider.id))
    });
    each.collect()
}

/// Those of them that OpenCode counts as free, wholly or in part, because it knows no price or because they are free.
#[must_use]
pub fn unpriced(answer: &ConfigProviders) -> Vec<String> {
    let each = answer.providers.iter().flat_map(|provider| {
        let free = |cost: &ListedCost| cost.input <= 0.0 || cost.output <= 0.0;
        let models = provider.models.iter().filter(move |(_, model)| free(&model.cost));
        models.map(|(name, _)| format!("{}/{name}", provider.id))
    });
    each.collect()
}

/// The agents that can be given a prompt, without those that only other agents call.
#[must_use]
pub fn agents(answer: &[AgentEntry]) -> Vec<String> {
    let prompted = |agent: &&AgentEntry| agent.mode != "subagent" && !agent.hidden;
    let each = answer.iter().filter(prompted);
    each.map(|agent| agent.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_without_price_are_named() {
        let answer = r#"{"providers":[{"id":"openai","models":{
            "a":{"cost":{"input":1.25,"output":10,"cache":{"read":0.1,"write":0},"tiers":[]}},
            "b":{"cost":{"input":0,"output":0,"cache":{"read":0,"write":0}}},
            "c":{"cost":"odd"},"d":{},"e":{"cost":{"input":0,"output":2}}}}]}"#;
        let read: ConfigProviders = serde_json::from_str(answer).expect("valid");
        assert_eq!(unpriced(&read), ["openai/b", "openai/c", "openai/d", "openai/e"]);
    }

    #[test]
    fn options_list_names_without_keys() {
        let answer = r#"{"providers":[{"id":"anthropic","key":"sk-secret","options":{"apiKey":"sk-secret"},
            "models":{"b":{"id":"b"},"a":{}}},{"id":"x","models":{"y/z":{}}}],"default":{"x":"y/z"}}"#;
        let read: ConfigProviders = serde_json::from_str(answer).expect("valid");
        assert_eq!(models(&read), ["anthropic/a", "anthropic/b", "x/y/z"]);
        assert!(!format!("{read:?}").contains("secret"));
        let answer = r#"[{"name":"build","mode":"primary"},{"name":"explore","mode":"subagent"},
            {"name":"title","mode":"primary","hidden":true},{"name":"own","mode":"all"}]"#;
        let read: Vec<AgentEntry> = serde_json::from_str(answer).expect("valid");
        assert_eq!(agents(&read), ["build", "own"]);
    }
}
