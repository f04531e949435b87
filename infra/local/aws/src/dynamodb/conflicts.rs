//! Transactions in flight and conflicts on their items; dynoxide itself runs requests one after another.
//!
//! As in DynamoDB's guide ("Managing complex workflows with DynamoDB transactions", conflict handling): a `PutItem`,
//! `UpdateItem` or `DeleteItem` of an item of a transaction in flight is refused with `TransactionConflictException`; a
//! transaction that shares an item with another one in flight is cancelled, with a reason for each item; so is a
//! `TransactGetItems`. A transaction with the token of one in flight is a repeat of it, and refused with
//! `TransactionInProgressException`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Response, StatusCode};
use serde_json::{Value, json};

use super::corrections::refusal;
use crate::limits;

/// An item: its table, and its key attributes in order.
type ItemKey = (String, String);

/// Key attribute names by table.
type Schemas = BTreeMap<String, Vec<String>>;

#[derive(Default)]
struct InFlight {
    items: BTreeSet<ItemKey>,
    tokens: BTreeSet<String>,
}

/// All transactions in flight.
#[derive(Clone, Default)]
pub(super) struct Transactions {
    in_flight: Arc<Mutex<InFlight>>,
    schemas: Arc<Mutex<Schemas>>,
    lasts_ms: Arc<AtomicU64>,
}

/// A transaction, in flight until this is dropped.
pub(super) struct Transaction {
    of: Transactions,
    items: Vec<ItemKey>,
    token: Option<String>,
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let mut in_flight = self.of.in_flight();
        for item in &self.items {
            in_flight.items.remove(item);
        }
        if let Some(token) = &self.token {
            in_flight.tokens.remove(token);
        }
    }
}

/// Verdict on a request.
pub(super) enum Met {
    /// No conflict: it goes to the tables; a transaction is in flight until they have answered.
    Nothing(Option<Transaction>),
    Refused(Response<Body>),
}

impl Transactions {
    /// Makes every transaction from now on last this much longer.
    pub(super) fn set_lasts(&self, lasts_ms: u64) {
        let lasts_ms = lasts_ms.min(limits::TRANSACTION_MS_MAX);
        self.lasts_ms.store(lasts_ms, Ordering::Relaxed);
    }

    /// Tables whose key attributes must be known before this request can be judged.
    pub(super) fn unknown_tables(&self, action: &str, body: &Bytes) -> Vec<String> {
        if !self.is_judged(action) {
            return Vec::new();
        }
        let known = self.schemas();
        let parsed = request(body);
        let puts = writes(action, &parsed).filter(|write| write.get("Item").is_some());
        let tables: BTreeSet<&str> = puts.filter_map(table).collect();
        let unknown = tables.into_iter().filter(|table| !known.contains_key(*table));
        unknown.map(str::to_owned).collect()
    }

    /// Stores a table's key attributes from its description.
    pub(super) fn learn(&self, table: &str, described: &Value) {
        let schema = described["Table"]["KeySchema"].as_array();
        let names = schema.into_iter().flatten();
        let names = names.filter_map(|one| one["AttributeName"].as_str());
        let names = names.map(str::to_owned).collect();
        self.schemas().insert(table.to_owned(), names);
    }

    /// Called when a table was deleted: another may take its name.
    pub(super) fn forget_tables(&self) {
        self.schemas().clear();
    }

    /// Checks a request for conflicts; a transaction without one is in flight from then on.
    pub(super) fn meet(&self, action: &str, body: &Bytes) -> Met {
        if !self.is_judged(action) {
            return Met::Nothing(None);
        }
        let parsed = request(body);
        let schemas = self.schemas();
        let keys: Vec<Option<ItemKey>> =
            writes(action, &parsed).map(|write| key(write, &schemas)).collect();
        drop(schemas);
        let mut in_flight = self.in_flight();
        let meets =
            |key: &Option<ItemKey>| key.as_ref().is_some_and(|key| in_flight.items.contains(key));
        let met: Vec<bool> = keys.iter().map(meets).collect();
        let token = parsed["ClientRequestToken"].as_str().map(str::to_owned);
        match action {
            "TransactWriteItems"
                if token.as_ref().is_some_and(|it| in_flight.tokens.contains(it)) =>
            {
                Met::Refused(in_progress())
            }
            "TransactWriteItems" | "TransactGetItems" if met.contains(&true) => {
                Met::Refused(cancelled(&met))
            }
            "TransactWriteItems" => {
                let items: Vec<ItemKey> = keys.into_iter().flatten().collect();
                in_flight.items.extend(items.iter().cloned());
                in_flight.tokens.extend(token.clone());
                Met::Nothing(Some(Transaction { of: self.clone(), items, token }))
            }
            _ if met.contains(&true) => Met::Refused(conflict()),
            _ => Met::Nothing(None),
        }
    }

