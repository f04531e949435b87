//! DynamoDB: the records of threads and sandboxes, written only by condition, and the control flags beside them.
//!
//! One item per thread (`thread`, `item = "session"`): `record` (JSON), `version`, `tenant`, `due_shard` and `due_at`
//! while something is due, and each flag as its own attribute (`cancel#<turn>`, `ask#<ask>`, `queued#<turn>`,
//! `now#<turn>`), so that control messages and the worker never write the same attribute. One item per sandbox
//! (`thread` is its key, `item = "sandbox"`): `record`, `version`, `phase`, `tenant`, `due_shard`, `due_at`. The
//! attributes of sweeps are described in [`due`]. The ledger has an item per turn (`item = "turn#<turn>"`): `entry`
//! (JSON), `tenant`, and `expires_at`, after which the table deletes it. A turn's file changes are a separate item
//! (`item = "diff#<turn>"`): `patch` (text), with the same other attributes. State that one delivery saves for the next
//! one of its message is in [`parked`]. Items of a tenant without a thread are in [`tenant`], the threads of direct
//! messages in [`direct`], sandbox names in [`sandboxes`], links for entering keys in [`setup`], people's own accounts
//! at the forge in [`linked`], the threads of watched pull requests in [`watched`], what was spent in [`budgets`], tool
//! calls in progress in [`calls`], provider accounts in [`accounts`].

mod accounts;
mod budgets;
mod calls;
mod direct;
mod due;
mod flags;
mod items;
mod layout;
mod linked;
mod operator_views;
mod parked;
mod sandboxes;
mod setup;
mod tenant;
mod watched;
mod webhook_targets;

pub use accounts::KeptAccount;
pub use budgets::StoredSum;
pub use calls::HeldCall;
pub use due::{DUE_PAGE, DUE_SHARDS};
pub use linked::KeptLinked;
pub use operator_views::ThreadsPage;
pub use parked::Left;
pub use watched::WatchedBy;

use std::collections::BTreeMap;

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, ThreadKey, TurnId};
use bobbin_core::protocol::ports::{ExpectedVersions, Loaded};
use bobbin_core::records::flags::ControlFlags;
use bobbin_core::records::ledger::LedgerEntry;
use bobbin_core::records::session::Session;
use bobbin_core::schema::{self, Shape, Unreadable};
use bobbin_core::tenant::budgets::{BudgetScope, MicroUsd};

use self::budgets::budget_write;
use self::items::{Stored, entry_item, loaded, patch_item, sandbox_write, thread_write};
use self::layout::{
    DIFF, ENTRY, ITEMS_A_RECORD, PARKED, PATCH, SESSION, key, ledger_item, record_keys,
};
use self::sandboxes::names_write;
use self::watched::watch_writes;
use crate::aws::table::{
    CALL_MS_MAX, CONTENTIONS_MAX, ItemWrite, Table, TableItem, Transacted, number, text,
};
use crate::aws::{Aws, CallError, FailureCause};

/// Attempts of a write that changes stored sums, which many turns share: about four seconds at the most.
const BUDGET_CONTENTIONS_MAX: u32 = 16;
/// Most items that one call reads: the table's limit is 100.
const ITEMS_MAX: usize = 100;
/// Most records that one call reads.
pub const RECORDS_MAX: usize = 100;

/// A call to the table failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The table is missing or the role lacks the permission: a retry cannot help.
    #[error("the table cannot be used: {0}")]
    Refused(String),
    /// Throttled, or no answer: try again later.
    #[error("the table does not answer: {0}")]
    Later(String),
    /// Each of a few attempts met another write of the same item; nothing was written, and the table is healthy.
    #[error("another write got in first: {0}")]
    Contended(String),
    /// The item cannot be read: written by another program, or damaged.
    #[error("the stored item cannot be read: {0}")]
    Damaged(String),
    /// A newer worker wrote the item: only a worker of that version may read or write it.
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
            FailureCause::Passing => Self::Later(error.to_string()),
            FailureCause::Contended => Self::Contended(error.to_string()),
            _ => Self::Refused(error.with_remedy()),
        }
    }
}

impl StoreError {
    /// What to do about it.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match self {
            Self::Refused(_) | Self::Damaged(_) => {
                Failure::NonRecoverable { advice: self.to_string() }
            }
            Self::Later(seen) => {
                Failure::Outage { after_ms: 0, seen: format!("the table does not answer: {seen}") }
            }
            Self::Contended(seen) => Failure::Wait { after_ms: 0, seen: seen.clone() },
            Self::Newer(seen) => Failure::Newer { seen: seen.clone() },
        }
    }
}

/// Result of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// Written; with the control flags beside the record, if the table returns them.
    Yes(Option<ControlFlags>),
    /// Another worker wrote first.
    Conflict,
    /// A stored sum leaves less than was to be set aside.
    OverBudget {
        /// Whose.
        scope: BudgetScope,
        /// The sum.
        used: MicroUsd,
    },
}

