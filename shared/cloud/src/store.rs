//! DynamoDB: the records of threads and sandboxes, written by condition only, and the flags of the control lane beside them.
//!
//! One item a thread (`thread`, `item = "session"`): `record` (JSON), `version`, `tenant`, while something is due
//! `due_shard` and `due_at`, and a flag each as an attribute of its own (`cancel#<turn>`, `ask#<ask>`,
//! `queued#<turn>`, `now#<turn>`), so that the control lane and the worker never write the same attribute. One a sandbox
//! (`thread` is its key, `item = "sandbox"`): `record`, `version`, `phase`, `tenant`, `due_shard`, `due_at`. Beside them the
//! ledger, an item a turn (`item = "turn#<turn>"`): `entry` (JSON), `tenant`, and `expires_at`, by which the table forgets
//! it. What the turn changed in the files is an item of its own (`item = "diff#<turn>"`): `patch` (text), and the same
//! beside it. What belongs to a tenant and to no thread is in [`tenant`], links by which
//! keys are entered in [`setup`].

mod setup;
mod tenant;
mod whole;

pub use whole::Page;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bobbin_core::ask::Settlement;
use bobbin_core::failure::Failure;
use bobbin_core::ids::{AskId, Ms, SandboxKey, Tenant, ThreadKey, TurnId};
use bobbin_core::ledger::Entry;
use bobbin_core::person::Person;
use bobbin_core::ports::{Loaded, Versions};
use bobbin_core::sandbox::SandboxRecord;
use bobbin_core::schema::{self, Kept, Shape, Unreadable};
use bobbin_core::session::{ControlFlags, Queued, Session};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::aws::table::{CALL_MS_MAX, Item, Table, Write, n, number, s, text};
use crate::aws::{Aws, CallError, Cause};

const ITEM: &str = "item";
const SESSION: &str = "session";
const SANDBOX: &str = "sandbox";
const TURN: &str = "turn#";
const ENTRY: &str = "entry";
const DIFF: &str = "diff#";
const PATCH: &str = "patch";
const CANCEL: &str = "cancel#";
const ASK: &str = "ask#";
const QUEUED: &str = "queued#";
const NOW: &str = "now#";
/// Items that one call reads: the table answers at most 100.
const ITEMS_MAX: usize = 100;
/// Items of a thread that are read for its record: its own and its sandbox's.
const ITEMS_A_RECORD: usize = 2;
/// Records that one call reads.
pub const RECORDS_MAX: usize = 100;
/// Shards of the due index.
pub const DUE_SHARDS: u8 = 16;
/// Pages (of 1 MB) of one shard that are read to find threads whose sandbox has vanished; the rest is left to their due
/// times.
const ARMED_PAGES_MAX: usize = 20;
/// Threads that one look at a shard returns; the next tick sees the rest.
pub const DUE_PAGE: i32 = 500;
/// The sparse index of what is due.
const DUE: &str = "due";

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

impl From<CallError> for StoreError {
    fn from(error: CallError) -> Self {
        match error.cause() {
            Cause::Passing => Self::Later(error.to_string()),
            _ => Self::Refused(error.with_remedy()),
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
            Self::Later(seen) => Failure::Outage {
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
    /// Written; the control flags that stand beside the record, where the table tells.
    Yes(Option<ControlFlags>),
    /// Somebody else wrote first.
    Conflict,
}

/// The table of sessions.
#[derive(Debug, Clone)]
pub struct Store {
    table: Table,
}

impl Store {
    /// The one in the table of this name.
    #[must_use]
    pub fn new(aws: &Aws, table: &str) -> Self {
        Self {
            table: Table::new(aws, table, CALL_MS_MAX),
        }
    }

    /// Reads a record consistently, with the control flags beside it, whether the ledger knows `turn` as ended, and the
    /// settings of the tenant: one call.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn load(&self, thread: &ThreadKey, turn: &TurnId) -> Result<Loaded, StoreError> {
        let mut keys = record_keys(thread).to_vec();
        keys.push(key(thread, &ledger_item(turn)));
        keys.push(tenant::settings_key(&thread.tenant()));
        loaded(&self.read(keys).await?)
    }

    /// Reads a record consistently, with the control flags beside it; a flag can stand beside no record yet.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn record(
        &self,
        thread: &ThreadKey,
    ) -> Result<(Option<Session>, ControlFlags), StoreError> {
        let found = loaded(&self.read(record_keys(thread)).await?)?;
        Ok((found.session, found.flags))
    }

    /// The flags of the control lane beside a thread's record.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn flags(&self, thread: &ThreadKey) -> Result<ControlFlags, StoreError> {
        match self.table.get(key(thread, SESSION)).await? {
            Some(item) => flags(&item),
            None => Ok(ControlFlags::default()),
        }
    }

