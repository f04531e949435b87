//! The tables, for the program that the engine runs in: without a connection, a signature or a breakpoint.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue};
use serde_json::Value;

use crate::dynamodb::Dynamo;
use crate::limits;

/// Reads tables.
#[derive(Clone)]
pub struct Tables(pub(crate) Arc<Dynamo>);

impl Tables {
    /// What `Scan` answers to this request (`DynamoDB` API reference), or nothing if it refuses.
    pub async fn scan(&self, request: &Value) -> Option<Value> {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-amz-target", "DynamoDB_20120810.Scan"),
            ("content-type", "application/x-amz-json-1.0"),
            // The tables' own server looks for one, and not at what is in it.
            ("x-amz-date", "20200101T000000Z"),
            (
                "authorization",
                "AWS4-HMAC-SHA256 Credential=inside/20200101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0",
            ),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let answer = self.0.answer(headers, request.to_string().into()).await;
        if !answer.status().is_success() {
            return None;
        }
        let body = axum::body::to_bytes(answer.into_body(), limits::REQUEST_BYTES_MAX).await;
        serde_json::from_slice(&body.ok()?).ok()
    }
}
