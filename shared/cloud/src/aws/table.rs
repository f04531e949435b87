//! The one table: reads and writes of items that hold texts and numbers.
//!
//! Promised: every call ends within the table's bound. A failed condition is an answer, not an error. Keys that a batch
//! could not read are requested again, and never look like missing items. A transaction has a token, made by the SDK,
//! so that a repeat after a lost answer is the same transaction.
//!
//! A write that meets a transaction on the same item is refused at once, though the table is healthy; the SDK does not
//! retry it. It is retried a few times within the call.
//!
//! A conditional write of one item has no token: if its answer is lost it is repeated, and the repeat may be told that
//! the condition does not hold. Callers that write by condition then read again, and find their own write.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::str::FromStr;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::RequestId as _;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::operation::scan::builders::ScanFluentBuilder;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    AttributeValue, Delete, KeysAndAttributes, Put, ReturnValue,
    ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};

use super::error::CONTENDED;
use super::{Aws, Bounded, CallError, FailureCause, Late};

/// Bound of a call to the table, retries included, unless its caller has less time.
pub(crate) const CALL_MS_MAX: u64 = 10_000;
/// Requests of one batch. What is left out because the answer would exceed 16 MB fits into three; what is left out
/// because the table is overloaded may need more.
const ROUNDS_MAX: u32 = 4;
/// Pause before the second request; doubled before each next one.
const ROUND_PAUSE_MS: u64 = 50;
/// Code of a write, and reason within a transaction, whose condition did not hold.
const LOST: &str = "ConditionalCheckFailedException";
const LOST_REASON: &str = "ConditionalCheckFailed";
/// Transient cancellation reasons (API reference, `TransactWriteItems`, "Cancellation reasons").
const PASSING_REASONS: [&str; 2] = ["ThrottlingError", "ProvisionedThroughputExceeded"];
/// Cancellation reason of a transaction that met another write of the same item.
const CONTENDED_REASON: &str = "TransactionConflict";
/// Attempts of a write that keeps meeting other writes of the same item.
pub(crate) const CONTENTIONS_MAX: u32 = 5;
/// Bounds of the random pause before each further attempt, so that two writers do not meet again.
const CONTENTION_PAUSE_MS: (u64, u64) = (20, 100);

/// Pauses before a write that met another one is retried: the longer, the more it has met.
async fn give_way(attempt: u32) {
    let (least_ms, most_ms) = CONTENTION_PAUSE_MS;
    let most_ms = most_ms * u64::from(attempt.max(4) - 3);
    // Each of these states is different.
    let by_chance = RandomState::new().hash_one(attempt) % (most_ms - least_ms + 1);
    tokio::time::sleep(Duration::from_millis(least_ms + by_chance)).await;
}

/// An item, or a key: attributes by name.
pub(crate) type TableItem = HashMap<String, AttributeValue>;

/// The attribute as text, if it is text.
pub(crate) fn text<'a>(item: &'a TableItem, name: &str) -> Option<&'a str> {
    item.get(name)?.as_s().ok().map(String::as_str)
}

/// The attribute as a number, if it is a number of this type.
pub(crate) fn number<T: FromStr>(item: &TableItem, name: &str) -> Option<T> {
    item.get(name)?.as_n().ok()?.parse().ok()
}

/// A text attribute.
pub(crate) fn s(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

/// A set attribute of one text.
pub(crate) fn set_of(text: String) -> AttributeValue {
    AttributeValue::Ss(vec![text])
}

/// The texts of a set; none if there is no set.
pub(crate) fn set(item: &TableItem, name: &str) -> Vec<String> {
    item.get(name).and_then(|set| set.as_ss().ok()).cloned().unwrap_or_default()
}

/// A number attribute.
pub(crate) fn n(number: impl Into<u64>) -> AttributeValue {
    AttributeValue::N(number.into().to_string())
}

/// A page of items.
#[derive(Debug)]
pub(crate) struct ItemPage {
    pub(crate) items: Vec<TableItem>,
    /// Key after which the next page begins; `None` on the last page.
    pub(crate) next: Option<TableItem>,
}

/// Result of a transaction.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Transacted {
    /// Written.
    Done,
    /// Nothing was written: the conditions of these writes, by their places, did not hold. With the item, if the write
    /// shows it.
    Lost(Vec<(usize, Option<TableItem>)>),
}