    /// Reads the records of several threads, at most a hundred, in no order; threads without one are left out.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn records(
        &self,
        threads: &[ThreadKey],
    ) -> Result<Vec<(Session, ControlFlags)>, StoreError> {
        let read = self.stored(threads.iter().take(RECORDS_MAX)).await?;
        // One record that cannot be read costs its line, not the whole picture.
        let whole = |stored: Result<Stored, StoreError>| {
            let (session, flags) = stored.ok()?;
            Some((session?, flags))
        };
        Ok(read.into_values().filter_map(whole).collect())
    }

    /// The records of these threads, at most [`RECORDS_MAX`], by thread: what is missing is told from what cannot be read.
    ///
    /// # Errors
    /// [`StoreError`], when none could be read.
    pub async fn each_record(
        &self,
        threads: &BTreeSet<ThreadKey>,
    ) -> Result<BTreeMap<ThreadKey, Result<Option<Session>, StoreError>>, StoreError> {
        let mut read = self.stored(threads.iter().take(RECORDS_MAX)).await?;
        let of = |thread: &ThreadKey| match read.remove(thread) {
            Some(stored) => (thread.clone(), stored.map(|(session, _)| session)),
            None => (thread.clone(), Ok(None)),
        };
        Ok(threads.iter().take(RECORDS_MAX).map(of).collect())
    }

    /// What is stored of these threads, those of which there is something: as many calls as that takes.
    async fn stored(
        &self,
        threads: impl Iterator<Item = &ThreadKey>,
    ) -> Result<BTreeMap<ThreadKey, Result<Stored, StoreError>>, StoreError> {
        let keys: Vec<Item> = threads.flat_map(record_keys).collect();
        let mut read: BTreeMap<ThreadKey, Vec<Item>> = BTreeMap::new();
        for some in keys.chunks(ITEMS_MAX / ITEMS_A_RECORD * ITEMS_A_RECORD) {
            for item in self.read(some.to_vec()).await? {
                if let Some(thread) = text(&item, "thread").and_then(|thread| thread.parse().ok()) {
                    read.entry(thread).or_default().push(item);
                }
            }
        }
        let whole = |items: Vec<Item>| loaded(&items).map(|found| (found.session, found.flags));
        let read = read.into_iter();
        Ok(read.map(|(thread, items)| (thread, whole(items))).collect())
    }

    /// The record of a thread with the settings of its tenant, in one call; without what the ledger holds of a turn.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn record_with_settings(&self, thread: &ThreadKey) -> Result<Loaded, StoreError> {
        let mut keys = record_keys(thread).to_vec();
        keys.push(tenant::settings_key(&thread.tenant()));
        loaded(&self.read(keys).await?)
    }

    /// What the ledger holds of these turns, in no order. Turns that it does not know are left out.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn entries(
        &self,
        thread: &ThreadKey,
        turns: &[TurnId],
    ) -> Result<Vec<Entry>, StoreError> {
        if turns.is_empty() {
            return Ok(Vec::new());
        }
        let keys = turns
            .iter()
            .take(ITEMS_MAX)
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
        turn: &TurnId,
    ) -> Result<Option<String>, StoreError> {
        let items = self.read([key(thread, &format!("{DIFF}{turn}"))]).await?;
        let Some(item) = items.first() else {
            return Ok(None);
        };
        let damaged = || StoreError::Damaged("a patch has no number of a shape".to_owned());
        let numbered = match item.get(schema::FIELD) {
            Some(_) => number(item, schema::FIELD).ok_or_else(damaged)?,
            None => 1,
        };
        Shape::Patch.admit(numbered)?;
        Ok(text(item, PATCH).map(str::to_owned))
    }

    async fn read(&self, keys: impl IntoIterator<Item = Item>) -> Result<Vec<Item>, StoreError> {
        Ok(self.table.get_all(keys.into_iter().collect()).await?)
    }

    /// Writes the thread's record, and its sandbox's where `expected` names a version of it, if those are the stored
    /// versions (0: none is stored), removes the control flags in `stale`, and with it, in one piece, writes these entries
    /// of the ledger.
    ///
    /// Answers the control flags that stand beside the record afterwards; `None` where the table does not say, which is so
    /// for more than one item.
    ///
    /// # Errors
    /// [`StoreError`]; the write may or may not have happened, and the version tells.
    pub async fn save(
        &self,
        session: &Session,
        expected: Versions,
        stale: &ControlFlags,
        entries: &[Entry],
        expires_at_ms: Ms,
    ) -> Result<Written, StoreError> {
        let update = thread_write(session, expected.thread, stale);
        if entries.is_empty() && expected.sandbox.is_none() {
            return match self.table.update(update).await? {
                Some(item) => Ok(Written::Yes(Some(flags(&item)?))),
                None => Ok(Written::Conflict),
            };
        }
        let mut writes = vec![update];
        if let Some(version) = expected.sandbox {
            let sandbox = session.thread.sandbox();
            writes.push(sandbox_write(&sandbox, &session.sandbox, version));
        }
        for entry in entries {
            let item = entry_item(&session.thread, entry, expires_at_ms)?;
            writes.push(Write::put(item));
            writes.extend(patch_item(&session.thread, entry, expires_at_ms).map(Write::put));
        }
        if self.table.transact(writes).await? {
            Ok(Written::Yes(None))
        } else {
            Ok(Written::Conflict)
        }
    }

    /// Sets a cancel flag for a turn. The first one stands.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mark_cancelled(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        by: &Person,
    ) -> Result<(), StoreError> {
        self.mark(thread, &format!("{CANCEL}{turn}"), flag_text(by))
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
        ask: &AskId,
        settlement: &Settlement,
    ) -> Result<bool, StoreError> {
        self.mark(thread, &format!("{ASK}{ask}"), flag_text(settlement))
            .await
    }

    /// Flags a prompt as waiting, if the record is still at this version (0: none is stored): so it cannot have begun
    /// meanwhile. False if it is not.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mark_queued(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        queued: &Queued,
        version: u64,
    ) -> Result<bool, StoreError> {
        let update = Write::update(key(thread, SESSION), "SET #mark = :mark")
            .name("#mark", format!("{QUEUED}{turn}"))
            .value(":mark", s(flag_text(queued)?))
            .if_version(version);
        Ok(self.table.write(update).await?)
    }

    /// Flags a waiting prompt as one that shall be sent into the running turn: only beside the flag that says that it waits,
    /// so that none is left behind of a turn that has begun. False if it does not wait any more, or is marked already.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn mark_now(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
        by: &Person,
    ) -> Result<bool, StoreError> {
        let update = Write::update(key(thread, SESSION), "SET #mark = :mark")
            .condition("attribute_not_exists(#mark) AND attribute_exists(#queued)")
            .name("#queued", format!("{QUEUED}{turn}"));
        let (name, value) = (format!("{NOW}{turn}"), flag_text(by)?);
        self.stands(thread, &name, value, update).await
    }

    async fn mark(
        &self,
        thread: &ThreadKey,
        name: &str,
        value: Result<String, StoreError>,
    ) -> Result<bool, StoreError> {
        let update = Write::update(key(thread, SESSION), "SET #mark = :mark")
            .condition("attribute_not_exists(#mark)");
        self.stands(thread, name, value?, update).await
    }

    /// Whether the flag of this update stands. One whose answer was lost is repeated by the SDK and then told that
    /// somebody was first: who that was is looked up, because it may have been this very flag.
    async fn stands(
        &self,
        thread: &ThreadKey,
        name: &str,
        value: String,
        update: Write,
    ) -> Result<bool, StoreError> {
        let update = update.name("#mark", name).value(":mark", s(value.clone()));
        if self.table.write(update).await? {
            return Ok(true);
        }
        let items = self.read([key(thread, SESSION)]).await?;
        let standing = items.first().and_then(|item| text(item, name));
        Ok(standing == Some(value.as_str()))
    }

    /// Threads of one shard that are due, with their due times. A hint: the index lags behind the records.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn due(&self, shard: u8, now_ms: Ms) -> Result<Vec<(ThreadKey, Ms)>, StoreError> {
        let query = self
            .table
            .query("#shard = :shard AND #due <= :now")
            .index_name(DUE)
            .expression_attribute_names("#shard", "due_shard")
            .expression_attribute_names("#due", "due_at")
            .expression_attribute_values(":shard", n(shard))
            .expression_attribute_values(":now", n(now_ms))
            .limit(DUE_PAGE);
        let page = self.table.queried(query).await?;
        let read =
            |item: &Item| Some((text(item, "thread")?.parse().ok()?, number(item, "due_at")?));
        Ok(page.items.iter().filter_map(read).collect())
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
                .table
                .query("#shard = :shard")
                .index_name(DUE)
                .expression_attribute_names("#shard", "due_shard")
                .expression_attribute_values(":shard", n(shard))
                .set_exclusive_start_key(start);
            let query = match prefix {
                "" => query,
                prefix => query
                    .filter_expression("begins_with(#thread, :prefix)")
                    .expression_attribute_names("#thread", "thread")
                    .expression_attribute_values(":prefix", s(prefix)),
            };
            let page = self.table.queried(query).await?;
            let read = |item: &Item| text(item, "thread")?.parse().ok();
            threads.extend(page.items.iter().filter_map(read));
            start = page.next;
            if start.is_none() {
                break;
            }
        }
        Ok(threads)
    }
}

