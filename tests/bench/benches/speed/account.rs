//! Everything outside a sweeper: the laptop stack's AWS, but with a table in its own program that has very many
//! sessions, and the stack's provider, or one that lists more sandboxes than a machine can run. Every call is counted,
//! and its billed amount.
//!
//! Each answer can be made to take as long as a network does: on loopback alone, calls one after the other look cheap.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State as Shared};
use axum::http::request::Parts;
use axum::http::{Response, StatusCode};
use bobbin_local_daytona::{LocalDaytona, LocalDaytonaSettings};
use bobbin_tests::http;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::capacity;
use crate::harness::{Harness, STACK, STACK_ID, host};
use crate::process::runtime;
use crate::relay::{client, pass};

/// Long before every measurement, in milliseconds: the start of 2026.
const MADE_MS: u64 = 1_767_225_600_000;

/// The requests since the last question.
#[derive(Debug, Default, Clone)]
pub struct Asked {
    /// Calls by their name.
    pub calls: BTreeMap<String, u64>,
    /// The table's read units by DynamoDB's documentation, from its answers.
    pub units: f64,
    /// The same as the engine reports it.
    pub told_units: f64,
    /// Deduplication ids of the messages put on the queue.
    pub messages: BTreeSet<String>,
}

impl Asked {
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.values().sum()
    }
}

struct Inner {
    table: String,
    aws: String,
    /// The stack's provider, and the one with many sandboxes.
    providers: [String; 2],
    client: Client<HttpConnector, Body>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    asked: Asked,
    answer_after: Duration,
    is_many: bool,
}

pub struct Account {
    address: SocketAddr,
    inner: Arc<Inner>,
    _many: LocalDaytona,
    _folder: TempDir,
}

impl Account {
    /// An account whose table answers at this address; the stack answers the rest of AWS. The many sandboxes belong to
    /// these threads, each with its tenant, in the first generation.
    ///
    /// # Errors
    /// A sentence with what failed.
    pub fn start(
        harness: &Harness,
        table: SocketAddr,
        threads: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let many = runtime().block_on(async {
            let record = record(harness).await?;
            write(folder.path(), &record, threads)?;
            let key = harness.world.ready.daytona_api_key.clone();
            let mut settings = LocalDaytonaSettings::new(folder.path().to_owned(), key);
            settings.run.confine = false;
            let started = LocalDaytona::start(settings);
            started.await.map_err(|e| e.to_string())
        })?;
        let own = host(&harness.world.ready.daytona_api).to_owned();
        let inner = Arc::new(Inner {
            table: table.to_string(),
            aws: host(&harness.world.deployment.aws_endpoint).to_owned(),
            providers: [own, host(&many.api_url()).to_owned()],
            client: client(),
            state: Mutex::default(),
        });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&inner));
        let listener = runtime().block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
        let listener = listener.map_err(|e| e.to_string())?;
        let address = listener.local_addr().map_err(|e| e.to_string())?;
        runtime().spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address, inner, _many: many, _folder: folder })
    }

    /// The value of `AWS_ENDPOINT_URL`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The base of the provider's API.
    #[must_use]
    pub fn provider(&self) -> String {
        format!("http://{}/api", self.address)
    }

    /// Delays every answer by this time.
    pub fn answer_after(&self, wait: Duration) {
        self.inner.lock().answer_after = wait;
    }

    /// Whether to use the provider with many sandboxes, from now on.
    pub fn list_many(&self, is_many: bool) {
        self.inner.lock().is_many = is_many;
    }

    /// The requests since the last call.
    pub fn asked(&self) -> Asked {
        std::mem::take(&mut self.inner.lock().asked)
    }
}

/// The stack provider's record of a sandbox, which is created and deleted for this.
async fn record(harness: &Harness) -> Result<Value, String> {
    let (world, client) = (&harness.world, http::client());
    let url = format!("{}/sandbox", world.ready.daytona_api);
    let key = format!("Bearer {}", world.ready.daytona_api_key);
    let one = json!({"name": "one"});
    let made = http::call(&client, Method::POST, &url, &key, &one);
    let made = made.await?.ok()?;
    let id = made["id"].as_str().ok_or("the sandbox has no id")?;
    let kept = world.state_dir.join(format!("daytona/records/{id}.json"));
    let text = fs::read(&kept).map_err(|e| format!("{}: {e}", kept.display()))?;
    for sandbox in world.provider.list().await? {
        world.provider.lose(&sandbox).await?;
    }
    serde_json::from_slice(&text).map_err(|e| e.to_string())
}

