//! Data that the page shows beside a thread: the records of threads and sandboxes from the table, and sandboxes from
//! the provider; and the way to the forge.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use bobbin_core::base::ids::{SandboxKey, ThreadKey};
use bobbin_core::base::names::sandbox_name;
use bobbin_core::records::ledger::LedgerEntry;
use bobbin_core::records::sandbox::SandboxRecord;
use bobbin_core::records::session::Session;
use bobbin_core::schema::{self, Shape};
use bobbin_core::shown::sandboxes::{Listed, sort};
use bobbin_core::shown::usage::{UsagePage, of_thread, scopes};
use bobbin_core::tenant::budgets::BudgetScope;
use bobbin_core::tenant::settings::Settings;
use bobbin_local_aws::Tables;
use bobbin_local_chat::{ForgePane, Inspector};
use bobbin_local_daytona::LocalDaytona;
use futures::future::{BoxFuture, FutureExt};
use serde_json::{Value, json};

use crate::STACK;
use crate::forge_pane::LaptopForge;

/// Items per read of the table, and the most reads.
const PAGE_ITEMS: usize = 500;
const PAGES_MAX: usize = 10;

/// Reads the table and the provider.
pub struct StackInspector {
    /// The tables and the name of the stack's table, once they are up.
    pub table: Arc<OnceLock<(Tables, String)>>,
    /// The provider whose sandboxes are listed.
    pub provider: Arc<LocalDaytona>,
    /// The second provider.
    pub vercel: Arc<bobbin_local_vercel::LocalVercel>,
    /// The forge.
    pub forge: LaptopForge,
}

impl StackInspector {
    async fn items(&self) -> Option<Vec<Value>> {
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
        Some(items)
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

fn text<'a>(item: &'a Value, attribute: &str) -> Option<&'a str> {
    item[attribute]["S"].as_str()
}

/// Sandbox records by key.
fn sandboxes(items: &[Value]) -> BTreeMap<SandboxKey, SandboxRecord> {
    let read = |item: &Value| {
        let is_sandbox = text(item, "item")? == "sandbox";
        let key = text(item, "thread").filter(|_| is_sandbox)?.parse().ok()?;
        Some((key, SandboxRecord::decode(text(item, "record")?).ok()?))
    };
    items.iter().filter_map(read).collect()
}

/// A thread's record with its sandbox's record.
fn session(item: &Value, sandboxes: &BTreeMap<SandboxKey, SandboxRecord>) -> Option<Session> {
    if text(item, "item")? != "session" {
        return None;
    }
    let mut session = Session::decode(text(item, "record")?, None).ok()?;
    if let Some(record) = sandboxes.get(&session.sandbox_key()) {
        session.sandbox = record.clone();
    }
    Some(session)
}

/// A thread's stored record, with its sandbox's record and provider name, and the ledger's entries of its ended turns.
fn shown_session(
    item: &Value,
    items: &[Value],
    sandboxes: &BTreeMap<SandboxKey, SandboxRecord>,
) -> Option<Value> {
    let session = session(item, sandboxes)?;
    let mut shown: Value = serde_json::from_str(text(item, "record")?).ok()?;
    let key = session.sandbox_key();
    shown["sandbox"] = serde_json::from_str(&session.sandbox.encode()).ok()?;
    shown["sandbox_key"] = key.to_string().into();
    if session.sandbox.is_alive() {
        let name = sandbox_name(STACK, &key, session.sandbox.generation);
        shown["sandbox"]["at_provider"] = name.into();
    }
    shown["spending"] = spending(&session, items).into();
    let all = shown["ended"].as_array_mut()?;
    for ended in &mut *all {
        let name = format!("turn#{}", ended["id"].as_str()?);
        let known = items.iter().find(|one| {
            one["thread"] == item["thread"] && text(one, "item") == Some(name.as_str())
        });
        let entry = known.and_then(|one| text(one, "entry"));
        if let Some(entry) = entry.and_then(|text| serde_json::from_str::<LedgerEntry>(text).ok()) {
            ended["took_ms"] = entry.took_ms().into();
            ended["tokens"] = entry.usage.tokens.into();
        }
    }
    // Naming, connecting and resetting are remembered like turns, but used nothing.
    all.retain(|ended| {
        ended.get("took_ms").is_some() || ended["outcome"] != json!({"outcome": "answered"})
    });
    Some(shown)
}