/// The write of a thread's record in the place of the one of version `expected`.
fn thread_write(session: &Session, expected: u64, stale: &ControlFlags) -> Write {
    let stored = Session {
        version: expected + 1,
        ..session.clone()
    };
    let stale = names(stale);
    // What an item of shape 1 had besides.
    let mut removed = vec!["#phase".to_owned()];
    removed.extend((0..stale.len()).map(|index| format!("#m{index}")));
    let thread = &stored.thread;
    let due = (thread.due_shard(), stored.due_at_ms);
    let record = (stored.encode(), stored.version);
    let mut write = write_of(
        key(thread, SESSION),
        record,
        thread.tenant(),
        due,
        ("", removed),
    )
    .name("#phase", "phase");
    for (index, name) in stale.into_iter().enumerate() {
        write = write.name(&format!("#m{index}"), name);
    }
    write.if_version(expected)
}

/// The same of a sandbox's.
fn sandbox_write(sandbox: &SandboxKey, record: &SandboxRecord, expected: u64) -> Write {
    let stored = SandboxRecord {
        version: expected + 1,
        ..record.clone()
    };
    let due = (sandbox.due_shard(), stored.due_at_ms);
    let record = (stored.encode(), stored.version);
    write_of(
        sandbox_key(sandbox),
        record,
        sandbox.tenant(),
        due,
        (", #phase = :phase", vec![]),
    )
    .name("#phase", "phase")
    .value(":phase", s(stored.phase.word()))
    .if_version(expected)
}

