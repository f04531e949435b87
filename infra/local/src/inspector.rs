//! What the page shows beside a thread: session records from the table, sandboxes from the provider.

use std::sync::{Arc, OnceLock};

use bobbin_core::ids::sandbox_name;
use bobbin_core::ledger::Entry;
use bobbin_core::session::Session;
use bobbin_local_aws::Tables;
use bobbin_local_chat::Inspector;
use bobbin_local_daytona::Provider;
use futures::future::{BoxFuture, FutureExt};
use serde_json::{Value, json};

use crate::STACK;

/// Items of the table that are read at once, and how many such pages.
const PAGE_ITEMS: usize = 500;
const PAGES_MAX: usize = 10;

/// Reads the table and the provider.
pub struct StackInspector {
    /// The tables and the name of the stack's own, once they are up.
    pub table: Arc<OnceLock<(Tables, String)>>,
    /// The provider, whose sandboxes are listed.
    pub provider: Arc<Provider>,
    /// The second one, likewise.
    pub vercel: Arc<bobbin_local_vercel::Provider>,
}

impl StackInspector {
    async fn scan(&self) -> Option<Vec<Value>> {
        let mut items = Vec::new();
        let mut start = Value::Null;
        for _ in 0..PAGES_MAX {
            let mut page = self.page(&start).await?;
            items.append(page["Items"].as_array_mut()?);
            start = page["LastEvaluatedKey"].take();
            if start.is_null() {
                break;
            }
        }
        let records = items.iter().filter_map(|item| record(item, &items));
        Some(records.collect())
    }

    async fn page(&self, start: &Value) -> Option<Value> {
        let (tables, table) = self.table.get()?;
        let mut request = json!({"TableName": table, "Limit": PAGE_ITEMS});
        if !start.is_null() {
            request["ExclusiveStartKey"] = start.clone();
        }
        tables.scan(&request).await
    }
}

/// A thread's record as it is stored, with that of its sandbox and its name at the provider, and what the ledger knows of its
/// ended turns.
fn record(item: &Value, items: &[Value]) -> Option<Value> {
    if item["item"]["S"] != "session" {
        return None;
    }
    let text = item["record"]["S"].as_str()?;
    let is_sandbox =
        |one: &&Value| one["thread"] == item["thread"] && one["item"]["S"] == "sandbox";
    let sandbox = items.iter().find(is_sandbox);
    let sandbox = sandbox.and_then(|one| one["record"]["S"].as_str());
    let mut shown: Value = serde_json::from_str(text).ok()?;
    let session = Session::decode(text, sandbox).ok()?;
    shown["sandbox"] = serde_json::from_str(&session.sandbox.encode()).ok()?;
    if session.sandbox.is_alive() {
        let (key, generation) = (session.thread.sandbox(), session.sandbox.generation);
        shown["sandbox"]["name"] = sandbox_name(STACK, &key, generation).into();
    }
    for ended in shown["ended"].as_array_mut()? {
        let name = format!("turn#{}", ended["id"].as_str()?);
        let known = items
            .iter()
            .find(|one| one["thread"] == item["thread"] && one["item"]["S"] == name.as_str());
        let entry = known.and_then(|one| one["entry"]["S"].as_str());
        if let Some(entry) = entry.and_then(|text| serde_json::from_str::<Entry>(text).ok()) {
            ended["took_ms"] = entry.took_ms().into();
            ended["tokens"] = entry.usage.tokens.into();
        }
    }
    Some(shown)
}

impl Inspector for StackInspector {
    fn sessions(&self) -> BoxFuture<'_, Vec<Value>> {
        async { self.scan().await.unwrap_or_default() }.boxed()
    }

    fn sandboxes(&self) -> BoxFuture<'_, Vec<Value>> {
        let list = self.provider.sandboxes().into_iter();
        let shown = list.map(|sandbox| json!({"id": sandbox.id, "name": sandbox.name, "state": sandbox.state, "labels": sandbox.labels}));
        let others = self.vercel.sandboxes().into_iter();
        let others = others.map(|sandbox| json!({"id": sandbox.name, "name": sandbox.name, "state": sandbox.state, "labels": sandbox.labels}));
        let shown: Vec<Value> = shown.chain(others).collect();
        async move { shown }.boxed()
    }
}
