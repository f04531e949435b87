//! A running engine in a folder of its own, clients for it, and waiting with a bound.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use aws_credential_types::Credentials;
use aws_sdk_sqs::Client as Sqs;
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName, QueueAttributeName};
use aws_sigv4::http_request::{self, SignableBody, SignableRequest, SigningSettings};
use aws_sigv4::sign::v4;
use axum::body::Body;
use axum::http::Request;
use bobbin_local_aws::{AccessKey, Clock, Engine, EngineKeys, EngineSettings, LogLine};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

/// Logical ids of the functions of the project's template.
pub const FUNCTIONS: [&str; 3] = ["Ingress", "Worker", "Sweeper"];
/// The project's own template.
pub const PROJECT: &str = "../../../template.yaml";
/// A template that has one of everything that the engine reads.
pub const SMALL: &str = "tests/engine/template.yaml";
/// Logical ids of the functions of [`SMALL`].
pub const SMALLS: [&str; 3] = ["Echo", "Brief", "Broken"];

/// Longest wait for anything that the engine does by itself.
const WAIT_MAX: Duration = Duration::from_secs(20);

pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bobbin-aws-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

pub struct Stack {
    pub engine: Engine,
    pub clock: Clock,
    pub lines: Arc<Mutex<Vec<LogLine>>>,
    pub folder: Arc<Folder>,
}

/// Cargo builds examples beside the tests: `target/*/deps/engine-…` and `target/*/examples/echo_function`.
pub fn echo_function() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples/echo_function")
}

pub fn settings(folder: &Folder, template: &str, functions: &[&str]) -> EngineSettings {
    EngineSettings {
        breakpoints: bobbin_local_breakpoint::Breakpoints::default(),
        template: PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(template),
        parameters: BTreeMap::new(),
        secrets: BTreeMap::new(),
        stack_name: "test".to_owned(),
        region: "us-east-1".to_owned(),
        state_dir: folder.0.join("state"),
        functions: functions.iter().map(|id| ((*id).to_owned(), echo_function())).collect(),
        extra_environment: BTreeMap::from([("RUST_BACKTRACE".to_owned(), "1".to_owned())]),
        ingress_port: 0,
        endpoint_port: 0,
        also_named: None,
        clock: Clock::system(),
        log: Arc::new(|_| {}),
    }
}

impl Stack {
    pub async fn start() -> Self {
        Self::start_in(Arc::new(Folder::new())).await
    }

    pub async fn start_in(folder: Arc<Folder>) -> Self {
        let settings = settings(&folder, SMALL, &SMALLS);
        Self::start_with(folder, settings).await
    }

    /// One that lets in only what is signed with these keys.
    pub async fn start_signed(keys: &EngineKeys) -> Self {
        let folder = Arc::new(Folder::new());
        let settings = settings(&folder, SMALL, &SMALLS);
        Self::start_keyed(folder, settings, Some(keys.clone())).await
    }

    pub async fn start_with(folder: Arc<Folder>, settings: EngineSettings) -> Self {
        Self::start_keyed(folder, settings, None).await
    }

    async fn start_keyed(
        folder: Arc<Folder>,
        mut settings: EngineSettings,
        keys: Option<EngineKeys>,
    ) -> Self {
        let lines: Arc<Mutex<Vec<LogLine>>> = Arc::default();
        let kept = Arc::clone(&lines);
        settings.log = Arc::new(move |line| kept.lock().unwrap().push(line));
        let clock = settings.clock.clone();
        let engine = match keys {
            Some(keys) => Engine::start_signed(settings, keys).await,
            None => Engine::start(settings).await,
        };
        let engine = engine.unwrap();
        Self { engine, clock, lines, folder }
    }

    pub fn sqs(&self) -> Sqs {
        sqs(self.engine.endpoint())
    }

    pub fn advance(&self, seconds: u32) {
        self.clock.advance_ms(seconds * 1000);
    }

    /// A FIFO queue with these attributes; content is not deduplicated unless asked for.
    pub async fn fifo(&self, name: &str, attributes: &[(QueueAttributeName, &str)]) -> String {
        let mut create = self
            .sqs()
            .create_queue()
            .queue_name(name)
            .attributes(QueueAttributeName::FifoQueue, "true");
        for (attribute, value) in attributes {
            create = create.attributes(attribute.clone(), *value);
        }
        create.send().await.unwrap().queue_url.unwrap()
    }

    /// Sends to a FIFO queue with the body as deduplication id.
    pub async fn post(&self, url: &str, group: &str, body: &str) {
        self.sqs()
            .send_message()
            .queue_url(url)
            .message_group_id(group)
            .message_deduplication_id(
                body.chars().filter(char::is_ascii_graphic).take(120).collect::<String>(),
            )
            .message_body(body)
            .send()
            .await
            .unwrap();
    }