/// Sets what every record has beside itself: version, tenant, and while something is due its place in the index of that;
/// what else is `set` and `removed`.
fn write_of(
    key: Item,
    (record, version): (String, u64),
    tenant: Tenant,
    (shard, due_at_ms): (u8, Option<Ms>),
    (set, mut removed): (&str, Vec<String>),
) -> Write {
    let mut expression =
        format!("SET #record = :record, #version = :version, #tenant = :tenant{set}");
    match due_at_ms {
        Some(_) => expression.push_str(", #shard = :shard, #due = :due"),
        None => removed.extend(["#shard".to_owned(), "#due".to_owned()]),
    }
    if !removed.is_empty() {
        expression.push_str(&format!(" REMOVE {}", removed.join(", ")));
    }
    // What `#version` stands for comes with the condition.
    let write = Write::update(key, expression)
        .name("#record", "record")
        .name("#tenant", "tenant")
        .name("#shard", "due_shard")
        .name("#due", "due_at")
        .value(":record", s(record))
        .value(":version", n(version))
        .value(":tenant", s(tenant));
    match due_at_ms {
        Some(due_at_ms) => write.value(":shard", n(shard)).value(":due", n(due_at_ms)),
        None => write,
    }
}

fn key(thread: &ThreadKey, item: &str) -> Item {
    HashMap::from([
        ("thread".to_owned(), s(thread.to_string())),
        (ITEM.to_owned(), s(item)),
    ])
}

/// Where a sandbox's record is.
fn sandbox_key(sandbox: &SandboxKey) -> Item {
    HashMap::from([
        ("thread".to_owned(), s(sandbox.to_string())),
        (ITEM.to_owned(), s(SANDBOX)),
    ])
}

/// Where a thread's record and its sandbox's are.
fn record_keys(thread: &ThreadKey) -> [Item; ITEMS_A_RECORD] {
    [key(thread, SESSION), sandbox_key(&thread.sandbox())]
}

fn ledger_item(turn: &TurnId) -> String {
    format!("{TURN}{turn}")
}

