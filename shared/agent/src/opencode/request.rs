//! Request bodies for OpenCode, and the configuration of its server.

use bobbin_core::tenant::prices::{ModelPrice, Price};
use serde_json::{Value, json};

use crate::models::{ModelEndpoint, ModelName};
use crate::runtime::ConversationKey;

/// The version of OpenCode on which everything here was measured.
pub const VERSION: &str = "1.18.33";

/// Body of `POST /session`. With a title, no model call is needed to invent one.
#[must_use]
pub fn create_session(conversation: ConversationKey<'_>) -> Value {
    let thread = conversation.thread.to_string();
    json!({ "title": conversation.title(), "metadata": { "thread": thread } })
}

/// Body of `POST /permission/{id}/reply`; `reply` is `once`, `always` or `reject`.
#[must_use]
pub fn permission_reply(reply: &str) -> Value {
    json!({ "reply": reply })
}

/// Body of `POST /question/{id}/reply`: one list of labels per question.
#[must_use]
pub fn question_reply(answers: &[Vec<String>]) -> Value {
    json!({ "answers": answers })
}

/// The server's configuration (`OPENCODE_CONFIG_CONTENT`). Permissions stay OpenCode's own: everything inside the
/// project is allowed; a path outside it and `.env` files need permission.
///
/// `model` is the default; `providers` are those whose models can be chosen, including its own; `prices` replace
/// OpenCode's own.
#[must_use]
pub fn server_config(
    model: &ModelName,
    providers: &[String],
    endpoint: Option<&ModelEndpoint<'_>>,
    prices: &[(ModelName, ModelPrice)],
) -> Value {
    let name = model.to_string();
    let mut config = json!({
        "model": name, "small_model": name, "enabled_providers": providers,
        "autoupdate": false, "share": "disabled", "lsp": false, "formatter": false,
    });
    if let Some(endpoint) = endpoint {
        for model in endpoint.models {
            let provider = &mut config["provider"][&model.provider];
            provider["npm"] = "@ai-sdk/openai-compatible".into();
            provider["name"] = model.provider.as_str().into();
            provider["options"] = json!({
                "baseURL": endpoint.base_url,
                "apiKey": format!("{{env:{}}}", endpoint.key_variable),
            });
            provider["models"][&model.model] = json!({
                "name": model.model, "tool_call": true, "attachment": true,
                "modalities": { "input": ["text", "image"], "output": ["text"] },
                "limit": { "context": 128_000, "output": 8_192 },
            });
        }
    }
    for (model, price) in prices {
        config["provider"][&model.provider]["models"][&model.model]["cost"] = cost(price);
    }
    config
}

fn cost(price: &ModelPrice) -> Value {
    let dollars = |price: Price| Value::from(f64::from(price));
    let mut cost = json!({ "input": dollars(price.input), "output": dollars(price.output) });
    // OpenCode counts nothing for what has no price.
    for (name, cached) in [("cache_read", price.cache_read), ("cache_write", price.cache_write)] {
        cost[name] = dollars(cached.unwrap_or(price.input));
    }
    cost
}

/// Environment for a quiet start without downloads.
pub const QUIET_ENVIRONMENT: [(&str, &str); 5] = [
    ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
    ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
    ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
    ("OPENCODE_DISABLE_SHARE", "1"),
    ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
];

/// Keeps a repository from configuring the agent that works in it: its plugins would run beside the model keys
/// (measured on 1.18.33: a script in `.opencode/plugin` or `.opencode/plugins` reads them at the first session). The
/// first variable still allows its `.claude/skills` and `.agents/skills`, also as commands.
pub const WITHOUT_PROJECT_CONFIG: [(&str, &str); 2] =
    [("OPENCODE_DISABLE_PROJECT_CONFIG", "1"), ("OPENCODE_DISABLE_EXTERNAL_SKILLS", "1")];

/// Content of `package-lock.json` in a configuration directory (beside an empty `node_modules`): keeps OpenCode from
/// installing its plugin package, the only download that no variable disables.
#[must_use]
pub fn plugin_marker() -> String {
    json!({ "packages": { "": { "dependencies": { "@opencode-ai/plugin": VERSION } } } })
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_never_contains_keys() {
        let model = ModelName::parse("scripted/scripted-1").expect("valid");
        let other = ModelName::parse("scripted/scripted-2").expect("valid");
        let endpoint = ModelEndpoint {
            base_url: "http://127.0.0.1:1/v1",
            key_variable: "MODEL_KEY",
            models: &[model.clone(), other],
        };
        let providers = ["scripted".to_owned(), "anthropic".to_owned()];
        let config = server_config(&model, &providers, Some(&endpoint), &[]);
        assert_eq!(config["provider"]["scripted"]["options"]["apiKey"], "{env:MODEL_KEY}");
        let models = config["provider"]["scripted"]["models"].as_object();
        let models: Vec<&String> = models.expect("an object").keys().collect();
        assert_eq!(models, ["scripted-1", "scripted-2"]);
        assert_eq!(config["enabled_providers"], json!(providers));
        assert!(server_config(&model, &providers, None, &[]).get("provider").is_none());
    }

    #[test]
    fn named_prices_are_in_opencodes_shape() {
        let openai = ModelName::parse("openai/gpt-x").expect("valid");
        let own = ModelName::parse("scripted/scripted-1").expect("valid");
        let endpoint = ModelEndpoint {
            base_url: "http://127.0.0.1:1/v1",
            key_variable: "MODEL_KEY",
            models: std::slice::from_ref(&own),
        };
        let price = |text: &str| serde_json::from_str::<ModelPrice>(text).expect("a price");
        let prices = [
            (openai, price(r#"{"input":1.25,"output":10,"cache_read":0.125,"cache_write":0}"#)),
            (own.clone(), price(r#"{"input":0.25,"output":0.5}"#)),
        ];
        let providers = ["scripted".to_owned(), "openai".to_owned()];
        let config = server_config(&own, &providers, Some(&endpoint), &prices);
        assert_eq!(
            config["provider"]["openai"],
            json!({"models": {"gpt-x": {"cost": {
                "input": 1.25, "output": 10.0, "cache_read": 0.125, "cache_write": 0.0,
            }}}})
        );
        let own = &config["provider"]["scripted"]["models"]["scripted-1"];
        // What has no price of its own is not free.
        let cost = json!({"input": 0.25, "output": 0.5, "cache_read": 0.25, "cache_write": 0.25});
        assert_eq!(own["cost"], cost);
        assert_eq!(own["name"], "scripted-1");
        let Some(spec) = bobbin_rules::description("opencode-1.18.33-openapi.json") else {
            return;
        };
        bobbin_rules::conforms(&spec, "/components/schemas/Config", &config);
    }
}
