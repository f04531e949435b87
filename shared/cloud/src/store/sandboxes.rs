//! Sandboxes apart from the threads that work in them: their records by key, and the names that people gave them.
//!
//! The names of a tenant are one item (`thread = "tenant:<tenant>"`, `item = "names"`), with an attribute per name
//! (`name#<name>`) that holds the sandbox's key. One read returns them all, and a name is assigned and released by a
//! condition on its attribute alone, in one transaction with the records.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bobbin_core::base::ids::{SandboxKey, SandboxName, Tenant, ThreadKey};
use bobbin_core::records::observations::NameWrite;
use bobbin_core::records::sandbox::SandboxRecord;
use bobbin_core::records::session::Session;

use super::layout::{ITEM, ITEMS_A_RECORD, SANDBOX, record_keys, record_of, sandbox_key};
use super::{ITEMS_MAX, Store, StoreError};
use crate::aws::table::{ItemWrite, TableItem, s, text};

/// The item of a tenant's names, and the prefix of each name in it.
const NAMES: &str = "names";
const NAME: &str = "name#";

impl Store {
    /// The sandbox with this name in the tenant, read consistently.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn name(
        &self,
        tenant: &Tenant,
        name: &SandboxName,
    ) -> Result<Option<SandboxKey>, StoreError> {
        let names = self.names(tenant).await?;
        let found = names.into_iter().find(|(one, _)| one == name);
        Ok(found.map(|(_, key)| key))
    }

    /// All names of a tenant, sorted, read consistently: an item holds some thousand.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn names(
        &self,
        tenant: &Tenant,
    ) -> Result<Vec<(SandboxName, SandboxKey)>, StoreError> {
        let Some(item) = self.table.get(names_key(tenant)).await? else {
            return Ok(Vec::new());
        };
        let named = |name: &String| {
            let key = text(&item, name)?.parse().ok()?;
            Some((name.strip_prefix(NAME)?.parse().ok()?, key))
        };
        let mut names: Vec<_> = item.keys().filter_map(named).collect();
        names.sort();
        Ok(names)
    }

    /// The records of these sandboxes, read consistently; missing and unreadable records are distinguished.
    ///
    /// # Errors
    /// [`StoreError`], when none could be read.
    pub async fn sandboxes(
        &self,
        keys: &BTreeSet<SandboxKey>,
    ) -> Result<BTreeMap<SandboxKey, Result<Option<SandboxRecord>, StoreError>>, StoreError> {
        let all: Vec<&SandboxKey> = keys.iter().collect();
        let mut found: BTreeMap<SandboxKey, Vec<TableItem>> = BTreeMap::new();
        for some in all.chunks(ITEMS_MAX / ITEMS_A_RECORD) {
            // A record from before the split is in its thread's item.
            let wanted = some.iter().flat_map(|key| record_keys(key.thread()));
            for item in self.read(wanted).await? {
                if let Some(key) = text(&item, "thread").and_then(|key| key.parse().ok()) {
                    found.entry(key).or_default().push(item);
                }
            }
        }
        let of = |key: &SandboxKey| (key.clone(), record(found.get(key)));
        Ok(keys.iter().map(of).collect())
    }

    /// The record of one sandbox.
    ///
    /// # Errors
    /// [`StoreError`], also when it cannot be read.
    pub async fn sandbox_record(
        &self,
        key: &SandboxKey,
    ) -> Result<Option<SandboxRecord>, StoreError> {
        let read = self.sandboxes(&[key.clone()].into()).await?;
        Ok(read.into_values().next().transpose()?.flatten())
    }

    /// The record of this sandbox, if it exists.
    pub(super) async fn sandbox(&self, key: &SandboxKey) -> Result<SandboxRecord, StoreError> {
        let items = self.read([sandbox_key(key)]).await?;
        Ok(record(Some(&items))?.unwrap_or_default())
    }

    /// For threads that work in another sandbox than their own, puts that one's record in its place.
    pub(super) async fn follow_links<'a>(
        &self,
        sessions: impl Iterator<Item = &'a mut Session>,
    ) -> Result<(), StoreError> {
        let mut linked: Vec<&mut Session> =
            sessions.filter(|one| one.place.link.is_some()).collect();
        if linked.is_empty() {
            return Ok(());
        }
        let keys = linked.iter().map(|session| session.sandbox_key()).collect();
        let mut read = self.sandboxes(&keys).await?;
        for session in &mut linked {
            // An unreadable record counts as missing: a write of it fails its condition.
            let found = read.get_mut(&session.sandbox_key());
            let found = found.map(|found| found.clone()).transpose()?.flatten();
            session.sandbox = found.unwrap_or_default();
        }
        Ok(())
    }
}

/// The record in the items of a sandbox's key.
fn record(items: Option<&Vec<TableItem>>) -> Result<Option<SandboxRecord>, StoreError> {
    let Some(items) = items else { return Ok(None) };
    let item = items.iter().find(|item| text(item, ITEM) == Some(SANDBOX));
    item.map(|item| Ok(SandboxRecord::decode(record_of(item)?)?)).transpose()
}

/// Content of a sandbox's group: no thread, and the sandbox's record if it exists.
pub(super) fn of_group(
    group: &ThreadKey,
    items: &[TableItem],
) -> Result<Option<Session>, StoreError> {
    let found = record(Some(&items.to_vec()))?;
    Ok(found.map(|sandbox| Session { sandbox, ..Session::new(group.clone(), 0) }))
}

/// The write that gives a sandbox names and releases them, on condition that no other sandbox has one of them. It is
/// one, because a transaction may change an item once (DynamoDB API reference, TransactWriteItems); the last word on a
/// name counts, because an expression may change an attribute once.
pub(super) fn names_write(names: &[NameWrite]) -> Option<ItemWrite> {
    let tenant = names.first()?.sandbox.tenant();
    let last: BTreeMap<&SandboxName, &NameWrite> =
        names.iter().map(|one| (&one.name, one)).collect();
    let (mut set, mut remove, mut free) = (Vec::new(), Vec::new(), Vec::new());
    for (nth, one) in last.values().enumerate() {
        free.push(format!("(attribute_not_exists(#name{nth}) OR #name{nth} = :key{nth})"));
        if one.released {
            remove.push(format!("#name{nth}"));
        } else {
            set.push(format!("#name{nth} = :key{nth}"));
        }
    }
    let is_given = !set.is_empty();
    if is_given {
        set.push("#tenant = :tenant".to_owned());
    }
    let clauses = [("SET", set), ("REMOVE", remove)].into_iter();
    let clauses = clauses.filter(|(_, changes)| !changes.is_empty());
    let change: Vec<_> =
        clauses.map(|(verb, changes)| format!("{verb} {}", changes.join(", "))).collect();
    let mut update =
        ItemWrite::update(names_key(&tenant), change.join(" ")).condition(&free.join(" AND "));
    for (nth, one) in last.values().enumerate() {
        update = update
            .name(&format!("#name{nth}"), format!("{NAME}{}", one.name))
            .value(&format!(":key{nth}"), s(one.sandbox.to_string()));
    }
    if is_given {
        update = update.name("#tenant", "tenant").value(":tenant", s(tenant.as_str()));
    }
    Some(update)
}

fn names_key(tenant: &Tenant) -> TableItem {
    HashMap::from([
        ("thread".to_owned(), s(format!("tenant:{tenant}"))),
        (ITEM.to_owned(), s(NAMES)),
    ])
}
