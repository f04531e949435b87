//! DynamoDB: the record of a thread, written by condition only, and the marks of the control lane beside it.
//!
//! One item a thread (`thread`, `item = "session"`): `record` (JSON), `version`, `phase`, `tenant`, while something is
//! due `due_shard` and `due_at`, and a mark each as an attribute of its own (`cancel#<turn>`, `ask#<ask>`,
//! `queued#<turn>`, `now#<turn>`), so that the control lane and the worker never write the same attribute. Beside it the
//! ledger, an item a turn (`item = "turn#<turn>"`): `entry` (JSON), `tenant`, and `expires_at`, by which the table forgets
//! it. What the turn changed in the files is an item of its own (`item = "diff#<turn>"`): `patch` (text), and the same
//! beside it. What belongs to a tenant and to no thread is in [`tenant`].

mod tenant;
mod whole;

pub use tenant::Tenants;

pub use whole::Page;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    AttributeValue, KeysAndAttributes, Put, ReturnValue, TransactWriteItem, Update,
};
use bobbin_core::failure::Failure;
use bobbin_core::ids::{Ms, ThreadKey};
use bobbin_core::ledger::Entry;
use bobbin_core::message::Person;
use bobbin_core::ports::Loaded;
use bobbin_core::schema::{self, Kept, Shape, Unreadable};
use bobbin_core::session::{Marks, Queued, Session, Settlement};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::aws::words;

const ITEM: &str = "item";
const SESSION: &str = "session";
const TURN: &str = "turn#";
const ENTRY: &str = "entry";
const DIFF: &str = "diff#";
const PATCH: &str = "patch";
const CANCEL: &str = "cancel#";
const ASK: &str = "ask#";
const QUEUED: &str = "queued#";
const NOW: &str = "now#";
const CONDITION_FAILED: &str = "ConditionalCheckFailedException";
/// The code of a transaction's item whose condition did not hold.
const LOST_CONDITION: &str = "ConditionalCheckFailed";
/// Entries that one call reads: the table answers at most 100.
const ENTRIES_MAX: usize = 100;
/// Records that one call reads.
pub const RECORDS_MAX: usize = 100;
/// Shards of the due index.
pub const DUE_SHARDS: u8 = 16;
/// Pages (of 1 MB) of one shard that are read to find threads whose sandbox has vanished; the rest is left to their due
/// times.
const ARMED_PAGES_MAX: usize = 20;
/// Threads that one look at a shard returns; the next tick sees the rest.
pub const DUE_PAGE: i32 = 500;

type Item = HashMap<String, AttributeValue>;

/// A call to the table failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The table is missing or the role may not: repeating cannot help.
    #[error("the table cannot be used: {0}")]
    Refused(String),
    /// Throttled, or no answer: try again later.
    #[error("the table does not answer: {0}")]
    Later(String),
    /// The item cannot be read: written by something else, or damaged.
    #[error("what is stored cannot be read: {0}")]
    Damaged(String),
    /// A newer worker wrote the item: only one of those may read it, or write it.
    #[error("{0}")]
    Newer(String),
}

impl From<Unreadable> for StoreError {
    fn from(unreadable: Unreadable) -> Self {
        match unreadable {
            Unreadable::Newer { .. } => Self::Newer(unreadable.to_string()),
            Unreadable::Damaged { .. } => Self::Damaged(unreadable.to_string()),
        }
    }
}

impl StoreError {
    /// What to do about it.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match self {
            Self::Refused(_) | Self::Damaged(_) => Failure::NonRecoverable {
                advice: self.to_string(),
            },
            Self::Later(seen) => Failure::Wait {
                after_ms: 0,
                seen: format!("the table does not answer: {seen}"),
            },
            Self::Newer(seen) => Failure::Newer { seen: seen.clone() },
        }
    }
}

/// What a write came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// Written; the marks that stand beside the record, where the table tells.
    Yes(Option<Marks>),
    /// Somebody else wrote first.
    Conflict,
}

/// The table of sessions.
#[derive(Debug, Clone)]
pub struct Store {
    client: aws_sdk_dynamodb::Client,
    table: String,
}

impl Store {
    /// A client for this table.
    #[must_use]
    pub fn new(client: aws_sdk_dynamodb::Client, table: &str) -> Self {
        Self {
            client,
            table: table.to_owned(),
        }
    }