/// What a thread and its tenant have spent, as the command for it says that.
fn spending(session: &Session, items: &[Value]) -> Vec<String> {
    let tenant = session.thread.tenant();
    let at = |partition: &str, name: &str| {
        let is_it = |item: &&Value| {
            text(item, "thread") == Some(partition) && text(item, "item") == Some(name)
        };
        items.iter().find(is_it)
    };
    let stored = at(&format!("tenant:{tenant}"), "settings");
    let stored = stored.and_then(|item| text(item, "settings"));
    let settings = stored.and_then(|text| schema::read::<Settings>(Shape::Settings, text).ok());
    let budgets = settings.map(|(settings, _)| settings.budgets).unwrap_or_default();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let scopes = scopes(&budgets, "", "", now.as_millis() as u64);
    let used = |scope: BudgetScope| {
        let (partition, name) = scope.place(&tenant);
        let used = at(&partition, &name).and_then(|item| item["used"]["N"].as_str()?.parse().ok());
        (scope, used.unwrap_or_default())
    };
    let page = UsagePage {
        budgets,
        thread: Some(of_thread(session)),
        sums: scopes.into_iter().map(used).collect(),
        ..UsagePage::default()
    };
    page.sums()
}

/// The recorded sandboxes as in the list, named ones first, each with the turns that work or wait in it.
fn listed(items: &[Value]) -> Vec<(Listed, Value)> {
    let records = sandboxes(items);
    let sessions: Vec<Session> = items.iter().filter_map(|item| session(item, &records)).collect();
    let mut all: Vec<Listed> = records
        .iter()
        .filter(|(_, record)| record.is_alive() || record.is_shared())
        .map(|(key, record)| Listed::of(key, record))
        .collect();
    sort(&mut all);
    all.sort_by_key(|one| one.name.is_none());
    let shown = |one: Listed| {
        let record = records.get(&one.key)?;
        let here = sessions.iter().filter(|each| each.sandbox_key() == one.key);
        let threads: BTreeSet<&ThreadKey> = here
            .map(|each| &each.thread)
            .chain(&record.sharing.threads)
            .chain(record.sharing.in_use.iter().map(|each| &each.thread))
            .chain(record.sharing.waiting.iter().map(|each| &each.thread))
            .collect();
        let value = json!({
            "key": one.key,
            "called": one.name,
            "provider": one.provider,
            "phase": one.phase,
            "state": one.state(),
            "repo": one.repo,
            "last_used_ms": one.last_used_ms,
            "threads": threads,
            "in_use": record.sharing.in_use,
            "waiting": record.sharing.waiting,
            "lease": record.lease,
            "closing": record.sharing.closing,
            "snapshots": one.snapshots,
        });
        Some((one, value))
    };
    all.into_iter().filter_map(shown).collect()
}

impl Inspector for StackInspector {
    fn sessions(&self) -> BoxFuture<'_, Vec<Value>> {
        async {
            let items = self.items().await.unwrap_or_default();
            let records = sandboxes(&items);
            let shown = |item: &Value| shown_session(item, &items, &records);
            items.iter().filter_map(shown).collect()
        }
        .boxed()
    }

    fn sandboxes(&self) -> BoxFuture<'_, Vec<Value>> {
        async {
            let listing = self.provider.sandboxes().into_iter();
            let mut at_provider: Vec<Value> = listing
                .map(|sandbox| json!({"id": sandbox.id, "name": sandbox.name, "state": sandbox.state, "why": sandbox.why, "labels": sandbox.labels}))
                .collect();
            let others = self.vercel.sandboxes().into_iter();
            at_provider.extend(others.map(|sandbox| json!({"id": sandbox.name, "name": sandbox.name, "state": sandbox.state, "labels": sandbox.labels})));
            let items = self.items().await.unwrap_or_default();
            let mut all = Vec::new();
            for (listed, mut shown) in listed(&items) {
                let name = sandbox_name(STACK, &listed.key, listed.generation);
                let there = at_provider.iter().position(|one| one["name"] == name.as_str());
                shown["name"] = name.into();
                shown["at_provider"] = there.map(|at| at_provider.remove(at)).into();
                all.push(shown);
            }
            // Sandboxes without a record: left over, or somebody else's.
            all.extend(at_provider.into_iter().map(|one| {
                json!({"name": one["name"], "at_provider": one})
            }));
            all
        }
        .boxed()
    }

    fn forge(&self) -> Option<&dyn ForgePane> {
        Some(&self.forge)
    }
}
