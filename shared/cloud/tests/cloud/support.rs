//! A running engine with everything of the template but its functions, which would take the messages that a test looks
//! for; and services that misbehave.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aws_credential_types::Credentials;
use aws_sdk_dynamodb::config::{BehaviorVersion, Region};
use aws_sdk_sqs::types::QueueAttributeName;
use axum::Router;
use axum::http::StatusCode;
use bobbin_cloud::aws::Aws;
use bobbin_cloud::dead_letters::QueuePair;
use bobbin_cloud::queue::Queues;
use bobbin_core::protocol::ports::ExpectedVersions;
use bobbin_http::{AllowedHosts, Http};
use bobbin_local_aws::{Clock, Engine, EngineSettings};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longest wait for anything that the engine does by itself.
pub const WAIT_MAX: Duration = Duration::from_secs(20);
const TEMPLATE: &str = include_str!("../../../../template.yaml");

pub struct Cloud {
    pub engine: Engine,
    pub clock: Clock,
    _folder: TempDir,
}

/// As the functions reach AWS, with a token that nothing may show.
pub fn aws(endpoint: &str) -> Aws {
    Aws::new("us-east-1", credentials(), Some(endpoint)).unwrap()
}

pub fn credentials() -> Credentials {
    Credentials::new("key", "canary", Some("canary-token".to_owned()), None, "test")
}

/// The queues of a stack that has only the one at this address.
pub fn queues(aws: &Aws) -> Queues {
    let pair = |name| QueuePair {
        name,
        home_url: "https://sqs.us-east-1.amazonaws.com/1/q.fifo".to_owned(),
        dead_url: "https://sqs.us-east-1.amazonaws.com/1/d.fifo".to_owned(),
    };
    Queues::of(aws, &[pair("messages"), pair("control")])
}

macro_rules! sdk {
    ($(#[$about:meta])* $name:ident, $sdk:ident) => {
        $(#[$about])*
        pub fn $name(endpoint: &str) -> $sdk::Client {
            $sdk::Client::from_conf(
                $sdk::Config::builder()
                    .behavior_version(BehaviorVersion::latest())
                    .region(Region::new("us-east-1"))
                    .credentials_provider(Credentials::new("key", "secret", None, None, "test"))
                    .http_client(aws_smithy_http_client::Builder::new().build_http())
                    .endpoint_url(endpoint)
                    .build(),
            )
        }
    };
}
sdk!(
    /// AWS's own client of the table.
    sdk_dynamodb,
    aws_sdk_dynamodb
);
sdk!(
    /// AWS's own client of the queues.
    sdk_sqs,
    aws_sdk_sqs
);
sdk!(
    /// AWS's own client of the schedules.
    sdk_scheduler,
    aws_sdk_scheduler
);

impl Cloud {
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let template = folder.path().join("template.yaml");
        let at = |id: &str| TEMPLATE.find(&format!("\n  {id}:\n")).unwrap();
        let roles = &TEMPLATE[at("WorkerRole")..at("Worker")];
        let without = format!("{}{roles}", &TEMPLATE[..at("Ingress")]);
        std::fs::write(&template, without).unwrap();
        let clock = Clock::system();
        let engine = Engine::start(EngineSettings {
            template,
            parameters: [("TenantCredentials".to_owned(), "yes".to_owned())].into(),
            secrets: BTreeMap::new(),
            stack_name: "test".to_owned(),
            region: "us-east-1".to_owned(),
            state_dir: folder.path().join("state"),
            functions: BTreeMap::new(),
            extra_environment: BTreeMap::new(),
            ingress_port: 0,
            endpoint_port: 0,
            also_named: None,
            clock: clock.clone(),
            log: Arc::new(|_| {}),
            breakpoints: Default::default(),
        })
        .await
        .unwrap();
        Self { engine, clock, _folder: folder }
    }

    /// The address of a resource of the template: a queue's URL, a table's or group's name.
    pub fn resource(&self, id: &str) -> String {
        self.engine.resource(id).unwrap()
    }

    /// Puts a value into a secret.
    pub async fn store(&self, id: &str, value: &str) {
        let http = Http::new(self.engine.endpoint(), AllowedHosts::Public).unwrap();
        let request = http.request(Method::POST, self.engine.endpoint()).unwrap();
        let request = request
            .header("x-amz-target", "secretsmanager.PutSecretValue")
            .json(&json!({"SecretId": id, "SecretString": value}));
        assert!(http.send(request).await.unwrap().ok());
    }

    pub fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.now_ms()).unwrap()
    }

    pub fn advance(&self, seconds: u32) {
        self.clock.advance_ms(seconds * 1000);
    }

    /// What waits in a queue, oldest first, without taking it.
    pub async fn waiting(&self, queue: &str) -> Vec<Value> {
        let url = format!("{}/_bobbin/queues/{queue}/messages", self.engine.endpoint());
        let http = Http::new(self.engine.endpoint(), AllowedHosts::Public).unwrap();
        let request = http.request(Method::GET, &url).unwrap();
        http.send(request).await.unwrap().json().unwrap()
    }

    /// The ARN of a queue, as the service names it.
    pub async fn queue_arn(&self, id: &str) -> String {
        let sqs = sdk_sqs(self.engine.endpoint());
        let get = sqs.get_queue_attributes().queue_url(self.resource(id));
        let arn = QueueAttributeName::QueueArn;
        let got = get.attribute_names(arn.clone()).send().await.unwrap();
        got.attributes.unwrap()[&arn].clone()
    }
}