    /// Reads a record consistently, with the marks beside it, whether the ledger knows `turn` as ended, and the
    /// settings of the tenant: one call.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn load(&self, thread: &ThreadKey, turn: &str) -> Result<Loaded, StoreError> {
        let items = self
            .read([
                key(thread, SESSION),
                key(thread, &ledger_item(turn)),
                tenant::settings_key(&thread.tenant()),
            ])
            .await?;
        loaded(&items)
    }

    /// Reads a record consistently, with the marks beside it; a mark can stand beside no record yet.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn record(&self, thread: &ThreadKey) -> Result<(Option<Session>, Marks), StoreError> {
        match self.read([key(thread, SESSION)]).await?.first() {
            Some(item) => record(item),
            None => Ok((None, Marks::default())),
        }
    }

    /// Reads the records of several threads, at most a hundred, in no order; threads without one are left out.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn records(
        &self,
        threads: &[ThreadKey],
    ) -> Result<Vec<(Session, Marks)>, StoreError> {
        if threads.is_empty() {
            return Ok(Vec::new());
        }
        let keys = threads
            .iter()
            .take(ENTRIES_MAX)
            .map(|thread| key(thread, SESSION));
        let items = self.read(keys).await?;
        // One record that cannot be read costs its line, not the whole picture.
        let read = |item: &Item| match record(item) {
            Ok((session, marks)) => Some((session?, marks)),
            Err(_) => None,
        };
        Ok(items.iter().filter_map(read).collect())
    }

    /// The records of these threads, at most [`RECORDS_MAX`], by thread: what is missing is told from what cannot be read.
    ///
    /// # Errors
    /// [`StoreError`], when none could be read.
    pub async fn each_record(
        &self,
        threads: &BTreeSet<ThreadKey>,
    ) -> Result<BTreeMap<ThreadKey, Result<Option<Session>, StoreError>>, StoreError> {
        if threads.is_empty() {
            return Ok(BTreeMap::new());
        }
        let wanted = || threads.iter().take(RECORDS_MAX);
        let items = self
            .read(wanted().map(|thread| key(thread, SESSION)))
            .await?;
        let mut read: BTreeMap<_, _> = wanted().map(|one| (one.clone(), Ok(None))).collect();
        for item in &items {
            if let Some(thread) = text(item, "thread").and_then(|thread| thread.parse().ok()) {
                read.insert(thread, record(item).map(|(session, _)| session));
            }
        }
        Ok(read)
    }

    /// The same with the settings of the thread's tenant: one call.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn look(&self, thread: &ThreadKey) -> Result<Loaded, StoreError> {
        let keys = [key(thread, SESSION), tenant::settings_key(&thread.tenant())];
        loaded(&self.read(keys).await?)
    }

    /// What the ledger holds of these turns, in no order. Turns that it does not know are left out.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn entries(
        &self,
        thread: &ThreadKey,
        turns: &[String],
    ) -> Result<Vec<Entry>, StoreError> {
        if turns.is_empty() {
            return Ok(Vec::new());
        }
        let keys = turns
            .iter()
            .take(ENTRIES_MAX)
            .map(|turn| key(thread, &ledger_item(turn)));
        let items = self.read(keys).await?;
        let mut entries = Vec::new();
        for written in items.iter().filter_map(|item| text(item, ENTRY)) {
            match schema::read(Shape::Entry, written) {
                Ok((entry, _)) => entries.push(entry),
                Err(newer @ Unreadable::Newer { .. }) => return Err(newer.into()),
                // One that cannot be read costs a line of a digest, not the turn that asked for it.
                Err(Unreadable::Damaged { .. }) => {}
            }
        }
        Ok(entries)
    }

    /// What a turn changed in the files, if the ledger keeps it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn patch(
        &self,
        thread: &ThreadKey,
        turn: &str,
    ) -> Result<Option<String>, StoreError> {
        let items = self.read([key(thread, &format!("{DIFF}{turn}"))]).await?;
        let Some(item) = items.first() else {
            return Ok(None);
        };
        let numbered = item
            .get(schema::FIELD)
            .and_then(|number| number.as_n().ok());
        let numbered = numbered.map_or(Ok(1), |number| number.parse());
        let damaged = |_| StoreError::Damaged("a patch has no number of a shape".to_owned());
        Shape::Patch.admit(numbered.map_err(damaged)?)?;
        Ok(text(item, PATCH).map(str::to_owned))
    }

    async fn read(&self, keys: impl IntoIterator<Item = Item>) -> Result<Vec<Item>, StoreError> {
        let wanted = KeysAndAttributes::builder()
            .set_keys(Some(keys.into_iter().collect()))
            .consistent_read(true)
            .build()
            .map_err(|e| StoreError::Damaged(e.to_string()))?;
        let answer = self
            .client
            .batch_get_item()
            .request_items(&self.table, wanted)
            .send()
            .await
            .map_err(|e| classify(e.code(), words(&e)))?;
        // What was not read would look like what is not there.
        if answer.unprocessed_keys.is_some_and(|left| !left.is_empty()) {
            return Err(StoreError::Later("it is throttled".to_owned()));
        }
        let mut tables = answer.responses.unwrap_or_default();
        Ok(tables.remove(&self.table).unwrap_or_default())
    }

    /// Writes the record if the stored version is `expected` (0: none is stored), removes the marks in `stale`, and
    /// with it, in one piece, writes these entries of the ledger.
    ///
    /// Answers the marks that stand beside the record afterwards; `None` where the table does not say, which is so when
    /// entries were written.
    ///
    /// # Errors
    /// [`StoreError`]; the write may or may not have happened, and the version tells.
    pub async fn save(
        &self,
        session: &Session,
        expected: u64,
        stale: &Marks,
        entries: &[Entry],
        expires_at_ms: Ms,
    ) -> Result<Written, StoreError> {
        let write = RecordWrite::new(session, expected, stale);
        if entries.is_empty() {
            let update = self
                .client
                .update_item()
                .table_name(&self.table)
                .set_key(Some(key(&session.thread, SESSION)))
                .update_expression(write.update)
                .condition_expression(write.condition)
                .set_expression_attribute_names(Some(write.names))
                .set_expression_attribute_values(Some(write.values))
                .return_values(ReturnValue::AllNew);
            return match update.send().await {
                Ok(answer) => {
                    let beside = answer.attributes.as_ref().map(marks).transpose()?;
                    Ok(Written::Yes(Some(beside.unwrap_or_default())))
                }
                Err(e) if e.code() == Some(CONDITION_FAILED) => Ok(Written::Conflict),
                Err(e) => Err(classify(e.code(), words(&e))),
            };
        }
        let damaged = |e: aws_sdk_dynamodb::error::BuildError| StoreError::Damaged(e.to_string());
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(key(&session.thread, SESSION)))
            .update_expression(write.update)
            .condition_expression(write.condition)
            .set_expression_attribute_names(Some(write.names))
            .set_expression_attribute_values(Some(write.values))
            .build()
            .map_err(damaged)?;
        let mut transaction = self
            .client
            .transact_write_items()
            .transact_items(TransactWriteItem::builder().update(update).build());
        for entry in entries {
            let put = Put::builder()
                .table_name(&self.table)
                .set_item(Some(entry_item(&session.thread, entry, expires_at_ms)?))
                .build()
                .map_err(damaged)?;
            transaction = transaction.transact_items(TransactWriteItem::builder().put(put).build());
            if let Some(item) = patch_item(&session.thread, entry, expires_at_ms) {
                let put = Put::builder()
                    .table_name(&self.table)
                    .set_item(Some(item))
                    .build()
                    .map_err(damaged)?;
                transaction =
                    transaction.transact_items(TransactWriteItem::builder().put(put).build());
            }
        }
        match transaction.send().await {
            Ok(_) => Ok(Written::Yes(None)),
            Err(e) => {
                let lost = e.as_service_error().is_some_and(|e| {
                    matches!(e, TransactWriteItemsError::TransactionCanceledException(e)
                        if e.cancellation_reasons().iter().any(|reason| reason.code() == Some(LOST_CONDITION)))
                });
                if lost {
                    return Ok(Written::Conflict);
                }
                Err(classify(e.code(), words(&e)))
            }
        }
    }

    /// Sets a cancel mark for a turn. The first one stands.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mark_cancelled(
        &self,
        thread: &ThreadKey,
        turn: &str,
        by: &Person,
    ) -> Result<(), StoreError> {
        self.mark(thread, &format!("{CANCEL}{turn}"), mark_text(by))
            .await
            .map(|_| ())
    }

    /// Settles an ask; false if somebody was first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mark_settled(
        &self,
        thread: &ThreadKey,
        ask: &str,
        settlement: &Settlement,
    ) -> Result<bool, StoreError> {
        self.mark(thread, &format!("{ASK}{ask}"), mark_text(settlement))
            .await
    }

    /// Marks a prompt as waiting, if the record is still at this version (0: none is stored): so it cannot have begun
    /// meanwhile. False if it is not.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mark_queued(
        &self,
        thread: &ThreadKey,
        turn: &str,
        queued: &Queued,
        version: u64,
    ) -> Result<bool, StoreError> {
        let value = mark_text(queued)?;
        let update = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(key(thread, SESSION)))
            .update_expression("SET #mark = :mark")
            .expression_attribute_names("#mark", format!("{QUEUED}{turn}"))
            .expression_attribute_names("#version", "version")
            .expression_attribute_values(":mark", AttributeValue::S(value));
        let update = if version == 0 {
            update.condition_expression("attribute_not_exists(#version)")
        } else {
            update
                .condition_expression("#version = :version")
                .expression_attribute_values(":version", number(version))
        };
        match update.send().await {
            Ok(_) => Ok(true),
            Err(e) if e.code() == Some(CONDITION_FAILED) => Ok(false),
            Err(e) => Err(classify(e.code(), words(&e))),
        }
    }

    /// Marks a waiting prompt as one that shall be sent into the running turn: only beside the mark that says that it waits,
    /// so that none is left behind of a turn that has begun. False if it does not wait any more, or is marked already.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mark_now(
        &self,
        thread: &ThreadKey,
        turn: &str,
        by: &Person,
    ) -> Result<bool, StoreError> {
        let value = mark_text(by)?;
        let update = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(key(thread, SESSION)))
            .update_expression("SET #mark = :mark")
            .condition_expression("attribute_not_exists(#mark) AND attribute_exists(#queued)")
            .expression_attribute_names("#mark", format!("{NOW}{turn}"))
            .expression_attribute_names("#queued", format!("{QUEUED}{turn}"))
            .expression_attribute_values(":mark", AttributeValue::S(value));
        match update.send().await {
            Ok(_) => Ok(true),
            Err(e) if e.code() == Some(CONDITION_FAILED) => Ok(false),
            Err(e) => Err(classify(e.code(), words(&e))),
        }
    }

    async fn mark(
        &self,
        thread: &ThreadKey,
        name: &str,
        value: Result<String, StoreError>,
    ) -> Result<bool, StoreError> {
        let value = value?;
        let answer = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(key(thread, SESSION)))
            .update_expression("SET #mark = :mark")
            .condition_expression("attribute_not_exists(#mark)")
            .expression_attribute_names("#mark", name)
            .expression_attribute_values(":mark", AttributeValue::S(value))
            .send()
            .await;
        match answer {
            Ok(_) => Ok(true),
            Err(e) if e.code() == Some(CONDITION_FAILED) => Ok(false),
            Err(e) => Err(classify(e.code(), words(&e))),
        }
    }

    /// Threads of one shard that are due, with their due times. A hint: the index lags behind the records.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn due(&self, shard: u8, now_ms: Ms) -> Result<Vec<(ThreadKey, Ms)>, StoreError> {
        let answer = self
            .client
            .query()
            .table_name(&self.table)
            .index_name("due")
            .key_condition_expression("#shard = :shard AND #due <= :now")
            .expression_attribute_names("#shard", "due_shard")
            .expression_attribute_names("#due", "due_at")
            .expression_attribute_values(":shard", number(u64::from(shard)))
            .expression_attribute_values(":now", number(now_ms))
            .limit(DUE_PAGE)
            .send()
            .await
            .map_err(|e| classify(e.code(), words(&e)))?;
        let read = |item: &Item| {
            Some((
                text(item, "thread")?.parse().ok()?,
                item.get("due_at")?.as_n().ok()?.parse().ok()?,
            ))
        };
        Ok(answer.items().iter().filter_map(read).collect())
    }

    /// Threads of one shard that have a sandbox by their records: everything in the due index, due or not. A hint too.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn armed(&self, shard: u8) -> Result<Vec<ThreadKey>, StoreError> {
        self.armed_of(shard, "").await
    }

    /// Those of them whose key begins so: with a tenant, or with a tenant and a channel.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn armed_of(&self, shard: u8, prefix: &str) -> Result<Vec<ThreadKey>, StoreError> {
        let (mut threads, mut start) = (Vec::new(), None);
        for _ in 0..ARMED_PAGES_MAX {
            let query = self
                .client
                .query()
                .table_name(&self.table)
                .index_name("due")
                .key_condition_expression("#shard = :shard")
                .expression_attribute_names("#shard", "due_shard")
                .expression_attribute_values(":shard", number(u64::from(shard)))
                .set_exclusive_start_key(start);
            let query = match prefix {
                "" => query,
                prefix => query
                    .filter_expression("begins_with(#thread, :prefix)")
                    .expression_attribute_names("#thread", "thread")
                    .expression_attribute_values(":prefix", AttributeValue::S(prefix.to_owned())),
            };
            let answer = query
                .send()
                .await
                .map_err(|e| classify(e.code(), words(&e)))?;
            let read = |item: &Item| text(item, "thread")?.parse().ok();
            threads.extend(answer.items().iter().filter_map(read));
            start = answer.last_evaluated_key;
            if start.is_none() {
                break;
            }
        }
        Ok(threads)
    }
}