fn entry_item(thread: &ThreadKey, entry: &Entry, expires_at_ms: Ms) -> Result<Item, StoreError> {
    let body = schema::write(Shape::Entry, entry, &Kept::default())
        .map_err(|e| StoreError::Damaged(e.to_string()))?;
    let mut item = key(thread, &ledger_item(&entry.turn));
    item.insert(ENTRY.to_owned(), s(body));
    item.insert("tenant".to_owned(), s(thread.tenant()));
    // The table's time to live is in seconds.
    item.insert("expires_at".to_owned(), n(expires_at_ms / 1000));
    Ok(item)
}

fn patch_item(thread: &ThreadKey, entry: &Entry, expires_at_ms: Ms) -> Option<Item> {
    let patch = entry.patch.clone()?;
    let mut item = key(thread, &format!("{DIFF}{}", entry.turn));
    item.insert(PATCH.to_owned(), s(patch));
    item.insert(schema::FIELD.to_owned(), n(Shape::Patch.writes()));
    item.insert("tenant".to_owned(), s(thread.tenant()));
    item.insert("expires_at".to_owned(), n(expires_at_ms / 1000));
    Some(item)
}

/// A thread's record, if there is one, and the control flags beside it.
type Stored = (Option<Session>, ControlFlags);

/// What was read of a thread.
fn loaded(items: &[Item]) -> Result<Loaded, StoreError> {
    let mut loaded = Loaded::default();
    let sandbox = items.iter().find(|item| text(item, ITEM) == Some(SANDBOX));
    for item in items {
        match text(item, ITEM) {
            Some(SESSION) => (loaded.session, loaded.flags) = record(item, sandbox)?,
            Some(SANDBOX) => {}
            Some(tenant::SETTINGS) => loaded.settings = tenant::settings(item)?,
            _ => loaded.in_ledger = true,
        }
    }
    Ok(loaded)
}

/// What the item of a thread holds: without a version there is no record, only control flags.
fn record(item: &Item, sandbox: Option<&Item>) -> Result<Stored, StoreError> {
    let stored = item.contains_key("version").then(|| {
        let sandbox = sandbox.map(record_of).transpose()?;
        Ok::<_, StoreError>(Session::decode(record_of(item)?, sandbox)?)
    });
    Ok((stored.transpose()?, flags(item)?))
}

fn record_of(item: &Item) -> Result<&str, StoreError> {
    text(item, "record")
        .ok_or_else(|| StoreError::Damaged("there is no record attribute".to_owned()))
}

/// The control flags beside a record. One that is damaged is none, as it always was; one of a newer shape is no flag that can be
/// passed over.
fn flags(item: &Item) -> Result<ControlFlags, StoreError> {
    let mut flags = ControlFlags::default();
    for (name, value) in item {
        let Ok(value) = value.as_s() else { continue };
        if let Some(turn) = name.strip_prefix(CANCEL) {
            note(&mut flags.cancelled, turn, value)?;
        } else if let Some(ask) = name.strip_prefix(ASK) {
            note(&mut flags.settled, ask, value)?;
        } else if let Some(turn) = name.strip_prefix(QUEUED) {
            note(&mut flags.queued, turn, value)?;
        } else if let Some(turn) = name.strip_prefix(NOW) {
            note(&mut flags.now, turn, value)?;
        }
    }
    Ok(flags)
}

fn note<K, T>(flags: &mut BTreeMap<K, T>, name: &str, text: &str) -> Result<(), StoreError>
where
    K: for<'a> From<&'a str> + Ord,
    T: DeserializeOwned + Serialize,
{
    match schema::read(Shape::Mark, text) {
        Ok((mark, _)) => {
            flags.insert(name.into(), mark);
            Ok(())
        }
        Err(newer @ Unreadable::Newer { .. }) => Err(newer.into()),
        Err(Unreadable::Damaged { .. }) => Ok(()),
    }
}

fn flag_text(mark: &impl Serialize) -> Result<String, StoreError> {
    schema::write(Shape::Mark, mark, &Kept::default())
        .map_err(|e| StoreError::Damaged(e.to_string()))
}

fn names(flags: &ControlFlags) -> Vec<String> {
    let cancelled = flags.cancelled.keys().map(|turn| format!("{CANCEL}{turn}"));
    cancelled
        .chain(flags.settled.keys().map(|ask| format!("{ASK}{ask}")))
        .chain(flags.queued.keys().map(|turn| format!("{QUEUED}{turn}")))
        .chain(flags.now.keys().map(|turn| format!("{NOW}{turn}")))
        .collect()
}