/// A write of one item, with its expressions and the names and values that they use.
#[derive(Debug, Clone)]
pub(crate) struct ItemWrite {
    change: ItemChange,
    condition: Option<String>,
    /// If the condition does not hold in a transaction, the item is wanted as it is.
    shows_item: bool,
    names: HashMap<String, String>,
    values: TableItem,
}

#[derive(Debug, Clone)]
enum ItemChange {
    /// Replaces the item.
    Put(TableItem),
    /// Updates the item with this key by the expression.
    Update(TableItem, String),
    /// Deletes the item with this key, if it exists.
    Delete(TableItem),
}

impl ItemWrite {
    const fn of(change: ItemChange, names: HashMap<String, String>, values: TableItem) -> Self {
        Self { change, condition: None, shows_item: false, names, values }
    }

    /// Writes an item; an existing one is replaced.
    pub(crate) fn put(item: TableItem) -> Self {
        Self::of(ItemChange::Put(item), HashMap::new(), TableItem::new())
    }

    /// Updates attributes of an item, or creates it.
    pub(crate) fn update(key: TableItem, expression: impl Into<String>) -> Self {
        let change = ItemChange::Update(key, expression.into());
        Self::of(change, HashMap::new(), TableItem::new())
    }

    /// Deletes an item, if it exists.
    pub(crate) fn delete(key: TableItem) -> Self {
        Self::of(ItemChange::Delete(key), HashMap::new(), TableItem::new())
    }

    /// Adds the condition of the write.
    pub(crate) fn condition(mut self, expression: &str) -> Self {
        self.condition = Some(expression.to_owned());
        self
    }

    /// If the condition does not hold in a transaction, [`Transacted::Lost`] has the item as it is.
    pub(crate) const fn showing_item(mut self) -> Self {
        self.shows_item = true;
        self
    }

    /// Writes only if the item's `version` is this one (0: the item does not exist yet).
    pub(crate) fn if_version(self, expected: u64) -> Self {
        let named = self.name("#version", "version");
        match expected {
            0 => named.condition("attribute_not_exists(#version)"),
            _ => named.condition("#version = :expected").value(":expected", n(expected)),
        }
    }

    /// Defines a name placeholder of the expressions.
    pub(crate) fn name(mut self, placeholder: &str, name: impl Into<String>) -> Self {
        self.names.insert(placeholder.to_owned(), name.into());
        self
    }

    /// Defines a value placeholder of the expressions.
    pub(crate) fn value(mut self, placeholder: &str, value: AttributeValue) -> Self {
        self.values.insert(placeholder.to_owned(), value);
        self
    }

    /// The write as part of a transaction in this table.
    fn transactional(self, table: &str) -> Result<TransactWriteItem, CallError> {
        let (names, values) = (some(self.names), some(self.values));
        let old = self.shows_item.then_some(ReturnValuesOnConditionCheckFailure::AllOld);
        let of = TransactWriteItem::builder();
        let built = match self.change {
            ItemChange::Put(item) => Put::builder()
                .table_name(table)
                .set_item(Some(item))
                .set_condition_expression(self.condition)
                .set_return_values_on_condition_check_failure(old)
                .set_expression_attribute_names(names)
                .set_expression_attribute_values(values)
                .build()
                .map(|put| of.put(put)),
            ItemChange::Update(key, expression) => Update::builder()
                .table_name(table)
                .set_key(Some(key))
                .update_expression(expression)
                .set_condition_expression(self.condition)
                .set_return_values_on_condition_check_failure(old)
                .set_expression_attribute_names(names)
                .set_expression_attribute_values(values)
                .build()
                .map(|update| of.update(update)),
            ItemChange::Delete(key) => Delete::builder()
                .table_name(table)
                .set_key(Some(key))
                .set_condition_expression(self.condition)
                .set_return_values_on_condition_check_failure(old)
                .set_expression_attribute_names(names)
                .set_expression_attribute_values(values)
                .build()
                .map(|delete| of.delete(delete)),
        };
        built.map(|write| write.build()).map_err(unwritten)
    }
}