    /// Whether the action is checked for conflicts: a single request only while a transaction is in flight.
    fn is_judged(&self, action: &str) -> bool {
        match action {
            "TransactWriteItems" => true,
            "PutItem" | "UpdateItem" | "DeleteItem" | "TransactGetItems" => {
                !self.in_flight().items.is_empty()
            }
            _ => false,
        }
    }

    fn in_flight(&self) -> MutexGuard<'_, InFlight> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn schemas(&self) -> MutexGuard<'_, Schemas> {
        self.schemas.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transaction {
    /// Waits for the extra duration of a transaction.
    pub(super) async fn lasts(&self) {
        let lasts_ms = self.of.lasts_ms.load(Ordering::Relaxed);
        if lasts_ms > 0 {
            tokio::time::sleep(Duration::from_millis(lasts_ms)).await;
        }
    }
}

fn request(body: &Bytes) -> Value {
    // An unreadable request has no conflict; the tables refuse it.
    serde_json::from_slice(body).unwrap_or_default()
}

/// The request's operation on each item.
fn writes<'a>(action: &str, request: &'a Value) -> impl Iterator<Item = &'a Value> {
    let is_one = !matches!(action, "TransactWriteItems" | "TransactGetItems");
    let items = request["TransactItems"].as_array();
    let each = items.into_iter().flatten().filter_map(Value::as_object);
    let each = each.filter_map(|item| item.values().next());
    is_one.then_some(request).into_iter().chain(each)
}

fn table(write: &Value) -> Option<&str> {
    write["TableName"].as_str()
}

fn key(write: &Value, schemas: &Schemas) -> Option<ItemKey> {
    let table = table(write)?;
    let attributes: BTreeMap<&str, &Value> = match (&write["Key"], &write["Item"]) {
        (Value::Object(key), _) => key.iter().map(|(name, one)| (name.as_str(), one)).collect(),
        (_, Value::Object(item)) => {
            let names = schemas.get(table)?.iter();
            names.filter_map(|name| Some((name.as_str(), item.get(name)?))).collect()
        }
        _ => return None,
    };
    Some((table.to_owned(), json!(attributes).to_string()))
}

const ONGOING: &str = "Transaction is ongoing for the item";

fn conflict() -> Response<Body> {
    refused("TransactionConflictException", json!({ "message": ONGOING }))
}

fn cancelled(met: &[bool]) -> Response<Body> {
    const CONFLICT: &str = "TransactionConflict";
    let code = |met: &bool| if *met { CONFLICT } else { "None" };
    let codes: Vec<&str> = met.iter().map(code).collect();
    let reasons = codes.iter().map(|code| match *code {
        CONFLICT => json!({ "Code": CONFLICT, "Message": ONGOING }),
        code => json!({ "Code": code }),
    });
    let message = format!(
        "Transaction cancelled, please refer cancellation reasons for specific reasons [{}]",
        codes.join(", ")
    );
    let reasons: Vec<Value> = reasons.collect();
    let members = json!({ "Message": message, "CancellationReasons": reasons });
    refused("TransactionCanceledException", members)
}

fn in_progress() -> Response<Body> {
    let message = "The transaction with the given request token is already in progress.";
    refused("TransactionInProgressException", json!({ "Message": message }))
}

fn refused(kind: &str, members: Value) -> Response<Body> {
    refusal(StatusCode::BAD_REQUEST, kind, members)
}