/// Waits until a condition holds, looking often; fails with `what` after twenty seconds.
pub async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !condition().await {
        assert!(start.elapsed() < WAIT_MAX, "{what}: did not come true in time");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A service that answers everything alike, and counts.
pub async fn answering(status: u16, body: &'static str) -> (String, Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let answer = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        let headers = [("content-type", "application/x-amz-json-1.0")];
        std::future::ready((StatusCode::from_u16(status).unwrap(), headers, body))
    };
    let app = Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (endpoint, count)
}

/// What calls of the table were billed as.
#[derive(Clone, Default)]
pub struct Meter(Arc<Mutex<f64>>);

impl Meter {
    pub fn units(&self) -> f64 {
        *self.0.lock().unwrap()
    }

    /// Of one table, or of each in a list.
    fn add(&self, consumed: &Value) {
        let tables = consumed.as_array().map_or(std::slice::from_ref(consumed), Vec::as_slice);
        let units = tables.iter().filter_map(|table| table["CapacityUnits"].as_f64());
        *self.0.lock().unwrap() += units.sum::<f64>();
    }
}

/// The table behind a meter: units of writes and reads as the engine tells them.
pub async fn metered(endpoint: &str) -> (String, Meter) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let meter = Meter::default();
    let (counted, endpoint) = (meter.clone(), endpoint.to_owned());
    let forward = move |mut headers: axum::http::HeaderMap, body: String| {
        let mut asked: Value = serde_json::from_str(&body).unwrap();
        asked["ReturnConsumedCapacity"] = json!("TOTAL");
        for of_hop in ["host", "content-length"] {
            headers.remove(of_hop);
        }
        let http = Http::new(&endpoint, AllowedHosts::Public).unwrap();
        let request = http.request(Method::POST, &endpoint).unwrap();
        let request = request.headers(headers).body(asked.to_string());
        let counted = counted.clone();
        async move {
            let answer = http.send(request).await.unwrap();
            let told: Value = serde_json::from_slice(&answer.body).unwrap();
            counted.add(&told["ConsumedCapacity"]);
            let status = StatusCode::from_u16(answer.status).unwrap();
            (status, [("content-type", "application/x-amz-json-1.0")], told.to_string())
        }
    };
    let app = Router::new().fallback(forward);
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (address, meter)
}

/// A service that takes connections and never answers, for as long as the listener is kept.
pub async fn silent() -> (String, tokio::net::TcpListener) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    (endpoint, listener)
}

/// Methods and tokens that a Scheduler was called with.
pub type Calls = Vec<(String, String)>;

/// A Scheduler that refuses its first calls in these ways and then takes everything; and what it was called with.
pub async fn refusing(refusals: Vec<(u16, &'static str)>) -> (String, impl Fn() -> Calls) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let calls: Arc<Mutex<Calls>> = Arc::default();
    let seen = Arc::clone(&calls);
    let answer = move |method: axum::http::Method, body: String| {
        let mut calls = calls.lock().unwrap();
        let refusal = refusals.get(calls.len()).copied();
        let asked: Value = serde_json::from_str(&body).unwrap();
        let token = asked["ClientToken"].as_str().unwrap();
        calls.push((method.to_string(), token.to_owned()));
        let (status, kind, body) = match refusal {
            Some((status, kind)) => (status, kind, r#"{"Message":"no"}"#),
            None => (200, "none", r#"{"ScheduleArn":"arn"}"#),
        };
        let headers = [("x-amzn-errortype", kind), ("content-type", "application/json")];
        std::future::ready((StatusCode::from_u16(status).unwrap(), headers, body))
    };
    let app = Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (endpoint, move || seen.lock().unwrap().clone())
}

/// A write of a thread's record alone, in the place of the one of this version.
pub const fn alone(thread: u64) -> ExpectedVersions {
    ExpectedVersions { thread: Some(thread), sandbox: None }
}

/// A write of a thread's record and of its sandbox's, in the place of those of this version.
pub const fn both(version: u64) -> ExpectedVersions {
    ExpectedVersions { thread: Some(version), sandbox: Some(version) }
}
