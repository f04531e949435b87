//! Keys with a limit of money: OpenRouter's own client and Bobbin's say the same to the stand-in, and hear what they
//! expect.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::extract::{Request, State};
use axum::response::Response;
use bobbin_agent::openrouter::{KeyMaker, KeyMakerError, MadeKey};
use bobbin_core::base::secret::Secret;
use bobbin_local_model::Model;
use bobbin_tests::tools;
use serde_json::{Value, json};

const NAME: &str = "bobbin 9f2c g1 m1 t0 discord:1:2";
/// 2099-11-22T20:00:00Z.
const ENDS_MS: u64 = 4_099_060_800_000;

fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

fn maker(base: &str, key: &str) -> KeyMaker {
    KeyMaker::new(base, Secret::from(key.to_owned())).unwrap()
}

/// Status and message of a request to the model with this key.
async fn asked(model: &Model, key: &str) -> (u16, Value) {
    let body = json!({"model": "any", "messages": [{"role": "user", "content": "long: 4000"}]});
    let url = format!("{}/chat/completions", model.base_url());
    let answer = client().post(url).bearer_auth(key).json(&body).send().await.unwrap();
    let status = answer.status().as_u16();
    let said: Value = answer.json().await.unwrap();
    (status, said["error"]["message"].clone())
}

async fn priced(model: &Model, usd_per_million: f64) {
    let url = format!("{}/price", model.base_url().trim_end_matches("/v1"));
    let body = json!({ "usd_per_million": usd_per_million });
    assert_eq!(client().put(url).json(&body).send().await.unwrap().status(), 204);
}

/// What a key has spent, once that is more than before: it is booked after the answer.
async fn spent(maker: &KeyMaker, hash: &str, before: f64) -> f64 {
    for _ in 0..1_000 {
        let all = maker.list().await.unwrap();
        let usage = all.iter().find(|one| one.hash == hash).unwrap().usage;
        if usage > before {
            return usage;
        }
        tokio::task::yield_now().await;
    }
    panic!("nothing was booked");
}

