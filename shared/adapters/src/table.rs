//! DynamoDB's JSON, as far as one table of texts and numbers needs it.
//!
//! Promised: every call is over within the table's bound; a condition that does not hold is an answer and no error; what a
//! batch could not read is asked for again, and never looks like what is not there; a transaction bears a token, so that
//! its repeat after a lost answer is the same transaction. Deliberately absent: kinds of attributes that nothing here
//! writes; projections, counts, parallel scans; `x-amz-crc32`, at which the SDK for Rust did not look either: TLS lets no
//! changed byte through.
//!
//! A conditional write of one item has no token: one whose answer was lost is repeated, and the repeat may be told that its
//! condition does not hold. Whoever writes by condition reads again then, and finds its own write.

mod attribute;
mod request;

use std::collections::HashMap;
use std::time::Duration;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

pub use self::attribute::{Attribute, Item};
pub use self::request::Request;
use crate::direct::{CallError, Direct, Service, pause, token};

/// A call of the table takes no longer than this, repeats included, unless its caller has less time.
pub const CALL_MS_MAX: u64 = 10_000;
/// Times that a batch is asked for. What is left out of an answer for its length, of 16 MB, fits into three; what is left
/// out because the table has too much to do may come later.
const ROUNDS_MAX: u32 = 4;
/// Before the second of them; twice that before the next.
const ROUND_PAUSE_MS_MAX: u64 = 100;
const LOST: &str = "ConditionalCheckFailedException";
const CANCELLED: &str = "TransactionCanceledException";
/// The reason of a transaction's write whose condition did not hold.
const LOST_REASON: &str = "ConditionalCheckFailed";

/// A page of items.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Page {
    /// What was found.
    pub items: Vec<Item>,
    /// Behind which key the next page begins; none: this was the last.
    #[serde(rename = "LastEvaluatedKey")]
    pub next: Option<Item>,
}

/// Keys of a batch, in requests and, as far as they were not read, in answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Wanted {
    keys: Vec<Item>,
    #[serde(default)]
    consistent_read: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Batch<'a> {
    request_items: HashMap<&'a str, Wanted>,
}

/// There is always a list of the table, be it empty.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Batched {
    responses: HashMap<String, Vec<Item>>,
    #[serde(default)]
    unprocessed_keys: HashMap<String, Wanted>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Got {
    item: Option<Item>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Written {
    attributes: Option<Item>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Transaction {
    client_request_token: String,
    transact_items: Vec<HashMap<&'static str, Request>>,
}

/// A table.
#[derive(Debug, Clone)]
pub struct Table {
    aws: Direct,
    name: String,
    ms_max: u64,
}

impl Table {
    /// The one of this name. Its calls are over within [`CALL_MS_MAX`].
    #[must_use]
    pub fn new(aws: Direct, name: &str) -> Self {
        Self {
            aws,
            name: name.to_owned(),
            ms_max: CALL_MS_MAX,
        }
    }

    /// The same with calls that are over within so many milliseconds.
    #[must_use]
    pub fn within(self, ms_max: u64) -> Self {
        Self { ms_max, ..self }
    }

    /// Reads an item consistently, if there is one.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn get(&self, key: Item) -> Result<Option<Item>, CallError> {
        let got: Got = self.send(Request::get(key)).await?;
        Ok(got.item)
    }

    /// Reads the items of these keys consistently, at most a hundred, in no order. Those that are not there are left out.
    ///
    /// # Errors
    /// [`CallError`]; where some of them could not be read, [`CallError::Partial`].
    pub async fn get_all(&self, keys: Vec<Item>) -> Result<Vec<Item>, CallError> {
        let reading = tokio::time::timeout(Duration::from_millis(self.ms_max), self.batch(keys));
        reading.await.unwrap_or(Err(CallError::Late(self.ms_max)))
    }

    async fn batch(&self, mut keys: Vec<Item>) -> Result<Vec<Item>, CallError> {
        let mut items = Vec::new();
        for round in 1..=ROUNDS_MAX {
            let wanted = Wanted {
                keys,
                consistent_read: true,
            };
            let batch = Batch {
                request_items: HashMap::from([(self.name.as_str(), wanted)]),
            };
            let mut answer: Batched = self.call("BatchGetItem", &batch).await?;
            items.extend(answer.responses.remove(&self.name).unwrap_or_default());
            keys = match answer.unprocessed_keys.remove(&self.name) {
                Some(left) if !left.keys.is_empty() => left.keys,
                _ => return Ok(items),
            };
            if round < ROUNDS_MAX {
                pause(ROUND_PAUSE_MS_MAX, round).await;
            }
        }
        Err(CallError::Partial)
    }

    /// Puts, updates or deletes. False: the condition does not hold.
    ///
    /// # Errors
    /// [`CallError`]; whether a call that was not refused has written is unknown.
    pub async fn write(&self, request: Request) -> Result<bool, CallError> {
        Ok(self.written(request).await?.is_some())
    }

    /// Updates, and answers the whole item as it is then. None: the condition does not hold.
    ///
    /// # Errors
    /// As [`Table::write`].
    pub async fn update(&self, request: Request) -> Result<Option<Item>, CallError> {
        match self.written(request.answering_all()).await? {
            Some(written) => written.attributes.ok_or(CallError::Unreadable).map(Some),
            None => Ok(None),
        }
    }

    async fn written(&self, request: Request) -> Result<Option<Written>, CallError> {
        match self.send(request).await {
            Ok(written) => Ok(Some(written)),
            Err(error) if error.code() == Some(LOST) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes all of these writes or none. False: the condition of one of them does not hold.
    ///
    /// # Errors
    /// As [`Table::write`].
    pub async fn transact(&self, writes: Vec<Request>) -> Result<bool, CallError> {
        let named =
            |write: Request| HashMap::from([(write.action.names().1, write.to(&self.name))]);
        let transaction = Transaction {
            client_request_token: token(),
            transact_items: writes.into_iter().map(named).collect(),
        };
        match self
            .call::<IgnoredAny>("TransactWriteItems", &transaction)
            .await
        {
            Ok(_) => Ok(true),
            Err(CallError::Refused { code, reasons, .. })
                if code == CANCELLED && reasons.iter().any(|reason| reason == LOST_REASON) =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Reads a page of a query or a scan.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn page(&self, request: Request) -> Result<Page, CallError> {
        self.send(request).await
    }

    async fn send<T: DeserializeOwned>(&self, request: Request) -> Result<T, CallError> {
        let action = request.action.names().0;
        self.call(action, &request.to(&self.name)).await
    }

    async fn call<T: DeserializeOwned>(
        &self,
        action: &str,
        request: &impl Serialize,
    ) -> Result<T, CallError> {
        let service = Service::Tables;
        self.aws.typed(service, action, request, self.ms_max).await
    }
}