/// Writes what a provider finds when it starts in this folder: a stopped sandbox of each thread, otherwise like this
/// one.
fn write(
    folder: &Path,
    like: &Value,
    threads: impl IntoIterator<Item = (String, String)>,
) -> Result<(), String> {
    let records = folder.join("records");
    fs::create_dir_all(&records).map_err(|e| e.to_string())?;
    for (number, (tenant, thread)) in threads.into_iter().enumerate() {
        let id = format!("00000000-0000-4000-8000-{number:012}");
        let mut record = like.clone();
        record["id"] = json!(id);
        record["folder"] = json!(id);
        record["name"] = json!(format!("{STACK}-{thread}"));
        record["labels"] = json!({
            "bobbin": STACK, "stack": STACK_ID, "thread": thread, "generation": "1", "tenant": tenant,
        });
        record["state"] = json!("stopped");
        record["created_at"] = json!(MADE_MS);
        fs::write(records.join(format!("{id}.json")), record.to_string())
            .map_err(|e| e.to_string())?;
    }
    Ok(())
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call, and waits as long as a network would take.
    async fn count(&self, name: &str) {
        let wait = {
            let mut state = self.lock();
            *state.asked.calls.entry(name.to_owned()).or_default() += 1;
            state.answer_after
        };
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    /// A call of the table, and its billed amount.
    async fn read(
        &self,
        action: &str,
        head: Parts,
        body: &[u8],
    ) -> Result<Response<Body>, StatusCode> {
        let mut asked: Value = serde_json::from_slice(body).unwrap_or_default();
        asked["ReturnConsumedCapacity"] = json!("TOTAL");
        let answer = pass(&self.client, &self.table, head, asked.to_string().into()).await?;
        let (head, body) = answer.into_parts();
        let body = whole(body).await?;
        let told: Value = serde_json::from_slice(&body).unwrap_or_default();
        let mut state = self.lock();
        state.asked.units += capacity::units(action, &asked, &told);
        state.asked.told_units += capacity::told(&told);
        Ok(Response::from_parts(head, Body::from(body)))
    }

    /// The ids of the message, or of a batch of messages, put on the queue.
    fn note_messages(&self, body: &[u8]) {
        let asked: Value = serde_json::from_slice(body).unwrap_or_default();
        let batch = asked["Entries"].as_array();
        let all = batch.map_or(std::slice::from_ref(&asked), Vec::as_slice);
        let ids = all.iter().filter_map(|one| one["MessageDeduplicationId"].as_str());
        let messages = &mut self.lock().asked.messages;
        messages.extend(ids.map(str::to_owned));
    }
}

async fn whole(body: Body) -> Result<Bytes, StatusCode> {
    let body = to_bytes(body, usize::MAX).await;
    body.map_err(|_| StatusCode::BAD_GATEWAY)
}

/// A call to the table, to the stack's AWS, or to the provider.
async fn answer(
    Shared(inner): Shared<Arc<Inner>>,
    request: Request,
) -> Result<Response<Body>, StatusCode> {
    let (head, body) = request.into_parts();
    let body = whole(body).await?;
    let target = head.headers.get("x-amz-target");
    let target = target.and_then(|target| target.to_str().ok());
    let Some((service, action)) = target.and_then(|target| target.split_once('.')) else {
        let provider = inner.providers[usize::from(inner.lock().is_many)].clone();
        let answer = pass(&inner.client, &provider, head, body).await?;
        inner.count("list of sandboxes").await;
        return Ok(answer);
    };
    let (service, action) = (service.to_owned(), action.to_owned());
    let answer = if service == "DynamoDB_20120810" {
        inner.read(&action, head, &body).await?
    } else {
        if service == "AmazonSQS" {
            inner.note_messages(&body);
        }
        pass(&inner.client, &inner.aws, head, body).await?
    };
    inner.count(&action).await;
    Ok(answer)
}