/// The SDK's own check of a request found a missing field.
fn unwritten(error: aws_sdk_dynamodb::error::BuildError) -> CallError {
    CallError::Unsigned { place: "DynamoDB".to_owned(), why: error.to_string() }
}

/// Whether a write met another write of the same item. The log counts these separately from failures.
fn is_contended<T>(written: &Result<T, CallError>) -> bool {
    let is_contended =
        written.as_ref().is_err_and(|error| error.cause() == FailureCause::Contended);
    if is_contended {
        tracing::info!(event = "table.contended", "two writes of the same item conflicted");
    }
    is_contended
}

/// `None` if empty: the table refuses an empty list of names or values.
fn some<V>(map: HashMap<String, V>) -> Option<HashMap<String, V>> {
    (!map.is_empty()).then_some(map)
}

/// A table of the stack, by its name.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    aws: Late<Client>,
    name: String,
}

impl Table {
    /// Table with this name. Its calls end within `ms_max` milliseconds.
    pub(crate) fn new(aws: &Aws, name: &str, ms_max: u64) -> Self {
        Self { aws: Late::new(aws.clone(), Aws::dynamodb, ms_max), name: name.to_owned() }
    }

    fn aws(&self) -> &Bounded<Client> {
        self.aws.get()
    }

    /// Reads an item consistently, if it exists.
    ///
    /// # Errors
    /// [`CallError`].
    pub(crate) async fn get(&self, key: TableItem) -> Result<Option<TableItem>, CallError> {
        let get = self.aws().client.get_item().table_name(&self.name);
        let got = get.set_key(Some(key)).consistent_read(true).send().await;
        Ok(got.map_err(|e| self.aws().failed(e))?.item)
    }

    /// Like [`Table::get`], but reads only these attributes.
    ///
    /// # Errors
    /// [`CallError`].
    pub(crate) async fn get_of(
        &self,
        key: TableItem,
        attributes: &[&str],
    ) -> Result<Option<TableItem>, CallError> {
        let names = (0..attributes.len()).map(|place| format!("#a{place}"));
        let names: Vec<String> = names.collect();
        let mut get = self.aws().client.get_item().table_name(&self.name);
        for (name, attribute) in names.iter().zip(attributes) {
            get = get.expression_attribute_names(name, *attribute);
        }
        let get = get.set_key(Some(key)).projection_expression(names.join(", "));
        let got = get.consistent_read(true).send().await;
        Ok(got.map_err(|e| self.aws().failed(e))?.item)
    }

    /// Reads the items with these keys consistently, at most a hundred, in no order. Missing items are left out.
    ///
    /// # Errors
    /// [`CallError`]; if some of them could not be read, [`CallError::Partial`].
    pub(crate) async fn get_all(&self, keys: Vec<TableItem>) -> Result<Vec<TableItem>, CallError> {
        let Bounded { place, ms_max, .. } = self.aws();
        let bound = Duration::from_millis(*ms_max);
        let reading = tokio::time::timeout(bound, self.batch(keys));
        reading
            .await
            .unwrap_or_else(|_| Err(CallError::Late { place: place.to_string(), ms: *ms_max }))
    }

