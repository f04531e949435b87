//! DynamoDB by dynoxide, on a file of its own in the state folder.
//!
//! It is served on a loopback port of its own; the endpoint hands requests on to it. Its time to live goes by the
//! system's time: a clock that a test moved does not expire items (no program may rely on when AWS does that).
//!
//! An index lag can be asked for: then queries and scans of an index are answered by a copy of the tables as they were
//! that long ago, while reads of the table itself stay fresh, as on AWS. Copies are made at writes, only while a lag is
//! set.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request, Response, StatusCode};
use axum::response::IntoResponse as _;
use dynoxide::Database;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::limits;

const TARGET: &str = "DynamoDB_20120810";

/// The tables of this stack.
pub(crate) struct Dynamo {
    database: Database,
    fresh: String,
    client: Client<HttpConnector, Body>,
    clock: Clock,
    lag: Mutex<Option<Lag>>,
    folder: PathBuf,
    tasks: TaskTracker,
    stopping: CancellationToken,
}

/// A lag that is set, with the copies that answer for it.
struct Lag {
    lag_ms: i64,
    /// Oldest first; the first one answers for all time before it.
    copies: VecDeque<Copy>,
    copied: u64,
    /// What `stale` holds now.
    shown: Option<u64>,
    stale: Database,
    address: String,
}

struct Copy {
    number: u64,
    at_ms: i64,
    path: PathBuf,
}

/// A table of the template, as a `CreateTable` request, and its time-to-live attribute.
#[derive(Clone, Debug)]
pub(crate) struct TableSettings {
    pub(crate) create: Value,
    pub(crate) ttl_attribute: Option<String>,
}

/// Why the tables could not be opened, set up or reached.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DynamoError {
    #[error("{0}")]
    Engine(String),
    #[error("DynamoDB refused {action} of table {table}: {reason}")]
    Refused {
        action: &'static str,
        table: String,
        reason: String,
    },
    #[error(
        "table {0} exists with another key schema than the template's; start with an empty state folder, or change the template back"
    )]
    KeySchema(String),
    #[error("the index lag could not be served: {0}")]
    Io(#[from] std::io::Error),
}

impl Dynamo {
    /// Opens the tables in `folder` and serves them until `stopping`.
    pub(crate) async fn start(
        folder: PathBuf,
        clock: Clock,
        tasks: &TaskTracker,
        stopping: CancellationToken,
    ) -> Result<Self, DynamoError> {
        let path = folder.join("dynamodb.sqlite");
        let database = Database::new(&path.display().to_string()).map_err(engine)?;
        let fresh = serve(database.clone(), tasks, &stopping).await?;
        tasks.spawn(sweep(database.clone(), stopping.clone()));
        Ok(Self {
            database,
            fresh,
            client: Client::builder(TokioExecutor::new()).build_http(),
            clock,
            lag: Mutex::default(),
            folder,
            tasks: tasks.clone(),
            stopping,
        })
    }

    /// Answers one request.
    pub(crate) async fn answer(&self, headers: HeaderMap, body: Bytes) -> Response<Body> {
        let action = headers
            .get("x-amz-target")
            .and_then(|target| target.to_str().ok())
            .and_then(|target| target.split('.').nth(1))
            .unwrap_or_default()
            .to_owned();
        let answered = match self.address_for(&action, &body) {
            Ok(address) => self.forward(&address, headers, body).await,
            Err(error) => Err(error),
        };
        let response = match answered {
            Ok(response) => response,
            Err(error) => {
                let body = json!({
                    "__type": "com.amazonaws.dynamodb.v20120810#InternalServerError",
                    "message": error.to_string(),
                });
                return (StatusCode::INTERNAL_SERVER_ERROR, body.to_string()).into_response();
            }
        };
        if response.status().is_success() && writes(&action) {
            // A failed copy makes the index fresher than asked for, which the next query reports.
            if let Err(error) = self.copy() {
                tracing::warn!(%error, "the tables could not be copied for the index lag");
            }
        }
        response
    }

    /// Has index queries answer as of `lag_ms` ago; 0 ends it.
    pub(crate) async fn set_index_lag(&self, lag_ms: i64) -> Result<(), DynamoError> {
        let lag_ms = lag_ms.clamp(0, limits::INDEX_LAG_MS_MAX);
        let lag = if lag_ms == 0 {
            None
        } else {
            let stale = Database::memory().map_err(engine)?;
            let address = serve(stale.clone(), &self.tasks, &self.stopping).await?;
            let copies = self.copies_folder();
            if copies.exists() {
                std::fs::remove_dir_all(&copies)?;
            }
            std::fs::create_dir_all(&copies)?;
            Some(Lag {
                lag_ms,
                copies: VecDeque::new(),
                copied: 0,
                shown: None,
                stale,
                address,
            })
        };
        *self.lag() = lag;
        self.copy()
    }

