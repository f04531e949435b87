//! Snapshots: the providers' lists joined with the records. One that only a record has has expired.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bobbin_core::base::ids::{Ms, SandboxKey, Tenant, ThreadKey};
use bobbin_core::records::sandbox::{KeptSnapshot, SandboxRecord};
use bobbin_sandbox::{Provider, SnapshotName, SnapshotState, SnapshotStore};

use super::named::{all_named, unread};
use super::stack::Stack;
use crate::output::CommandError;

/// A snapshot, by a provider, by a record, or by both.
pub struct FoundSnapshot<'a> {
    /// Name at the provider.
    pub id: String,
    /// Its source sandbox, if known.
    pub of: Option<(&'a SandboxKey, &'a SandboxRecord)>,
    /// What the record says of it.
    pub kept: Option<&'a KeptSnapshot>,
    /// Its provider.
    pub provider: String,
    /// When it was requested.
    pub at_ms: Ms,
    /// `ready`, `being made`, `asleep`, `failed`, `gone` (in a record, no longer at the provider), or `unknown` (in a
    /// record, at a provider or in an account that was not asked).
    pub state: &'static str,
    /// Size at the provider in GiB, if known.
    pub gib: Option<f64>,
}

/// The possible source sandboxes: named and live ones, and builders whose prebuild is kept.
///
/// # Errors
/// The table cannot be read.
pub async fn sources(
    stack: &Stack,
    tenant: Option<&Tenant>,
) -> Result<BTreeMap<SandboxKey, SandboxRecord>, CommandError> {
    let named = all_named(stack, tenant).await?;
    let armed = stack.store.all_armed().await.map_err(|e| unread(&e))?;
    let wanted = |thread: &&ThreadKey| tenant.is_none_or(|tenant| *tenant == thread.tenant());
    let armed = armed.iter().filter(wanted).map(ThreadKey::sandbox);
    let keys = named.listed.into_iter().map(|one| one.key).chain(armed);
    let keys = keys.collect();
    let read = stack.store.sandboxes(&keys).await.map_err(|e| unread(&e))?;
    let readable = |(key, record): (SandboxKey, Result<Option<SandboxRecord>, _>)| {
        Some((key, record.ok().flatten()?))
    };
    Ok(read.into_iter().filter_map(readable).collect())
}

/// The snapshots of these sandboxes, and those of others that are wanted by their names; the newest first.
///
/// # Errors
/// No provider has snapshots, or one failed; with advice.
pub async fn found<'a>(
    stack: &Stack,
    records: &'a BTreeMap<SandboxKey, SandboxRecord>,
    wanted: impl Fn(&SnapshotName, Option<&SandboxKey>) -> bool,
) -> Result<Vec<FoundSnapshot<'a>>, CommandError> {
    let names = stack.provider_names().await?;
    let mut asked = BTreeSet::new();
    let mut all = Vec::new();
    for provider in &names {
        let known = stack.provider_named(Some(provider)).await?;
        let Ok(snapshots) = known.facts().snapshots() else { continue };
        asked.insert(provider.as_str());
        for snapshot in snapshots.list().await.map_err(|e| trouble(&e))? {
            let of = records.iter().find(|(key, _)| snapshot.name.is_of(stack.labels(), key));
            if !wanted(&snapshot.name, of.map(|(key, _)| key)) {
                continue;
            }
            let id = snapshot.name.to_string();
            all.push(FoundSnapshot {
                of,
                kept: of
                    .and_then(|(_, record)| record.snapshots.iter().find(|kept| kept.name == id)),
                provider: provider.clone(),
                at_ms: snapshot.name.at_ms(),
                state: word(&snapshot.state),
                gib: snapshot.gib,
                id,
            });
        }
    }
    if asked.is_empty() {
        able(&*stack.provider().await?)?;
    }
    for (key, record) in records {
        let provider = record.spec.provider.as_ref().unwrap_or(&names[0]);
        let is_asked = asked.contains(provider.as_str()) && record.spec.credentials.is_none();
        for kept in &record.snapshots {
            if all.iter().all(|one| one.id != kept.name) {
                all.push(FoundSnapshot {
                    id: kept.name.clone(),
                    of: Some((key, record)),
                    kept: Some(kept),
                    provider: provider.clone(),
                    at_ms: kept.at_ms,
                    state: if is_asked { "gone" } else { "unknown" },
                    gib: None,
                });
            }
        }
    }
    all.sort_by_key(|one| std::cmp::Reverse(one.at_ms));
    Ok(all)
}

/// The provider that has it; `None`: it is at none.
///
/// # Errors
/// No provider has snapshots, or one failed; with advice.
pub async fn provider_with(
    stack: &Stack,
    name: &SnapshotName,
) -> Result<Option<Arc<dyn Provider>>, CommandError> {
    let mut is_any = false;
    for provider in stack.providers().await? {
        let Ok(snapshots) = provider.facts().snapshots() else { continue };
        is_any = true;
        let state = snapshots.observe(name).await.map_err(|e| trouble(&e))?;
        if state != SnapshotState::Absent {
            return Ok(Some(provider));
        }
    }
    if !is_any {
        able(&*stack.provider().await?)?;
    }
    Ok(None)
}

const fn word(state: &SnapshotState) -> &'static str {
    match state {
        SnapshotState::Underway => "being made",
        SnapshotState::Ready => "ready",
        SnapshotState::Asleep => "asleep",
        SnapshotState::Failed { .. } => "failed",
        SnapshotState::Absent => "gone",
    }
}

/// A size for people.
pub fn size(gib: Option<f64>) -> String {
    gib.map_or_else(|| "-".to_owned(), |gib| format!("{gib:.1} GiB"))
}

/// The provider's snapshot store, if it has one.
///
/// # Errors
/// It has none; says why.
pub fn able(provider: &dyn Provider) -> Result<&dyn SnapshotStore, CommandError> {
    let snapshots = provider.facts().snapshots();
    snapshots.map_err(|why| format!("The provider of this stack has no snapshots: {why}.").into())
}

/// The error of a provider that failed.
pub fn trouble(error: &bobbin_sandbox::ProviderError) -> CommandError {
    format!("The provider failed: {error}. Try again in a minute; its status page says more.")
        .into()
}
