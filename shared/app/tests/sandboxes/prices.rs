//! What a turn costs: its tokens at the prices that the real OpenCode lists.

use serde_json::{Value, json};

use super::workspaces::server;
use super::*;

/// A model of OpenCode's own list, which the model's server speaks with by Anthropic's protocol: that one tells what is
/// put into a cache.
const TIERED: &str = "tiered-1";
/// One of the same prices, for which the operator names another.
const FLAT: &str = "tiered-2";
/// Dollars for a million tokens.
const OPERATORS: (f64, f64, f64) = (1_000.0, 2_000.0, 0.5);

/// A prompt, and what it costs in millionths of a dollar.
type Priced = (&'static str, u64);

/// 3, 15, 0.3 and 3.75 dollars for what is read, written, from a cache and into one; beyond 200,000 tokens read 6,
/// 22.5, 0.6 and 7.5, beyond 500,000 tokens 9, 30, 0.9 and 11.25.
const BY_TIERS: [Priced; 5] = [
    ("tokens: 1000 400 100 50\necho: short", 1_500 + 750 + 120 + 375),
    ("tokens: 200000 150000 20000 33\necho: up to it", 90_000 + 495 + 45_000 + 75_000),
    ("tokens: 200001 150000 20000 8\necho: beyond it", 180_006 + 180 + 90_000 + 150_000),
    ("tokens: 600000 500000 40000 100\necho: far", 540_000 + 3_000 + 450_000 + 450_000),
    (
        "tokens: 1000 0 0 10\nrun: ls\ntokens: 250000 200000 10000 500\necho: two steps",
        3_150 + 240_000 + 11_250 + 120_000 + 75_000,
    ),
];
/// By [`OPERATORS`].
const BY_OPERATOR: [Priced; 2] = [
    ("tokens: 3000 2000 0 10\necho: cached", 1_000_000 + 20_000 + 1_000),
    ("tokens: 3000 0 0 1\nrun: ls\ntokens: 4000 4000 0 1\necho: steps", 3_002_000 + 4_000),
];
/// The same, for what would be beyond a tier: a price that is named replaces them all.
const BEYOND: Priced = ("tokens: 300000 250000 0 10\necho: long", 50_000_000 + 20_000 + 125_000);

/// OpenCode's list, as it would fetch it.
fn catalog() -> Value {
    let cost = |input: f64, output: f64| json!({"input": input, "output": output, "cache_read": input / 10.0, "cache_write": input * 1.25});
    let tier = |input: f64, output: f64, size: u64| {
        let mut tier = cost(input, output);
        tier["tier"] = json!({"type": "context", "size": size});
        tier
    };
    let mut tiered = cost(3.0, 15.0);
    tiered["tiers"] = json!([tier(6.0, 22.5, 200_000), tier(9.0, 30.0, 500_000)]);
    tiered["context_over_200k"] = cost(6.0, 22.5);
    let model = |id: &str, package: &str| {
        json!({"id": id, "name": id, "release_date": "2026-01-01", "attachment": false, "reasoning": false,
            "temperature": false, "tool_call": true, "cost": tiered.clone(), "provider": {"npm": package},
            "modalities": {"input": ["text"], "output": ["text"]}, "limit": {"context": 1_000_000, "output": 8_192}})
    };
    let anthropics = "@ai-sdk/anthropic";
    let models = json!({TIERED: model(TIERED, anthropics), FLAT: model(FLAT, anthropics)});
    json!({"scripted": {"id": "scripted", "name": "scripted", "env": [], "npm": "@ai-sdk/openai-compatible", "models": models}})
}

/// What OpenCode's server answers.
async fn told(scene: &Scene, path: &str) -> Value {
    let (http, endpoint, password) = server(scene).await;
    let address = format!("{}{path}", endpoint.url);
    let mut request = http.request(reqwest::Method::GET, &address).unwrap();
    request = request.basic_auth("opencode", Some(password));
    for (name, value) in endpoint.headers {
        request = request.header(name, value);
    }
    http.send(request).await.unwrap().json().unwrap()
}

/// Tokens at these prices, exactly, in millionths of a dollar.
fn at_prices(tokens: &Value, cost: &Value) -> u64 {
    let count = |place: &str| tokens.pointer(place).unwrap().as_u64().unwrap();
    let (input, read, written) = (count("/input"), count("/cache/read"), count("/cache/write"));
    let context = input + read + written;
    let tiers = cost["tiers"].as_array().into_iter().flatten();
    let size = |tier: &Value| tier["tier"]["size"].as_u64().unwrap();
    let beyond = tiers.filter(|tier| context > size(tier)).max_by_key(|tier| size(tier));
    let price = |place: &str| {
        let dollars = beyond.unwrap_or(cost).pointer(place).unwrap().as_f64().unwrap();
        (dollars * 1_000_000.0).round() as u64
    };
    let parts = [
        input * price("/input"),
        (count("/output") + count("/reasoning")) * price("/output"),
        read * price("/cache/read"),
        written * price("/cache/write"),
    ];
    (parts.iter().sum::<u64>() + 500_000) / 1_000_000
}

/// What Bobbin counts for each step is its tokens at the prices of `/config/providers`: by the length of the context,
/// and cached tokens at theirs.
pub(super) async fn a_step_costs_its_tokens_at_the_listed_prices(scene: &mut Scene) {
    let (input, output, cache_read) = OPERATORS;
    let price = json!({"input": input, "output": output, "cache_read": cache_read});
    let prices = json!({format!("scripted/{MODEL_ID}"): price, format!("scripted/{FLAT}"): price});
    let priced =
        ModelSettings { prices: serde_json::from_value(prices).unwrap(), ..models(&scene.model) };
    let sandboxes = Sandboxes::new(
        settings("http://127.0.0.1:1"),
        at(&scene.provider, STACK, STACK_ID),
        runtime(&priced),
    );
    let known = std::mem::replace(&mut scene.sandboxes, sandboxes.unwrap());
    let place = "${XDG_CACHE_HOME:-$HOME/.cache}/opencode";
    printed(scene, &format!("mkdir -p {place}; printf %s '{}' >{place}/models.json", catalog()))
        .await;
    assert_eq!(scene.ensure_server(true).await, Event::Healthy);
    let offer = scene.sandboxes.options(&scene.sandbox, GENERATION).await.unwrap();
    assert_eq!(offer.unpriced, Vec::<String>::new());
    in_a_session(scene).await;
    let by_tiers = BY_TIERS.map(|one| (TIERED, one));
    let by_operator = BY_OPERATOR.map(|one| (MODEL_ID, one));
    // The longest contexts last: a model with less room would have them summarised.
    let cases = by_operator.into_iter().chain([(FLAT, BEYOND)]).chain(by_tiers);
    let listed = told(scene, "/config/providers").await;
    for (number, (model, (text, expected))) in cases.enumerate() {
        scene.model_name = format!("scripted/{model}");
        let ids = scene.send(&format!("cost-{number}"), text, FIRST).await;
        let answer = scene.finished(scene.follow(&ids)).await;
        let messages = told(scene, &format!("/session/{}/message", scene.session)).await;
        let is_step = |one: &&Value| one["info"]["parentID"] == ids.message.as_str();
        let steps: Vec<&Value> = messages.as_array().unwrap().iter().filter(is_step).collect();
        let of_provider = &listed["providers"][0]["models"][model]["cost"];
        let sum: u64 =
            steps.iter().map(|step| at_prices(&step["info"]["tokens"], of_provider)).sum();
        let counted = answer.usage.cost_micro_usd;
        assert_eq!((counted, sum), (expected, expected), "{model}, {text}: {steps:#?}");
    }
    assert_eq!(listed["providers"][0]["models"][FLAT]["cost"]["tiers"], Value::Null);
    scene.model_name = format!("scripted/{MODEL_ID}");
    scene.sandboxes = known;
    printed(scene, &format!("rm {place}/models.json")).await;
    assert_eq!(scene.ensure_server(true).await, Event::Healthy);
}