    pub async fn take(&self, url: &str, count_max: i32) -> Vec<Message> {
        self.sqs()
            .receive_message()
            .queue_url(url)
            .max_number_of_messages(count_max)
            .message_system_attribute_names(MessageSystemAttributeName::All)
            .wait_time_seconds(0)
            .send()
            .await
            .unwrap()
            .messages
            .unwrap_or_default()
    }

    /// Deletes a message that was taken.
    pub async fn delete(&self, url: &str, message: &Message) {
        let delete = self.sqs().delete_message().queue_url(url);
        let delete = delete.receipt_handle(receipt(message));
        delete.send().await.unwrap();
    }

    /// Lists a queue without receiving.
    pub async fn peek(&self, name: &str) -> Vec<Value> {
        let path = format!("/_bobbin/queues/{name}/messages");
        let (_, body) = self.call("GET", &path, None).await;
        body.as_array().cloned().unwrap_or_default()
    }

    /// A call on the endpoint; status and JSON.
    pub async fn call(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        call(self.engine.endpoint(), method, path, body).await
    }

    /// Invokes a function; the error kind, if it failed, and the payload.
    pub async fn invoke(&self, name: &str, event: Value) -> (Option<String>, Value) {
        let url =
            format!("{}/2015-03-31/functions/test-{name}/invocations", self.engine.endpoint());
        let request =
            Request::builder().method("POST").uri(url).body(Body::from(event.to_string())).unwrap();
        let (_, headers, bytes) = send(request).await;
        let failed =
            headers.get("x-amz-function-error").map(|kind| kind.to_str().unwrap().to_owned());
        (failed, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    pub fn texts(&self) -> Vec<String> {
        let lines = self.lines.lock().unwrap();
        lines.iter().map(|line| line.text.clone()).collect()
    }

    pub fn has_line(&self, text: &str) -> bool {
        self.texts().iter().any(|line| line == text)
    }
}

/// Settings for a client of one of the real SDKs, by the SDK's crate; they can be added to.
macro_rules! sdk_config {
    ($sdk:ident, $endpoint:expr) => {
        $sdk::Config::builder()
            .behavior_version($sdk::config::BehaviorVersion::latest())
            .region($sdk::config::Region::new("us-east-1"))
            .credentials_provider(aws_credential_types::Credentials::new(
                "key", "secret", None, None, "test",
            ))
            .http_client(aws_smithy_http_client::Builder::new().build_http())
            .endpoint_url($endpoint)
    };
}

pub(crate) use sdk_config;

/// A client of the real SDK.
pub fn sqs(endpoint: &str) -> Sqs {
    Sqs::from_conf(sdk_config!(aws_sdk_sqs, endpoint).build())
}

/// A call on an endpoint; status and JSON.
pub async fn call(endpoint: &str, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    let request =
        Request::builder().method(method).uri(format!("{endpoint}{path}")).body(body).unwrap();
    let (status, _, bytes) = send(request).await;
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// Sends a plain request.
pub async fn send(request: Request<Body>) -> (u16, axum::http::HeaderMap, Vec<u8>) {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let response = client.request(request).await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = Body::new(response.into_body());
    let bytes = axum::body::to_bytes(body, 64 << 20).await.unwrap();
    (status, headers, bytes.to_vec())
}

/// Waits until a condition holds, looking often; fails with `what` after twenty seconds.
pub async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !condition().await {
        assert!(start.elapsed() < WAIT_MAX, "{what}: did not come true in time");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Pairs as a map of texts.
pub fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

pub fn bodies(messages: &[Message]) -> Vec<&str> {
    messages.iter().filter_map(|message| message.body()).collect()
}

pub fn receipt(message: &Message) -> &str {
    message.receipt_handle().unwrap()
}

/// A key that lasts.
pub fn key(id: &str, secret: &str) -> AccessKey {
    AccessKey { id: id.to_owned(), secret: secret.to_owned(), session_token: None }
}

/// Signs a request for a service with AWS's own signer, as of a time.
pub fn sign(
    request: Request<Vec<u8>>,
    service: &str,
    key: &AccessKey,
    time: SystemTime,
) -> Request<Body> {
    let token = key.session_token.clone();
    let identity = Credentials::new(&key.id, &key.secret, token, None, "test").into();
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region("us-east-1")
        .name(service)
        .time(time)
        .settings(SigningSettings::default())
        .build()
        .unwrap()
        .into();
    let (mut parts, body) = request.into_parts();
    let host = parts.uri.authority().unwrap().as_str().parse().unwrap();
    parts.headers.insert("host", host);
    let headers =
        parts.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap()));
    let uri = parts.uri.to_string();
    let signable =
        SignableRequest::new(parts.method.as_str(), uri, headers, SignableBody::Bytes(&body));
    let (instructions, _) =
        http_request::sign(signable.unwrap(), &parameters).unwrap().into_parts();
    let mut request = Request::from_parts(parts, Body::from(body));
    instructions.apply_to_request_http1x(&mut request);
    request
}