/// The table of sessions.
#[derive(Debug, Clone)]
pub struct Store {
    table: Table,
}

impl Store {
    /// The store in the table with this name.
    #[must_use]
    pub fn new(aws: &Aws, table: &str) -> Self {
        Self { table: Table::new(aws, table, CALL_MS_MAX) }
    }

    /// Reads a record consistently, with its control flags, whether the ledger has `turn` as ended, and the settings of
    /// the tenant: one call.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn load(&self, thread: &ThreadKey, turn: &TurnId) -> Result<Loaded, StoreError> {
        let mut keys = turn_keys(thread);
        keys.push(key(thread, &ledger_item(turn)));
        self.loaded(thread, keys).await
    }

    /// Like [`Self::load`], for a turn that has probably begun: the ledger is read only if the record does not show the
    /// turn as running.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn load_again(
        &self,
        thread: &ThreadKey,
        turn: &TurnId,
    ) -> Result<Loaded, StoreError> {
        let found = self.loaded(thread, turn_keys(thread)).await?;
        let present = found.session.as_ref().and_then(|it| it.turn.as_ref());
        if present.is_some_and(|present| present.id == *turn) {
            return Ok(found);
        }
        self.load(thread, turn).await
    }

    /// Reads these keys of a thread; if it works in another sandbox than its own, that one's record takes a second
    /// call.
    async fn loaded(&self, thread: &ThreadKey, keys: Vec<TableItem>) -> Result<Loaded, StoreError> {
        let items = self.read(keys).await?;
        let mut found = loaded(thread, &items)?;
        if let Some(session) = &mut found.session
            && let Some(key) = &session.place.link
        {
            session.sandbox = self.sandbox(key).await?;
        }
        Ok(found)
    }

    /// Reads a record consistently, with its control flags; flags can exist before a record does.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn record(
        &self,
        thread: &ThreadKey,
    ) -> Result<(Option<Session>, ControlFlags), StoreError> {
        let found = self.loaded(thread, record_keys(thread).to_vec()).await?;
        Ok((found.session, found.flags))
    }

    /// The control flags beside a thread's record.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn flags(&self, thread: &ThreadKey) -> Result<ControlFlags, StoreError> {
        match self.table.get(key(thread, SESSION)).await? {
            Some(item) => flags::flags(&item),
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
        // A record that cannot be read loses its line, not the whole overview.
        let whole = |stored: Result<Stored, StoreError>| {
            let (session, flags) = stored.ok()?;
            Some((session?, flags))
        };
        Ok(read.into_values().filter_map(whole).collect())
    }

    /// The stored state of these threads, without those that have none; makes as many calls as needed.
    async fn stored(
        &self,
        threads: impl Iterator<Item = &ThreadKey>,
    ) -> Result<BTreeMap<ThreadKey, Result<Stored, StoreError>>, StoreError> {
        let keys: Vec<TableItem> = threads.flat_map(record_keys).collect();
        let mut read: BTreeMap<ThreadKey, Vec<TableItem>> = BTreeMap::new();
        for some in keys.chunks(ITEMS_MAX / ITEMS_A_RECORD * ITEMS_A_RECORD) {
            for item in self.read(some.to_vec()).await? {
                if let Some(thread) = text(&item, "thread").and_then(|thread| thread.parse().ok()) {
                    read.entry(thread).or_default().push(item);
                }
            }
        }
        let whole = |(thread, items): (ThreadKey, Vec<TableItem>)| {
            let found = loaded(&thread, &items).map(|found| (found.session, found.flags));
            (thread, found)
        };
        let mut whole: BTreeMap<_, _> = read.into_iter().map(whole).collect();
        let sessions = whole.values_mut().filter_map(|one| one.as_mut().ok()?.0.as_mut());
        self.follow_links(sessions).await?;
        Ok(whole)
    }

    /// The record of a thread with the settings of its tenant, in one call; does not read the ledger.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn record_with_settings(&self, thread: &ThreadKey) -> Result<Loaded, StoreError> {
        let mut keys = record_keys(thread).to_vec();
        keys.push(tenant::settings_key(&thread.tenant()));
        self.loaded(thread, keys).await
    }

    /// The ledger's entries of these turns, in no order. Unknown turns are left out.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn entries(
        &self,
        thread: &ThreadKey,
        turns: &[TurnId],
    ) -> Result<Vec<LedgerEntry>, StoreError> {
        if turns.is_empty() {
            return Ok(Vec::new());
        }
        let keys = turns.iter().take(ITEMS_MAX).map(|turn| key(thread, &ledger_item(turn)));
        let items = self.read(keys).await?;
        let mut entries = Vec::new();
        for written in items.iter().filter_map(|item| text(item, ENTRY)) {
            match schema::read(Shape::Entry, written) {
                Ok((entry, _)) => entries.push(entry),
                Err(newer @ Unreadable::Newer { .. }) => return Err(newer.into()),
                // An unreadable entry loses a line of a digest, not the turn that requested it.
                Err(Unreadable::Damaged { .. }) => {}
            }
        }
        Ok(entries)
    }

    /// The file changes of a turn, if the ledger keeps them.
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
        let damaged = || StoreError::Damaged("a patch has no schema number".to_owned());
        let numbered = match item.get(schema::FIELD) {
            Some(_) => number(item, schema::FIELD).ok_or_else(damaged)?,
            None => 1,
        };
        Shape::Patch.admit(numbered)?;
        Ok(text(item, PATCH).map(str::to_owned))
    }

    async fn read(
        &self,
        keys: impl IntoIterator<Item = TableItem>,
    ) -> Result<Vec<TableItem>, StoreError> {
        Ok(self.table.get_all(keys.into_iter().collect()).await?)
    }

    /// Writes the thread's record, its sandbox's, or both, as `expected` names versions of them, if those are the
    /// stored versions (0: none is stored). Atomically with that it removes the control flags in `stale` and writes
    /// these ledger entries and the names that the sandbox gets or gives up.
    ///
    /// A write that keeps meeting other writes of the same items counts as a conflict: the caller reads again.
    ///
    /// Returns the control flags beside the record after the write; `None` if the table does not return them, which is
    /// so for more than one item.
    ///
    /// # Errors
    /// [`StoreError`]; the write may or may not have happened, and the version tells.
    pub async fn save(
        &self,
        session: &Session,
        expected: ExpectedVersions,
        stale: &ControlFlags,
        entries: &[LedgerEntry],
        expires_at_ms: Ms,
    ) -> Result<Written, StoreError> {
        let update = expected.thread.map(|version| thread_write(session, version, stale));
        let names = &session.observed.writes.names;
        let watches = &session.observed.writes.watches;
        let budgets = &session.observed.writes.budgets;
        let is_alone = entries.is_empty()
            && names.is_empty()
            && budgets.is_empty()
            && watches.is_empty()
            && expected.sandbox.is_none();
        let mut writes = match update {
            Some(update) if is_alone => {
                return match self.table.update(update).await {
                    Ok(Some(item)) => Ok(Written::Yes(Some(flags::flags(&item)?))),
                    Ok(None) => Ok(Written::Conflict),
                    Err(error) => of_contention(error),
                };
            }
            update => Vec::from_iter(update),
        };
        if let Some(version) = expected.sandbox {
            let sandbox = session.sandbox_at_hand();
            writes.push(sandbox_write(&sandbox, &session.sandbox, version));
        }
        writes.extend(names_write(names));
        let watch = |one| watch_writes(&session.thread, one, expires_at_ms);
        writes.extend(watches.iter().flat_map(watch));
        for entry in entries {
            let item = entry_item(&session.thread, entry, expires_at_ms)?;
            writes.push(ItemWrite::put(item));
            writes.extend(patch_item(&session.thread, entry, expires_at_ms).map(ItemWrite::put));
        }
        let before = writes.len();
        let tenant = session.thread.tenant();
        writes.extend(budgets.iter().map(|one| budget_write(&tenant, one)));
        // Many turns may meet over the sum of a tenant.
        let attempts = if budgets.is_empty() { CONTENTIONS_MAX } else { BUDGET_CONTENTIONS_MAX };
        match self.table.transact_showing(writes, attempts).await {
            Ok(Transacted::Done) => Ok(Written::Yes(None)),
            // A record that others have written counts first: its delivery has nothing to decide any more.
            Ok(Transacted::Lost(lost)) if lost.iter().any(|(nth, _)| *nth < before) => {
                Ok(Written::Conflict)
            }
            Ok(Transacted::Lost(lost)) => {
                let first = lost.into_iter().next();
                let over = first.and_then(|(nth, item)| Some((budgets.get(nth - before)?, item?)));
                Ok(over.map_or(Written::Conflict, |(budget, item)| Written::OverBudget {
                    scope: budget.scope.clone(),
                    used: budgets::used(&item),
                }))
            }
            Err(error) => of_contention(error),
        }
    }
}

fn of_contention(error: CallError) -> Result<Written, StoreError> {
    match error.cause() {
        FailureCause::Contended => Ok(Written::Conflict),
        _ => Err(error.into()),
    }
}

/// The keys that a delivery reads, except the ledger's.
fn turn_keys(thread: &ThreadKey) -> Vec<TableItem> {
    let mut keys = record_keys(thread).to_vec();
    keys.push(key(thread, PARKED));
    keys.push(tenant::settings_key(&thread.tenant()));
    keys
}
