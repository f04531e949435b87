//! The tables' interface to the rest of the engine.

use std::path::Path;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Request, Response};
use dynoxide::Database;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::conflicts::{Met, Transactions};
use super::corrections::{as_aws_answers, failure};
use super::error::{DynamoError, engine};
use super::index_lag::IndexLag;
use super::server::{remove_expired, serve};
use crate::clock::Clock;
use crate::limits;

/// The tables of this stack.
pub(crate) struct Dynamo {
    address: String,
    client: Client<HttpConnector, Body>,
    index_lag: IndexLag,
    transactions: Transactions,
}

impl Dynamo {
    /// Opens the tables in `folder` and serves them until `stopping`.
    pub(crate) async fn start(
        folder: &Path,
        clock: Clock,
        tasks: &TaskTracker,
        stopping: &CancellationToken,
    ) -> Result<Self, DynamoError> {
        let path = folder.join("dynamodb.sqlite");
        let database = Database::new(&path.display().to_string()).map_err(engine)?;
        let address = serve(database.clone(), tasks, stopping).await?;
        tasks.spawn(remove_expired(database.clone(), stopping.clone()));
        let copies = folder.join("index-lag");
        Ok(Self {
            address,
            client: Client::builder(TokioExecutor::new()).build_http(),
            index_lag: IndexLag::new(database, copies, clock, tasks, stopping),
            transactions: Transactions::default(),
        })
    }

    /// Answers one request of the JSON protocol.
    pub(crate) async fn answer(&self, headers: HeaderMap, body: Bytes) -> Response<Body> {
        let action = headers
            .get("x-amz-target")
            .and_then(|target| target.to_str().ok())
            .and_then(|target| target.split('.').nth(1))
            .unwrap_or_default()
            .to_owned();
        match self.answer_action(&action, headers, body).await {
            Ok(response) => {
                if response.status().is_success() {
                    self.index_lag.after(&action);
                }
                response
            }
            Err(error) => failure(&error),
        }
    }

    async fn answer_action(
        &self,
        action: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Body>, DynamoError> {
        for table in self.transactions.unknown_tables(action, &body) {
            let described = json!({ "TableName": table });
            // For a missing table the tables answer themselves.
            if let Ok(described) = self.call("DescribeTable", &table, &described).await {
                self.transactions.learn(&table, &described);
            }
        }
        let transaction = match self.transactions.meet(action, &body) {
            Met::Refused(refusal) => return Ok(refusal),
            Met::Nothing(transaction) => transaction,
        };
        if let Some(transaction) = &transaction {
            transaction.lasts().await;
        }
        let copy = self.index_lag.address_for(action, &body)?;
        let address = copy.as_ref().unwrap_or(&self.address);
        let answer = as_aws_answers(action, self.forward(address, headers, body).await?).await;
        drop(transaction);
        if action == "DeleteTable" {
            self.transactions.forget_tables();
        }
        answer
    }

    /// Keeps every transaction in flight this much longer.
    pub(crate) fn set_transactions_last(&self, lasts_ms: u64) {
        self.transactions.set_lasts(lasts_ms);
    }

    /// Makes index queries answer as of `lag_ms` ago; 0 ends it.
    pub(crate) async fn set_index_lag(&self, lag_ms: i64) -> Result<(), DynamoError> {
        self.index_lag.set(lag_ms).await
    }

    /// Calls an action for the engine; `table` is named in an error.
    pub(crate) async fn call(
        &self,
        action: &'static str,
        table: &str,
        request: &Value,
    ) -> Result<Value, DynamoError> {
        let mut headers = HeaderMap::new();
        let target = format!("DynamoDB_20120810.{action}");
        let target = target.parse().expect("action names are plain text");
        headers.insert("x-amz-target", target);
        for (name, value) in [
            ("content-type", "application/x-amz-json-1.0"),
            // dynoxide requires a signature and does not verify it.
            ("x-amz-date", "20260101T000000Z"),
            (
                "authorization",
                "AWS4-HMAC-SHA256 Credential=local/20260101/local/dynamodb/aws4_request, SignedHeaders=host, Signature=local",
            ),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let body = Bytes::from(request.to_string());
        let response = self.forward(&self.address, headers, body).await?;
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
}
