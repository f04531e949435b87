//! What the page shows beside a thread: session records from the table, sandboxes from the provider.

use std::sync::{Arc, OnceLock};

use bobbin_core::ids::sandbox_name;
use bobbin_core::session::{Phase, Session};
use bobbin_local_chat::Backstage;
use bobbin_local_daytona::Provider;
use futures::future::{BoxFuture, FutureExt};
use serde_json::{Value, json};

use crate::STACK;

/// Records that the page is given.
const SESSIONS_MAX: usize = 500;

/// Reads the table and the provider.
pub struct Behind {
    /// AWS endpoint and table, once they are up.
    pub table: Arc<OnceLock<(String, String)>>,
    /// The provider.
    pub provider: Arc<Provider>,
    /// A client for loopback.
    pub client: reqwest::Client,
}

impl Behind {
    async fn scan(&self) -> Option<Vec<Value>> {
        let (endpoint, table) = self.table.get()?;
        let answer = self
            .client
            .post(endpoint)
            .header("x-amz-target", "DynamoDB_20120810.Scan")
            .header("content-type", "application/x-amz-json-1.0")
            .header("x-amz-date", "20200101T000000Z")
            .header("authorization", "AWS4-HMAC-SHA256 Credential=local/20200101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0")
            .body(json!({"TableName": table, "Limit": SESSIONS_MAX}).to_string())
            .send()
            .await
            .ok()?;
        let answer: Value = answer.json().await.ok()?;
        Some(
            answer["Items"]
                .as_array()?
                .iter()
                .filter_map(record)
                .collect(),
        )
    }
}

/// The record as it is stored, with the name of its sandbox beside it.
fn record(item: &Value) -> Option<Value> {
    let text = item["record"]["S"].as_str()?;
    let mut shown: Value = serde_json::from_str(text).ok()?;
    let session = Session::decode(text).ok()?;
    if !matches!(session.phase, Phase::Destroyed | Phase::Error) {
        shown["sandbox"] = sandbox_name(STACK, &session.thread, session.generation).into();
    }
    Some(shown)
}

impl Backstage for Behind {
    fn sessions(&self) -> BoxFuture<'_, Vec<Value>> {
        async { self.scan().await.unwrap_or_default() }.boxed()
    }

    fn sandboxes(&self) -> BoxFuture<'_, Vec<Value>> {
        let list = self.provider.sandboxes().into_iter();
        let shown = list.map(|sandbox| json!({"id": sandbox.id, "name": sandbox.name, "state": sandbox.state, "labels": sandbox.labels}));
        let shown: Vec<Value> = shown.collect();
        async move { shown }.boxed()
    }
}