/// The write of a record, as expressions.
struct RecordWrite {
    update: String,
    condition: &'static str,
    names: HashMap<String, String>,
    values: HashMap<String, AttributeValue>,
}

impl RecordWrite {
    fn new(session: &Session, expected: u64, stale: &Marks) -> Self {
        let stored = Session {
            version: expected + 1,
            ..session.clone()
        };
        let mut write = Self {
            update: String::new(),
            condition: "attribute_not_exists(#version)",
            names: HashMap::from([
                ("#shard".to_owned(), "due_shard".to_owned()),
                ("#due".to_owned(), "due_at".to_owned()),
            ]),
            values: HashMap::new(),
        };
        let mut set = vec![
            write.set("record", AttributeValue::S(stored.encode())),
            write.set("version", number(stored.version)),
            write.set("phase", AttributeValue::S(stored.phase.word().to_owned())),
            write.set("tenant", AttributeValue::S(stored.thread.tenant())),
        ];
        let mut remove = Vec::new();
        if let Some(due) = stored.due_at_ms {
            set.extend(["#shard = :shard".to_owned(), "#due = :due".to_owned()]);
            let shard = number(u64::from(stored.thread.due_shard()));
            write.values.insert(":shard".to_owned(), shard);
            write.values.insert(":due".to_owned(), number(due));
        } else {
            remove.extend(["#shard".to_owned(), "#due".to_owned()]);
        }
        for (index, name) in names(stale).into_iter().enumerate() {
            write.names.insert(format!("#m{index}"), name);
            remove.push(format!("#m{index}"));
        }
        write.update = format!("SET {}", set.join(", "));
        if !remove.is_empty() {
            write
                .update
                .push_str(&format!(" REMOVE {}", remove.join(", ")));
        }
        if expected > 0 {
            write.condition = "#version = :expected";
            write
                .values
                .insert(":expected".to_owned(), number(expected));
        }
        write
    }

