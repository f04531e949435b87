//! The tables, for the engine's own process: no connection, signature or breakpoint.

use std::sync::Arc;

use serde_json::Value;

use crate::dynamodb::Dynamo;

/// Reads the tables of a running engine.
#[derive(Clone)]
pub struct Tables(pub(crate) Arc<Dynamo>);

impl Tables {
    /// The answer to a `Scan` request (`DynamoDB` API reference); `None` if it is refused.
    pub async fn scan(&self, request: &Value) -> Option<Value> {
        let table = request["TableName"].as_str().unwrap_or_default();
        self.0.call("Scan", table, request).await.ok()
    }
}
