//! The tables, for the engine's own process: no connection, signature or breakpoint.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::dynamodb::{Dynamo, DynamoError};

/// What `DynamoDB` says of a condition that does not hold.
const STANDS: &str = "The conditional request failed";

/// Reads the tables of a running engine.
#[derive(Clone)]
pub struct Tables(pub(crate) Arc<Dynamo>);

impl Tables {
    /// The answer to a `Scan` request (`DynamoDB` API reference); `None` if it is refused.
    pub async fn scan(&self, request: &Value) -> Option<Value> {
        let table = request["TableName"].as_str().unwrap_or_default();
        self.0.call("Scan", table, request).await.ok()
    }

    /// Puts an item unless there is one with its key.
    ///
    /// # Errors
    /// What the engine refuses, an existing item aside.
    pub async fn put_new(&self, table: &str, item: &Value) -> Result<(), String> {
        let request = json!({"TableName": table, "Item": item, "ConditionExpression": "attribute_not_exists(thread)"});
        match self.0.call("PutItem", table, &request).await {
            Err(DynamoError::Refused { reason, .. }) if reason == STANDS => Ok(()),
            Err(error) => Err(error.to_string()),
            Ok(_) => Ok(()),
        }
    }
}