    fn set(&mut self, name: &str, value: AttributeValue) -> String {
        self.names.insert(format!("#{name}"), name.to_owned());
        self.values.insert(format!(":{name}"), value);
        format!("#{name} = :{name}")
    }
}

fn key(thread: &ThreadKey, item: &str) -> Item {
    HashMap::from([
        ("thread".to_owned(), AttributeValue::S(thread.to_string())),
        (ITEM.to_owned(), AttributeValue::S(item.to_owned())),
    ])
}

fn ledger_item(turn: &str) -> String {
    format!("{TURN}{turn}")
}

fn entry_item(thread: &ThreadKey, entry: &Entry, expires_at_ms: Ms) -> Result<Item, StoreError> {
    let body = schema::write(Shape::Entry, entry, &Kept::default())
        .map_err(|e| StoreError::Damaged(e.to_string()))?;
    let mut item = key(thread, &ledger_item(&entry.turn));
    item.insert(ENTRY.to_owned(), AttributeValue::S(body));
    item.insert("tenant".to_owned(), AttributeValue::S(thread.tenant()));
    // The table's time to live is in seconds.
    item.insert("expires_at".to_owned(), number(expires_at_ms / 1000));
    Ok(item)
}

fn patch_item(thread: &ThreadKey, entry: &Entry, expires_at_ms: Ms) -> Option<Item> {
    let patch = entry.patch.clone()?;
    let mut item = key(thread, &format!("{DIFF}{}", entry.turn));
    item.insert(PATCH.to_owned(), AttributeValue::S(patch));
    item.insert(
        schema::FIELD.to_owned(),
        number(Shape::Patch.writes().into()),
    );
    item.insert("tenant".to_owned(), AttributeValue::S(thread.tenant()));
    item.insert("expires_at".to_owned(), number(expires_at_ms / 1000));
    Some(item)
}

