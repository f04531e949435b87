//! What the page shows beside a thread: session records from the table, sandboxes from the provider.

use std::sync::{Arc, OnceLock};

use bobbin_local_chat::Backstage;
use bobbin_local_daytona::Provider;
use futures::future::{BoxFuture, FutureExt};
use serde_json::{Value, json};

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
        let records = answer["Items"].as_array()?.iter().filter_map(|item| serde_json::from_str(item["record"]["S"].as_str()?).ok());
        Some(records.collect())
    }
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