    /// Creates a table of the template, or brings indexes and time to live of the present one up to date.
    pub(crate) async fn deploy(&self, table: &TableSettings) -> Result<(), DynamoError> {
        let name = table.create["TableName"].as_str().unwrap_or_default();
        let described = self
            .call("DescribeTable", name, &json!({ "TableName": name }))
            .await;
        match described {
            Ok(present) => {
                if present["Table"]["KeySchema"] != table.create["KeySchema"] {
                    return Err(DynamoError::KeySchema(name.to_owned()));
                }
                self.deploy_indexes(name, table, &present["Table"]).await?;
                self.deploy_protection(name, table, &present["Table"])
                    .await?;
            }
            Err(_) => {
                self.call("CreateTable", name, &table.create).await?;
            }
        }
        self.deploy_ttl(name, table.ttl_attribute.as_deref()).await
    }

    async fn deploy_indexes(
        &self,
        name: &str,
        table: &TableSettings,
        present: &Value,
    ) -> Result<(), DynamoError> {
        let wanted = indexes(&table.create);
        let present = indexes(present);
        let is_same = |a: &Value, b: &Value| {
            ["IndexName", "KeySchema"]
                .iter()
                .all(|field| a[field] == b[field])
                && a["Projection"]["ProjectionType"] == b["Projection"]["ProjectionType"]
        };
        let removed = present
            .iter()
            .filter(|index| !wanted.iter().any(|other| is_same(other, index)))
            .map(|index| json!({ "Delete": { "IndexName": index["IndexName"] } }));
        let added = wanted
            .iter()
            .filter(|index| !present.iter().any(|other| is_same(other, index)))
            .map(|index| json!({ "Create": index }));
        // One change of an index a call (AWS).
        for update in removed.chain(added) {
            let request = json!({
                "TableName": name,
                "AttributeDefinitions": table.create["AttributeDefinitions"],
                "GlobalSecondaryIndexUpdates": [update],
            });
            self.call("UpdateTable", name, &request).await?;
        }
        Ok(())
    }

    async fn deploy_protection(
        &self,
        name: &str,
        table: &TableSettings,
        present: &Value,
    ) -> Result<(), DynamoError> {
        let is_protected = |table: &Value| table["DeletionProtectionEnabled"] == true;
        let wanted = is_protected(&table.create);
        if wanted != is_protected(present) {
            let request = json!({ "TableName": name, "DeletionProtectionEnabled": wanted });
            self.call("UpdateTable", name, &request).await?;
        }
        Ok(())
    }

    async fn deploy_ttl(&self, name: &str, attribute: Option<&str>) -> Result<(), DynamoError> {
        let described = self
            .call("DescribeTimeToLive", name, &json!({ "TableName": name }))
            .await?;
        let described = &described["TimeToLiveDescription"];
        let present = described["AttributeName"]
            .as_str()
            .filter(|_| described["TimeToLiveStatus"] == "ENABLED");
        if present == attribute {
            return Ok(());
        }
        let changes = [(present, false), (attribute, true)];
        for (attribute, enabled) in changes {
            let Some(attribute) = attribute else { continue };
            let request = json!({
                "TableName": name,
                "TimeToLiveSpecification": { "AttributeName": attribute, "Enabled": enabled },
            });
            self.call("UpdateTimeToLive", name, &request).await?;
        }
        Ok(())
    }

    async fn call(
        &self,
        action: &'static str,
        table: &str,
        request: &Value,
    ) -> Result<Value, DynamoError> {
        let mut headers = HeaderMap::new();
        let target = format!("{TARGET}.{action}");
        headers.insert(
            "x-amz-target",
            target.parse().expect("action names are plain text"),
        );
        headers.insert(
            "content-type",
            "application/x-amz-json-1.0"
                .parse()
                .expect("a constant header"),
        );
        headers.insert(
            "authorization",
            "AWS4-HMAC-SHA256 Credential=local/20260101/local/dynamodb/aws4_request, SignedHeaders=host, Signature=local"
                .parse()
                .expect("a constant header"),
        );
        headers.insert(
            "x-amz-date",
            "20260101T000000Z".parse().expect("a constant header"),
        );
        let body = Bytes::from(request.to_string());
        let response = self.forward(&self.fresh, headers, body).await?;
        let status = response.status();
        let body = axum::body::to_bytes(response.into_body(), limits::REQUEST_BYTES_MAX)
            .await
            .map_err(engine)?;
        let value: Value = serde_json::from_slice(&body).unwrap_or_default();
        if status.is_success() {
            Ok(value)
        } else {
            let reason = value["message"].as_str().or(value["Message"].as_str());
            Err(DynamoError::Refused {
                action,
                table: table.to_owned(),
                reason: reason.unwrap_or_default().to_owned(),
            })
        }
    }

