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

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

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

/// An item, or a key: attributes by their names.
pub type Item = HashMap<String, Attribute>;

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Attribute {
    /// A text.
    S(String),
    /// A number, in decimal.
    N(String),
    /// Of a kind that nothing here writes.
    #[serde(skip_serializing)]
    Other,
}

impl Attribute {
    /// The text, if it is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::S(text) => Some(text),
            Self::N(_) | Self::Other => None,
        }
    }

    /// The number, if it is one of this type.
    #[must_use]
    pub fn number<T: std::str::FromStr>(&self) -> Option<T> {
        match self {
            Self::N(number) => number.parse().ok(),
            Self::S(_) | Self::Other => None,
        }
    }
}

impl From<String> for Attribute {
    fn from(text: String) -> Self {
        Self::S(text)
    }
}

impl From<&str> for Attribute {
    fn from(text: &str) -> Self {
        Self::S(text.to_owned())
    }
}

impl From<u64> for Attribute {
    fn from(number: u64) -> Self {
        Self::N(number.to_string())
    }
}

impl<'de> Deserialize<'de> for Attribute {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Kind;
        impl<'de> Visitor<'de> for Kind {
            type Value = Attribute;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value by its kind")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Attribute, A::Error> {
                let value = match map.next_key::<String>()?.as_deref() {
                    Some("S") => Attribute::S(map.next_value()?),
                    Some("N") => Attribute::N(map.next_value()?),
                    Some(_) => map.next_value::<IgnoredAny>().map(|_| Attribute::Other)?,
                    None => return Err(A::Error::custom("a value without its kind")),
                };
                match map.next_key::<IgnoredAny>()? {
                    None => Ok(value),
                    Some(_) => Err(A::Error::custom("a value of two kinds")),
                }
            }
        }
        deserializer.deserialize_map(Kind)
    }
}

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Get,
    Put,
    Update,
    Delete,
    Query,
    Scan,
}

impl Action {
    /// Its name, and that of the writes in a transaction.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Get => ("GetItem", "Get"),
            Self::Put => ("PutItem", "Put"),
            Self::Update => ("UpdateItem", "Update"),
            Self::Delete => ("DeleteItem", "Delete"),
            Self::Query => ("Query", "Query"),
            Self::Scan => ("Scan", "Scan"),
        }
    }
}

/// One request, with its expressions and the names and values that they use.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    #[serde(skip)]
    action: Action,
    table_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Item>,
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<Item>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index_name: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    consistent_read: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exclusive_start_key: Option<Item>,
    #[serde(skip_serializing_if = "Option::is_none")]
    return_values: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    update_expression: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    condition_expression: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_condition_expression: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filter_expression: Option<String>,
    #[serde(skip_serializing_if = "HashMap::is_empty")]
    expression_attribute_names: HashMap<String, String>,
    #[serde(skip_serializing_if = "HashMap::is_empty")]
    expression_attribute_values: Item,
}

impl Request {
    fn new(action: Action) -> Self {
        Self {
            action,
            table_name: String::new(),
            key: None,
            item: None,
            index_name: None,
            consistent_read: None,
            limit: None,
            exclusive_start_key: None,
            return_values: None,
            update_expression: None,
            condition_expression: None,
            key_condition_expression: None,
            filter_expression: None,
            expression_attribute_names: HashMap::new(),
            expression_attribute_values: HashMap::new(),
        }
    }

    /// Writes an item, in the place of the one that stands there.
    #[must_use]
    pub fn put(item: Item) -> Self {
        let item = Some(item);
        Self {
            item,
            ..Self::new(Action::Put)
        }
    }

    /// Changes attributes of an item, or makes it.
    #[must_use]
    pub fn update(key: Item, expression: impl Into<String>) -> Self {
        Self {
            key: Some(key),
            update_expression: Some(expression.into()),
            ..Self::new(Action::Update)
        }
    }

    /// Deletes an item, if it is there.
    #[must_use]
    pub fn delete(key: Item) -> Self {
        Self {
            key: Some(key),
            ..Self::new(Action::Delete)
        }
    }

    /// Reads the items of a partition of the table, consistently.
    #[must_use]
    pub fn query(condition: &str) -> Self {
        Self {
            key_condition_expression: Some(condition.to_owned()),
            consistent_read: Some(true),
            ..Self::new(Action::Query)
        }
    }