    async fn batch(&self, mut keys: Vec<TableItem>) -> Result<Vec<TableItem>, CallError> {
        let mut items = Vec::new();
        for round in 0..ROUNDS_MAX {
            if round > 0 {
                tokio::time::sleep(Duration::from_millis(ROUND_PAUSE_MS << round)).await;
            }
            let wanted = KeysAndAttributes::builder()
                .set_keys(Some(keys))
                .consistent_read(true)
                .build()
                .map_err(unwritten)?;
            let get = self.aws().client.batch_get_item();
            let got = get.request_items(&self.name, wanted).send().await;
            let got = got.map_err(|e| self.aws().failed(e))?;
            // An answer always has a list for the table, even if empty; an answer without one does not mean "no items".
            let mut found = got.responses.ok_or_else(|| self.aws().unreadable("Responses"))?;
            items.extend(found.remove(&self.name).unwrap_or_default());
            let left = got.unprocessed_keys.unwrap_or_default().remove(&self.name);
            keys = match left {
                Some(left) if !left.keys.is_empty() => left.keys,
                _ => return Ok(items),
            };
        }
        Err(CallError::Partial { place: self.aws().place.to_string() })
    }

    /// Puts, updates or deletes. False: the condition does not hold.
    ///
    /// # Errors
    /// [`CallError`]; unless the call was refused, it is unknown whether it has written.
    pub(crate) async fn write(&self, write: ItemWrite) -> Result<bool, CallError> {
        Ok(self.written(write, ReturnValue::None).await?.is_some())
    }

    /// Updates, and returns the whole item after the update. `None`: the condition does not hold.
    ///
    /// # Errors
    /// As [`Table::write`].
    pub(crate) async fn update(&self, write: ItemWrite) -> Result<Option<TableItem>, CallError> {
        match self.written(write, ReturnValue::AllNew).await? {
            Some(Some(item)) => Ok(Some(item)),
            Some(None) => Err(self.aws().unreadable("Attributes")),
            None => Ok(None),
        }
    }

    /// Updates, and returns the attributes that were set. `None`: the condition does not hold.
    ///
    /// # Errors
    /// As [`Table::write`].
    pub(crate) async fn change(&self, write: ItemWrite) -> Result<Option<TableItem>, CallError> {
        let set = self.written(write, ReturnValue::UpdatedNew).await?;
        Ok(set.map(Option::unwrap_or_default))
    }

    /// Updates, and returns the whole item from before the update, empty if there was none. `None`: the condition does
    /// not hold.
    ///
    /// # Errors
    /// As [`Table::write`].
    pub(crate) async fn exchange(&self, write: ItemWrite) -> Result<Option<TableItem>, CallError> {
        let before = self.written(write, ReturnValue::AllOld).await?;
        Ok(before.map(Option::unwrap_or_default))
    }

    /// `None`: the condition does not hold; otherwise the requested attributes of an update.
    async fn written(
        &self,
        write: ItemWrite,
        answered: ReturnValue,
    ) -> Result<Option<Option<TableItem>>, CallError> {
        for attempt in 1..CONTENTIONS_MAX {
            let written = self.written_once(write.clone(), answered.clone()).await;
            if !is_contended(&written) {
                return written;
            }
            give_way(attempt).await;
        }
        self.written_once(write, answered).await
    }