fn number(n: u64) -> AttributeValue {
    AttributeValue::N(n.to_string())
}

fn text<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    item.get(name)?.as_s().ok().map(String::as_str)
}

/// What was read of a thread.
fn loaded(items: &[Item]) -> Result<Loaded, StoreError> {
    let mut loaded = Loaded::default();
    for item in items {
        match text(item, ITEM) {
            Some(SESSION) => (loaded.session, loaded.marks) = record(item)?,
            Some(tenant::SETTINGS) => loaded.settings = tenant::settings(item)?,
            _ => loaded.in_ledger = true,
        }
    }
    Ok(loaded)
}

/// What the item of a thread holds: without a version there is no record, only marks.
fn record(item: &Item) -> Result<(Option<Session>, Marks), StoreError> {
    let stored = item.contains_key("version").then(|| session(item));
    Ok((stored.transpose()?, marks(item)?))
}

fn session(item: &Item) -> Result<Session, StoreError> {
    let record = text(item, "record")
        .ok_or_else(|| StoreError::Damaged("there is no record attribute".to_owned()))?;
    Ok(Session::decode(record)?)
}

/// The marks beside a record. One that is damaged is none, as it always was; one of a newer shape is no mark that can be
/// passed over.
fn marks(item: &Item) -> Result<Marks, StoreError> {
    let mut marks = Marks::default();
    for (name, value) in item {
        let Ok(value) = value.as_s() else { continue };
        if let Some(turn) = name.strip_prefix(CANCEL) {
            note(&mut marks.cancelled, turn, value)?;
        } else if let Some(ask) = name.strip_prefix(ASK) {
            note(&mut marks.settled, ask, value)?;
        } else if let Some(turn) = name.strip_prefix(QUEUED) {
            note(&mut marks.queued, turn, value)?;
        } else if let Some(turn) = name.strip_prefix(NOW) {
            note(&mut marks.now, turn, value)?;
        }
    }
    Ok(marks)
}

