//! The tables, for the program that the engine runs in: without a connection, a signature or a breakpoint.

use std::sync::Arc;

use serde_json::Value;

use crate::dynamodb::Dynamo;

/// Reads the tables of a running engine.
#[derive(Clone)]
pub struct Tables(pub(crate) Arc<Dynamo>);

impl Tables {
    /// What `Scan` answers to this request (`DynamoDB` API reference), or nothing if it refuses.
    pub async fn scan(&self, request: &Value) -> Option<Value> {
        let table = request["TableName"].as_str().unwrap_or_default();
        self.0.call("Scan", table, request).await.ok()
    }
}