    async fn written_once(
        &self,
        write: ItemWrite,
        answered: ReturnValue,
    ) -> Result<Option<Option<TableItem>>, CallError> {
        let (names, values) = (some(write.names), some(write.values));
        let (client, table) = (&self.aws().client, &self.name);
        let written = match write.change {
            ItemChange::Put(item) => client
                .put_item()
                .table_name(table)
                .set_item(Some(item))
                .set_condition_expression(write.condition)
                .set_expression_attribute_names(names)
                .set_expression_attribute_values(values)
                .send()
                .await
                .map(|_| None)
                .map_err(|e| self.aws().failed(e)),
            ItemChange::Update(key, expression) => client
                .update_item()
                .table_name(table)
                .set_key(Some(key))
                .update_expression(expression)
                .return_values(answered)
                .set_condition_expression(write.condition)
                .set_expression_attribute_names(names)
                .set_expression_attribute_values(values)
                .send()
                .await
                .map(|updated| updated.attributes)
                .map_err(|e| self.aws().failed(e)),
            ItemChange::Delete(key) => client
                .delete_item()
                .table_name(table)
                .set_key(Some(key))
                .set_condition_expression(write.condition)
                .set_expression_attribute_names(names)
                .set_expression_attribute_values(values)
                .send()
                .await
                .map(|_| None)
                .map_err(|e| self.aws().failed(e)),
        };
        match written {
            Ok(item) => Ok(Some(item)),
            Err(error) if error.code() == Some(LOST) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes all of these writes or none. False: one of the conditions does not hold.
    ///
    /// # Errors
    /// As [`Table::write`].
    pub(crate) async fn transact(&self, writes: Vec<ItemWrite>) -> Result<bool, CallError> {
        let written = self.transact_showing(writes, CONTENTIONS_MAX).await?;
        Ok(matches!(written, Transacted::Done))
    }

    /// As [`Self::transact`], with this many attempts, and which conditions did not hold.
    pub(crate) async fn transact_showing(
        &self,
        writes: Vec<ItemWrite>,
        attempts: u32,
    ) -> Result<Transacted, CallError> {
        let writes = writes.into_iter().map(|write| write.transactional(&self.name));
        let writes: Vec<_> = writes.collect::<Result<_, _>>()?;
        for attempt in 1..attempts {
            let written = self.transact_once(writes.clone()).await;
            if !is_contended(&written) {
                return written;
            }
            give_way(attempt).await;
        }
        self.transact_once(writes).await
    }

    async fn transact_once(&self, writes: Vec<TransactWriteItem>) -> Result<Transacted, CallError> {
        let transaction = self.aws().client.transact_write_items();
        let Err(error) = transaction.set_transact_items(Some(writes)).send().await else {
            return Ok(Transacted::Done);
        };
        if let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) =
            error.as_service_error()
        {
            let reasons = || cancelled.cancellation_reasons().iter();
            let lost = reasons().enumerate().filter(|(_, of)| of.code() == Some(LOST_REASON));
            let lost: Vec<_> = lost.map(|(nth, of)| (nth, of.item().cloned())).collect();
            if !lost.is_empty() {
                return Ok(Transacted::Lost(lost));
            }
            let refused = |code: &str, message: &str| CallError::Refused {
                place: self.aws().place.to_string(),
                code: code.to_owned(),
                message: message.to_owned(),
                status: 400,
                request_id: error.request_id().unwrap_or("none").to_owned(),
            };
            let codes = || reasons().filter_map(|reason| reason.code());
            if codes().any(|code| PASSING_REASONS.contains(&code)) {
                return Err(refused("ThrottlingException", "the transaction was throttled"));
            }
            if codes().any(|code| code == CONTENDED_REASON) {
                return Err(refused(
                    CONTENDED,
                    "the transaction conflicted with another write of the same item",
                ));
            }
        }
        Err(self.aws().failed(error))
    }

    /// Starts a query of a partition; complete it and pass it to [`Table::queried`].
    pub(crate) fn query(&self, condition: &str) -> QueryFluentBuilder {
        let query = self.aws().client.query().table_name(&self.name);
        query.key_condition_expression(condition)
    }

    /// Reads a page of a query.
    ///
    /// # Errors
    /// [`CallError`].
    pub(crate) async fn queried(&self, query: QueryFluentBuilder) -> Result<ItemPage, CallError> {
        let page = query.send().await.map_err(|e| self.aws().failed(e))?;
        Ok(ItemPage {
            items: page.items.ok_or_else(|| self.aws().unreadable("Items"))?,
            next: page.last_evaluated_key,
        })
    }

    /// Starts an eventually consistent scan of the whole table; complete it and pass it to [`Table::scanned`].
    pub(crate) fn scan(&self) -> ScanFluentBuilder {
        self.aws().client.scan().table_name(&self.name)
    }

    /// Reads a page of a scan.
    ///
    /// # Errors
    /// [`CallError`].
    pub(crate) async fn scanned(&self, scan: ScanFluentBuilder) -> Result<ItemPage, CallError> {
        let page = scan.send().await.map_err(|e| self.aws().failed(e))?;
        Ok(ItemPage {
            items: page.items.ok_or_else(|| self.aws().unreadable("Items"))?,
            next: page.last_evaluated_key,
        })
    }
}