/// Passes requests on, and keeps what was asked and with which body.
async fn recorded(base: String) -> (String, Arc<Mutex<Vec<Value>>>) {
    type Recorder = (String, Arc<Mutex<Vec<Value>>>);
    async fn pass(State((base, seen)): State<Recorder>, request: Request) -> Response {
        let (head, body) = request.into_parts();
        let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
        let target = head.uri.path_and_query().unwrap().as_str().to_owned();
        let said: Value = serde_json::from_slice(&body).unwrap_or_default();
        seen.lock().unwrap().push(json!([head.method.as_str(), head.uri.path(), said]));
        let mut request = client().request(head.method, format!("{base}{target}")).body(body);
        for name in ["authorization", "content-type"] {
            if let Some(value) = head.headers.get(name) {
                request = request.header(name, value);
            }
        }
        let answer = request.send().await.unwrap();
        let status = answer.status();
        let mut passed = Response::new(axum::body::Body::from(answer.bytes().await.unwrap()));
        *passed.status_mut() = status;
        passed.headers_mut().insert("content-type", "application/json".parse().unwrap());
        passed
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let routes = axum::Router::new().fallback(pass).with_state((base, Arc::clone(&seen)));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (address, seen)
}

/// Without what differs by nature: ids in paths, and how a time is written.
fn general(seen: &[Value], method: &str) -> Vec<Value> {
    let of_method = seen.iter().filter(|one| one[0] == method);
    let general = of_method.map(|one| {
        let mut one = one.clone();
        let path = one[1].as_str().unwrap();
        let depth = path.split('/').count();
        one[1] = json!(if depth > 3 { "/v1/keys/HASH" } else { path });
        if let Some(ends) = one[2]["expires_at"].as_str() {
            one[2]["expires_at"] = json!(ends.replace(".000Z", "Z"));
        }
        one
    });
    general.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn both_clients_say_the_same() {
    let model = Model::start(0).await.unwrap();
    let origin = model.base_url().trim_end_matches("/v1").to_owned();
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk");
    let packages = tools::node("openrouter", &sdk).unwrap();
    let (api, by_sdk) = recorded(origin.clone()).await;
    let given = json!({
        "api": api, "packages": packages, "management_key": "manager", "name": NAME, "expires_ms": ENDS_MS,
    });
    let mut script = tools::script("node");
    script.arg(sdk.join("walk.mjs"));
    let found: Value = tools::found(&mut script, &given).await;
    assert_eq!(
        found,
        json!({
            "made": [NAME, 2.5, 2.5, true], "shown_once": [true, false], "twins": 2, "deleted": true,
            "changed": [format!("{NAME} again"), 1.5, true], "unlimited": [null, null],
            "own": [false, false],
            "no_manager": ["UnauthorizedResponseError", 401, "Invalid management key"],
            "unknown": ["NotFoundResponseError", 404, "API key not found"],
        })
    );

    let (api, by_us) = recorded(origin).await;
    let maker = maker(&api, "manager");
    let made = maker.make(NAME, 2_500_000, ENDS_MS).await.unwrap();
    let twin = maker.make(NAME, 2_500_000, ENDS_MS).await.unwrap();
    maker.delete(&twin.hash).await.unwrap();
    let all = maker.list().await.unwrap();
    let own = all.iter().find(|one| one.hash == made.hash).unwrap();
    maker.limit(own, &format!("{NAME} again"), Some(1_500_000)).await.unwrap();
    maker.limit(own, NAME, None).await.unwrap();
    let (by_sdk, by_us) = (by_sdk.lock().unwrap().clone(), by_us.lock().unwrap().clone());
    for method in ["POST", "PATCH", "DELETE"] {
        assert_eq!(general(&by_us, method), general(&by_sdk, method), "{method}");
    }
    model.stop().await;
}

#[tokio::test]
async fn key_pays_until_its_limit_is_spent() {
    let model = Model::start(0).await.unwrap();
    let maker = maker(&model.base_url(), "manager");
    let MadeKey { hash, value } = maker.make(NAME, 50_000, ENDS_MS).await.unwrap();
    assert!(!format!("{value:?} {:?}", maker.list().await).contains(value.expose()));
    priced(&model, 100.0).await;
    // A thousand tokens are a tenth of a dollar: this one is finished all the same.
    assert_eq!(asked(&model, value.expose()).await, (200, Value::Null));
    let usage = spent(&maker, &hash, 0.0).await;
    assert!(usage > 0.05, "{usage}");
    let refused =
        "Key limit exceeded (total limit). Manage it using https://openrouter.ai/settings/keys";
    assert_eq!(asked(&model, value.expose()).await, (403, json!(refused)));
    // Raised, it goes on where it was.
    let all = maker.list().await.unwrap();
    maker.limit(&all[0], "another name", Some(50_000)).await.unwrap();
    assert_eq!(asked(&model, value.expose()).await.0, 200);
    let all = maker.list().await.unwrap();
    assert_eq!((all[0].name.as_str(), all[0].limit), ("another name", Some(usage + 0.05)));
    maker.delete(&hash).await.unwrap();
    maker.delete(&hash).await.unwrap();
    assert_eq!(asked(&model, value.expose()).await, (401, json!("User not found.")));
    assert_eq!(asked(&model, "any other key").await.0, 200);
    model.stop().await;
}

#[tokio::test]
async fn ended_key_opens_nothing() {
    let model = Model::start(0).await.unwrap();
    let maker = maker(&model.base_url(), "manager");
    let MadeKey { hash, value } = maker.make(NAME, 50_000, 1_000).await.unwrap();
    assert_eq!(asked(&model, value.expose()).await.0, 401);
    let all = maker.list().await.unwrap();
    assert_eq!(all.iter().map(|one| &one.hash).collect::<Vec<_>>(), [&hash], "it stays listed");
    model.stop().await;
}

#[tokio::test]
async fn list_goes_beyond_one_page() {
    let model = Model::start(0).await.unwrap();
    let maker = maker(&model.base_url(), "manager");
    for nth in 0..201 {
        maker.make(&nth.to_string(), 50_000, ENDS_MS).await.unwrap();
    }
    let names: std::collections::BTreeSet<String> =
        maker.list().await.unwrap().into_iter().map(|one| one.name).collect();
    assert_eq!(names.len(), 201);
    model.stop().await;
}

#[tokio::test]
async fn refusals_and_outages_are_told_apart() {
    let model = Model::start(0).await.unwrap();
    let base = model.base_url();
    let manager = maker(&base, "manager");
    let made = manager.make(NAME, 50_000, ENDS_MS).await.unwrap();
    let refused = maker(&base, made.value.expose()).list().await;
    assert_eq!(refused, Err(KeyMakerError::Refused));
    assert!(!format!("{manager:?}").contains("\"manager\""));
    model.stop().await;
    let away = manager.list().await.unwrap_err();
    assert!(matches!(&away, KeyMakerError::Failed(why) if why.contains("127.0.0.1")), "{away}");
}
