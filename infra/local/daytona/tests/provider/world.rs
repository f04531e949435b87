//! A provider in a folder of its own, and a plain HTTP client for it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bobbin_local_daytona::{LocalDaytona, LocalDaytonaSettings};
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};

pub const KEY: &str = "dtn_test";
const WAIT_MS_MAX: u64 = 30_000;

pub struct World {
    pub provider: LocalDaytona,
    pub http: Client,
    pub folder: PathBuf,
}

/// A folder that no other test uses; the next run of the same process id starts it empty.
pub fn fresh_folder(name: &str) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder =
        std::env::temp_dir().join(format!("bobbin-daytona-{name}-{}-{count}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

pub fn settings(folder: &std::path::Path) -> LocalDaytonaSettings {
    let mut settings = LocalDaytonaSettings::new(folder.to_owned(), KEY.to_owned());
    settings.run.init = Some(PathBuf::from(env!("CARGO_BIN_EXE_bobbin-daytona")));
    settings.run.transition_ms = 30;
    settings.run.stop_grace_ms = 2_000;
    settings
}

pub fn client() -> Client {
    // Already installed by another test of this process: just as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(Duration::from_secs(60))
        .build()
        .unwrap()
}

impl World {
    pub async fn start(name: &str) -> Self {
        Self::with(settings(&fresh_folder(name))).await
    }

    /// One whose sandboxes share this program's loopback, so that a server of the test's stands for one inside.
    pub async fn sharing(name: &str) -> Self {
        let mut settings = settings(&fresh_folder(name));
        settings.run.confine = false;
        Self::with(settings).await
    }

    pub async fn with(settings: LocalDaytonaSettings) -> Self {
        let folder = settings.run.state_dir.clone();
        World { provider: LocalDaytona::start(settings).await.unwrap(), http: client(), folder }
    }

    pub async fn end(self) {
        self.provider.stop().await;
        std::fs::remove_dir_all(self.folder).unwrap();
    }

    pub fn root(&self) -> String {
        self.provider.api_url().trim_end_matches("/api").to_owned()
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.root())).bearer_auth(KEY)
    }

    /// Sends and reads the answer as JSON; `Null` when there is none.
    pub async fn send(&self, request: RequestBuilder) -> (StatusCode, Value) {
        let response = request.send().await.unwrap();
        let status = response.status();
        (status, serde_json::from_slice(&response.bytes().await.unwrap()).unwrap_or(Value::Null))
    }

    pub async fn get(&self, path: &str) -> (StatusCode, Value) {
        self.send(self.request(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        self.send(self.request(Method::POST, path).json(&body)).await
    }

    /// Removes what is there, and answers the status.
    pub async fn delete(&self, path: &str) -> StatusCode {
        self.send(self.request(Method::DELETE, path)).await.0
    }

    /// Reads a path and expects this answer.
    pub async fn answers(&self, path: &str, expected: Value) {
        assert_eq!(self.get(path).await.1, expected, "{path}");
    }

    /// A call about a sandbox that is not refused.
    pub async fn act(&self, id: &str, verb: &str) -> Value {
        let path = format!("/api/sandbox/{id}/{verb}");
        let (status, answer) = self.post(&path, json!({})).await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// A started sandbox with nothing but a name; answers its id.
    pub async fn sandbox(&self, name: &str) -> String {
        self.create(json!({ "name": name })).await
    }

    /// A started sandbox as it is asked for; answers its id.
    pub async fn create(&self, body: Value) -> String {
        let (status, created) = self.post("/api/sandbox", body).await;
        assert_eq!(status, 200, "{created}");
        let id = created["id"].as_str().unwrap().to_owned();
        self.reach(&id, "started").await;
        id
    }

    /// Waits until the sandbox is in this state.
    pub async fn reach(&self, id: &str, state: &str) -> Value {
        let bound = Instant::now() + Duration::from_millis(WAIT_MS_MAX);
        loop {
            let (status, seen) = self.get(&format!("/api/sandbox/{id}")).await;
            if seen["state"] == state {
                return seen;
            }
            assert!(Instant::now() < bound, "{id} is {status} {seen}, not {state}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub async fn gone(&self, id: &str) {
        wait_for("404", async || self.get(&format!("/api/sandbox/{id}")).await.0 == 404).await;
    }

    pub async fn exec(&self, id: &str, command: &str) -> Value {
        let body = json!({ "command": command, "timeout": 20 });
        let (status, answer) = self.post(&format!("/toolbox/{id}/process/execute"), body).await;
        assert_eq!(status, 200, "{answer}");
        answer
    }

    pub async fn arm(&self, fault: Value) {
        let (status, answer) = self.post("/_control/faults", json!({ "faults": [fault] })).await;
        assert_eq!(status, 200, "{answer}");
    }

    pub async fn advance(&self, minutes: u64) {
        let (status, answer) =
            self.post("/_control/clock", json!({ "advance_ms": minutes * 60_000 })).await;
        assert_eq!(status, 200, "{answer}");
    }
}

/// Polls until the condition holds.
pub async fn wait_for(what: &str, condition: impl AsyncFn() -> bool) {
    let bound = Instant::now() + Duration::from_millis(WAIT_MS_MAX);
    while !condition().await {
        assert!(Instant::now() < bound, "waited too long for: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Daytona's own schemas, from the folder that `BOBBIN_SPECS` names.
pub struct Specification {
    document: Option<(Value, &'static str)>,
}

impl Specification {
    /// `daytona-api.json` (OpenAPI 3) or `daytona-toolbox.json` (Swagger 2).
    pub fn read(file: &str) -> Self {
        let Some(mut document) = bobbin_rules::description(file) else {
            return Specification { document: None };
        };
        let place =
            if document["swagger"].is_string() { "definitions" } else { "components/schemas" };
        allow_null(&mut document);
        Specification { document: Some((document, place)) }
    }

    /// Panics with the differences between a value and its schema.
    pub fn check(&self, schema: &str, value: &Value) {
        let Some((document, place)) = &self.document else {
            return;
        };
        let mut wrapped = document.clone();
        wrapped["$ref"] = json!(format!("#/{place}/{schema}"));
        let validator = jsonschema::validator_for(&wrapped).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{schema}: {errors:#?}\n{value:#}");
    }
}

/// OpenAPI's `nullable`, in the words of JSON Schema.
fn allow_null(node: &mut Value) {
    match node {
        Value::Array(items) => items.iter_mut().for_each(allow_null),
        Value::Object(fields) => {
            fields.values_mut().for_each(allow_null);
            if fields.get("nullable") == Some(&Value::Bool(true)) {
                fields.remove("nullable");
                let inner = Value::Object(std::mem::take(fields));
                fields.insert("anyOf".to_owned(), json!([inner, { "type": "null" }]));
            }
        }
        _ => {}
    }
}