    /// Reads what an index holds, which lags behind the table.
    #[must_use]
    pub fn query_index(index: &'static str, condition: &str) -> Self {
        Self {
            index_name: Some(index),
            consistent_read: None,
            ..Self::query(condition)
        }
    }

    /// Reads the whole table, as it was a moment ago.
    #[must_use]
    pub fn scan() -> Self {
        Self::new(Action::Scan)
    }

    /// What must hold for the write.
    #[must_use]
    pub fn condition(mut self, expression: &str) -> Self {
        self.condition_expression = Some(expression.to_owned());
        self
    }

    /// What is read and left out.
    #[must_use]
    pub fn filter(mut self, expression: &str) -> Self {
        self.filter_expression = Some(expression.to_owned());
        self
    }

    /// What a name in the expressions stands for.
    #[must_use]
    pub fn name(mut self, placeholder: &str, name: impl Into<String>) -> Self {
        let names = &mut self.expression_attribute_names;
        names.insert(placeholder.to_owned(), name.into());
        self
    }

    /// What a value in the expressions stands for.
    #[must_use]
    pub fn value(mut self, placeholder: &str, value: impl Into<Attribute>) -> Self {
        let values = &mut self.expression_attribute_values;
        values.insert(placeholder.to_owned(), value.into());
        self
    }

    /// Items that a page has at most.
    #[must_use]
    pub fn limit(mut self, items_max: u32) -> Self {
        self.limit = Some(items_max);
        self
    }

    /// From behind this key on.
    #[must_use]
    pub fn after(mut self, key: Option<Item>) -> Self {
        self.exclusive_start_key = key;
        self
    }
}

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
        let request = Request {
            key: Some(key),
            consistent_read: Some(true),
            ..Request::new(Action::Get)
        };
        let got: Got = self.send(request).await?;
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
        let return_values = Some("ALL_NEW");
        let written = self.written(Request {
            return_values,
            ..request
        });
        match written.await? {
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
        let named = |write: Request| HashMap::from([(write.action.names().1, self.own(write))]);
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

    async fn send<T: serde::de::DeserializeOwned>(&self, request: Request) -> Result<T, CallError> {
        let action = request.action.names().0;
        self.call(action, &self.own(request)).await
    }

    fn own(&self, request: Request) -> Request {
        Request {
            table_name: self.name.clone(),
            ..request
        }
    }

    async fn call<T: serde::de::DeserializeOwned>(
        &self,
        action: &str,
        request: &impl Serialize,
    ) -> Result<T, CallError> {
        let service = Service::Tables;
        self.aws.typed(service, action, request, self.ms_max).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_by_its_kind_and_one_of_a_strange_kind_is_not_mistaken() {
        let read = |text: &str| serde_json::from_str::<Attribute>(text).ok();
        assert_eq!(read(r#"{"S":"a\"ä"}"#), Some(Attribute::from("a\"ä")));
        assert_eq!(read(r#"{"N":"7"}"#), Some(Attribute::from(7)));
        for strange in [
            r#"{"BOOL":true}"#,
            r#"{"M":{"a":{"S":"b"}}}"#,
            r#"{"NULL":true}"#,
            r#"{"L":[]}"#,
        ] {
            assert_eq!(read(strange), Some(Attribute::Other), "{strange}");
        }
        for wrong in ["{}", "7", r#"{"S":7}"#, r#"{"S":"a","N":"7"}"#, "null"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert_eq!(Attribute::from(7).text(), None);
        assert_eq!(Attribute::from("7").number::<u64>(), None);
        assert_eq!(Attribute::N("-1".to_owned()).number::<u64>(), None);
        assert!(serde_json::to_string(&Attribute::Other).is_err());
    }

    #[test]
    fn a_request_says_what_it_uses_and_nothing_else() {
        let key = HashMap::from([("thread".to_owned(), Attribute::from("a"))]);
        let request = Request::update(key, "SET #mark = :mark")
            .condition("#version = :version")
            .name("#mark", "cancel#1")
            .value(":version", 7);
        let written: serde_json::Value =
            serde_json::from_str(&serde_json::to_string(&request).expect("JSON")).expect("JSON");
        assert_eq!(
            written,
            serde_json::json!({
                "TableName": "", "Key": {"thread": {"S": "a"}},
                "UpdateExpression": "SET #mark = :mark", "ConditionExpression": "#version = :version",
                "ExpressionAttributeNames": {"#mark": "cancel#1"},
                "ExpressionAttributeValues": {":version": {"N": "7"}},
            })
        );
    }
}