fn note<T>(marks: &mut BTreeMap<String, T>, name: &str, text: &str) -> Result<(), StoreError>
where
    T: DeserializeOwned + Serialize,
{
    match schema::read(Shape::Mark, text) {
        Ok((mark, _)) => {
            marks.insert(name.to_owned(), mark);
            Ok(())
        }
        Err(newer @ Unreadable::Newer { .. }) => Err(newer.into()),
        Err(Unreadable::Damaged { .. }) => Ok(()),
    }
}

fn mark_text(mark: &impl Serialize) -> Result<String, StoreError> {
    schema::write(Shape::Mark, mark, &Kept::default())
        .map_err(|e| StoreError::Damaged(e.to_string()))
}

fn names(marks: &Marks) -> Vec<String> {
    let cancelled = marks.cancelled.keys().map(|turn| format!("{CANCEL}{turn}"));
    cancelled
        .chain(marks.settled.keys().map(|ask| format!("{ASK}{ask}")))
        .chain(marks.queued.keys().map(|turn| format!("{QUEUED}{turn}")))
        .chain(marks.now.keys().map(|turn| format!("{NOW}{turn}")))
        .collect()
}

fn classify(code: Option<&str>, seen: String) -> StoreError {
    match code {
        Some(
            "ResourceNotFoundException"
            | "AccessDeniedException"
            | "UnrecognizedClientException"
            | "ValidationException",
        ) => StoreError::Refused(seen),
        _ => StoreError::Later(seen),
    }
}