    async fn forward(
        &self,
        address: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Body>, DynamoError> {
        let mut request = Request::builder()
            .method("POST")
            .uri(format!("http://{address}/"))
            .body(Body::from(body))
            .map_err(engine)?;
        for (name, value) in &headers {
            let is_hop = ["host", "content-length", "connection", "transfer-encoding"];
            if !is_hop.contains(&name.as_str()) {
                request.headers_mut().append(name, value.clone());
            }
        }
        let response = self.client.request(request).await.map_err(engine)?;
        Ok(response.map(Body::new))
    }

    /// The fresh tables, or the copy that an index query is to see.
    fn address_for(&self, action: &str, body: &Bytes) -> Result<String, DynamoError> {
        let mut lag = self.lag();
        let Some(lag) = lag.as_mut().filter(|_| reads_index(action, body)) else {
            return Ok(self.fresh.clone());
        };
        let seen_ms = self.clock.now_ms() - lag.lag_ms;
        while lag.copies.get(1).is_some_and(|copy| copy.at_ms <= seen_ms) {
            if let Some(old) = lag.copies.pop_front() {
                std::fs::remove_file(old.path)?;
            }
        }
        if let Some(copy) = lag.copies.front()
            && lag.shown != Some(copy.number)
        {
            lag.stale
                .restore_from(&copy.path.display().to_string())
                .map_err(engine)?;
            lag.shown = Some(copy.number);
        }
        Ok(lag.address.clone())
    }

    /// Keeps the tables as they are now, while a lag is set.
    fn copy(&self) -> Result<(), DynamoError> {
        let mut lag = self.lag();
        let Some(lag) = lag.as_mut() else {
            return Ok(());
        };
        let number = lag.copied;
        lag.copied += 1;
        let path = self.copies_folder().join(format!("{number}.sqlite"));
        self.database
            .vacuum_into(&path.display().to_string())
            .map_err(engine)?;
        lag.copies.push_back(Copy {
            number,
            at_ms: self.clock.now_ms(),
            path,
        });
        // Beyond the bound the oldest go first: the index is then fresher than asked for.
        while lag.copies.len() > limits::INDEX_COPIES_MAX {
            if let Some(old) = lag.copies.pop_front() {
                std::fs::remove_file(old.path)?;
            }
        }
        Ok(())
    }

    fn copies_folder(&self) -> PathBuf {
        self.folder.join("index-lag")
    }

    fn lag(&self) -> std::sync::MutexGuard<'_, Option<Lag>> {
        self.lag.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn serve(
    database: Database,
    tasks: &TaskTracker,
    stopping: &CancellationToken,
) -> Result<String, DynamoError> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?.to_string();
    let stopping = stopping.clone();
    tasks.spawn(async move {
        let grace = {
            let stopping = stopping.clone();
            async move {
                stopping.cancelled().await;
                tokio::time::sleep(Duration::from_millis(limits::STOP_MS_MAX)).await;
            }
        };
        let serving =
            dynoxide::server::serve_with_shutdown(listener, database, stopping.cancelled_owned());
        tokio::select! {
            _ = serving => {}
            () = grace => {}
        }
    });
    Ok(address)
}

async fn sweep(database: Database, stopping: CancellationToken) {
    let pause = Duration::from_millis(limits::TTL_SWEEP_INTERVAL_MS);
    let database = Arc::new(database);
    while stopping
        .run_until_cancelled(tokio::time::sleep(pause))
        .await
        .is_some()
    {
        let database = Arc::clone(&database);
        let swept = tokio::task::spawn_blocking(move || database.sweep_ttl()).await;
        if let Ok(Err(error)) = swept {
            tracing::warn!(%error, "expired items could not be removed");
        }
    }
}

fn indexes(table: &Value) -> Vec<Value> {
    table["GlobalSecondaryIndexes"]
        .as_array()
        .cloned()
        .unwrap_or_default()
}

fn writes(action: &str) -> bool {
    matches!(
        action,
        "PutItem"
            | "UpdateItem"
            | "DeleteItem"
            | "BatchWriteItem"
            | "TransactWriteItems"
            | "ExecuteStatement"
            | "ExecuteTransaction"
            | "BatchExecuteStatement"
    )
}

fn reads_index(action: &str, body: &Bytes) -> bool {
    matches!(action, "Query" | "Scan")
        && serde_json::from_slice::<Value>(body)
            .is_ok_and(|request| request["IndexName"].is_string())
}

fn engine(error: impl std::fmt::Display) -> DynamoError {
    DynamoError::Engine(format!("the tables' engine failed: {error}"))
}
