//! What a sweeper finds outside of itself: the laptop stack's secrets, its table in a program of its own with very many
//! sessions, a queue that takes thousands of messages in a second, as the stack's does not, and a provider that lists more
//! sandboxes than a machine holds. Every call is counted, and what it is billed as.
//!
//! Each answer can be made to take as long as a network does: on loopback alone, calls one after the other look cheap.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Query, Request, State as Shared};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Response, StatusCode};
use axum::response::{IntoResponse as _, Json};
use axum::routing::get;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::capacity;
use crate::harness::{Harness, STACK, STACK_ID, host};
use crate::process::runtime;
use crate::relay::{client, pass};

/// What was asked for since it was asked last.
#[derive(Debug, Default, Clone)]
pub struct Asked {
    /// Calls by their name.
    pub calls: BTreeMap<String, u64>,
    /// Read units of the table by DynamoDB's documentation, from what was answered.
    pub units: f64,
    /// The same as the engine reports it.
    pub told_units: f64,
    /// Deduplication ids of what was put on the queue.
    pub messages: BTreeSet<String>,
}

impl Asked {
    /// All calls.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.values().sum()
    }
}

struct Inner {
    table: String,
    aws: String,
    client: Client<HttpConnector, Body>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    asked: Asked,
    answer_after: Duration,
    sandboxes: Vec<Value>,
}

/// The account.
pub struct Account {
    address: SocketAddr,
    inner: Arc<Inner>,
}

impl Account {
    /// One whose table answers at this address, and all else of AWS in the stack.
    ///
    /// # Errors
    /// Without a port.
    pub fn start(harness: &Harness, table: SocketAddr) -> io::Result<Self> {
        let inner = Arc::new(Inner {
            table: table.to_string(),
            aws: host(&harness.world.deployment.aws_endpoint).to_owned(),
            client: client(),
            state: Mutex::default(),
        });
        let router = Router::new()
            .route("/daytona/sandbox", get(list))
            .fallback(aws)
            .with_state(Arc::clone(&inner));
        let listener = runtime().block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        runtime().spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address, inner })
    }

    /// The value of `AWS_ENDPOINT_URL`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The base of the provider's API.
    #[must_use]
    pub fn provider(&self) -> String {
        format!("http://{}/daytona", self.address)
    }

    /// Lets every answer take so long, on top of what it takes.
    pub fn answer_after(&self, wait: Duration) {
        self.inner.lock().answer_after = wait;
    }

    /// The provider has these threads' sandboxes, in the first generation.
    pub fn list(&self, threads: impl IntoIterator<Item = (String, String)>) {
        let sandbox = |(tenant, thread): (String, String)| {
            json!({
                "id": format!("id-{thread}"),
                "name": format!("{STACK}-{thread}"),
                "labels": {"bobbin": STACK, "stack": STACK_ID, "thread": thread, "generation": "1", "tenant": tenant},
                "state": "started",
                "createdAt": "2026-01-01T00:00:00.000Z",
            })
        };
        self.inner.lock().sandboxes = threads.into_iter().map(sandbox).collect();
    }

    /// What was asked for since this was called last.
    pub fn asked(&self) -> Asked {
        std::mem::take(&mut self.inner.lock().asked)
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one message, or a batch of them.
    fn take(&self, asked: &Value) -> Value {
        let mut sent = Vec::new();
        let batch = asked["Entries"].as_array();
        for message in batch.map_or(std::slice::from_ref(asked), Vec::as_slice) {
            let id = message["MessageDeduplicationId"].as_str();
            let id = id.unwrap_or_default().to_owned();
            self.lock().asked.messages.insert(id);
            let digest = md5::compute(message["MessageBody"].as_str().unwrap_or_default());
            sent.push(json!({"Id": message["Id"], "MessageId": "5fea7756", "MD5OfMessageBody": format!("{digest:x}")}));
        }
        match batch {
            Some(_) => json!({"Successful": sent, "Failed": []}),
            None => sent.remove(0),
        }
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
}

/// A call of AWS: to the table, or to the stack.
async fn aws(
    Shared(inner): Shared<Arc<Inner>>,
    request: Request,
) -> Result<Response<Body>, StatusCode> {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await;
    let body = body.map_err(|_| StatusCode::BAD_REQUEST)?;
    let target = head.headers.get("x-amz-target");
    let target = target.and_then(|target| target.to_str().ok());
    let (service, action) = target
        .and_then(|target| target.split_once('.'))
        .unwrap_or_default();
    let action = action.to_owned();
    let mut asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let answer = match service {
        "DynamoDB_20120810" => {
            asked["ReturnConsumedCapacity"] = json!("TOTAL");
            let more = asked.to_string().into();
            let answer = pass(&inner.client, &inner.table, head, more).await?;
            let (head, body) = answer.into_parts();
            let body = to_bytes(body, usize::MAX).await;
            let body = body.map_err(|_| StatusCode::BAD_GATEWAY)?;
            let told: Value = serde_json::from_slice(&body).unwrap_or_default();
            let mut state = inner.lock();
            state.asked.units += capacity::units(&action, &asked, &told);
            state.asked.told_units += capacity::told(&told);
            Response::from_parts(head, Body::from(body))
        }
        "AmazonSQS" => {
            let kind = [(CONTENT_TYPE, "application/x-amz-json-1.0")];
            (kind, inner.take(&asked).to_string()).into_response()
        }
        _ => pass(&inner.client, &inner.aws, head, body).await?,
    };
    inner.count(&action).await;
    Ok(answer)
}

#[derive(Deserialize)]
struct Page {
    cursor: Option<usize>,
    limit: Option<usize>,
}

/// A page of the provider's list.
async fn list(Shared(inner): Shared<Arc<Inner>>, Query(page): Query<Page>) -> Response<Body> {
    let told = {
        let sandboxes = &inner.lock().sandboxes;
        let start = page.cursor.unwrap_or(0);
        let end = sandboxes.len().min(start + page.limit.unwrap_or(100));
        let next = (end < sandboxes.len()).then(|| end.to_string());
        let items = sandboxes.get(start..end).unwrap_or_default();
        json!({"items": items, "nextCursor": next})
    };
    inner.count("list of sandboxes").await;
    Json(told).into_response()
}
