//! `sandbox snapshot`: creates, lists and deletes snapshots.
//!
//! The provider's list joined with the records; a snapshot that only a record has has expired.

use std::collections::BTreeMap;

use bobbin_cloud::clock::now_ms;
use bobbin_core::base::ids::{Ms, SandboxKey, Tenant, ThreadKey};
use bobbin_core::records::message::Operation;
use bobbin_core::records::sandbox::SandboxRecord;
use bobbin_sandbox::{Provider, SnapshotName, SnapshotState, SnapshotStore};
use serde::Serialize;

use super::super::act;
use super::super::arguments::{GivenSandbox, TakeSnapshot};
use super::super::stack::Stack;
use super::chosen;
use crate::operate::named::{all_named, unread};
use crate::output::{CommandError, ExitStatus, Output};
use crate::table::{Style, table};
use crate::time::when;

/// Snapshots per list, newest first.
const LISTED_MAX: usize = 500;
/// Author of an automatic snapshot.
const BY_ITSELF: &str = "-";

#[derive(Serialize)]
struct Listing {
    snapshots: Vec<SnapshotLine>,
    /// The list was cut.
    more: bool,
}

/// A snapshot in JSON.
#[derive(Debug, Clone, Serialize)]
struct SnapshotLine {
    /// Name at the provider, as `--snapshot` and `--delete` take it.
    id: String,
    /// Key of its source sandbox, if known.
    sandbox: Option<SandboxKey>,
    /// Name of its source sandbox.
    name: Option<String>,
    /// When it was requested.
    at_ms: Ms,
    /// The repository, if it is a prebuild.
    prebuild_of: Option<String>,
    /// Requester; `None` if no record has one.
    by: Option<String>,
    /// `ready`, `being made`, `asleep`, `failed`, or `gone` (in a record, no longer at the provider).
    state: &'static str,
    /// Size at the provider in GiB, if known.
    gib: Option<f64>,
}

#[derive(Serialize)]
struct Deleted {
    deleted: String,
}

pub async fn run(stack: &Stack, what: &TakeSnapshot) -> Result<Output, CommandError> {
    if let Some(id) = &what.delete {
        return delete(stack, id).await;
    }
    let tenant = what.tenant.as_ref();
    match &what.sandbox {
        Some(which) if !what.list => {
            let chosen = chosen(stack, which, tenant).await?;
            act::carried(stack, Operation::Snapshot, &chosen, false, what.wait_ms).await
        }
        which => list(stack, which.as_ref(), what).await,
    }
}

async fn list(
    stack: &Stack,
    which: Option<&GivenSandbox>,
    what: &TakeSnapshot,
) -> Result<Output, CommandError> {
    let provider = stack.provider().await?;
    let snapshots = able(&*provider)?;
    let records = match which {
        Some(which) => {
            let chosen = chosen(stack, which, what.tenant.as_ref()).await?;
            BTreeMap::from([(chosen.key, chosen.record)])
        }
        None => known(stack, what).await?,
    };
    let mut lines = Vec::new();
    for snapshot in snapshots.list().await.map_err(|e| trouble(&e))? {
        let of = records.iter().find(|(key, _)| snapshot.name.is_of(stack.labels(), key));
        let is_theirs = |tenant: &Tenant| {
            snapshot.name.is_of_tenant(tenant) || snapshot.name.is_prebuild_of(tenant)
        };
        let is_other = what.tenant.as_ref().is_some_and(|tenant| !is_theirs(tenant));
        if is_other || of.is_none() && which.is_some() {
            continue;
        }
        let id = snapshot.name.to_string();
        let kept = of.and_then(|(_, record)| record.snapshots.iter().find(|one| one.name == id));
        lines.push(SnapshotLine {
            sandbox: of.map(|(key, _)| key.clone()),
            name: of.and_then(|(_, record)| record.sharing.name.as_ref().map(ToString::to_string)),
            at_ms: snapshot.name.at_ms(),
            prebuild_of: of.and_then(|(_, record)| built(record)),
            by: kept.map(|kept| kept.by.name.clone()),
            state: word(&snapshot.state),
            gib: snapshot.gib,
            id,
        });
    }
    for (key, record) in &records {
        for kept in &record.snapshots {
            if lines.iter().all(|line| line.id != kept.name) {
                lines.push(SnapshotLine {
                    id: kept.name.clone(),
                    sandbox: Some(key.clone()),
                    name: record.sharing.name.as_ref().map(ToString::to_string),
                    at_ms: kept.at_ms,
                    prebuild_of: built(record),
                    by: Some(kept.by.name.clone()),
                    state: "gone",
                    gib: None,
                });
            }
        }
    }
    lines.sort_by_key(|line| std::cmp::Reverse(line.at_ms));
    let more = lines.len() > LISTED_MAX;
    lines.truncate(LISTED_MAX);
    let status = if lines.is_empty() { ExitStatus::Notice } else { ExitStatus::Done };
    let text = words(stack, &lines, more);
    Output::new(text, &Listing { snapshots: lines, more }, status)
}

/// The repository of a builder.
fn built(record: &SandboxRecord) -> Option<String> {
    record.project.repo.clone().filter(|_| record.is_builder())
}

/// The possible source sandboxes: named and live ones.
async fn known(
    stack: &Stack,
    what: &TakeSnapshot,
) -> Result<BTreeMap<SandboxKey, SandboxRecord>, CommandError> {
    let named = all_named(stack, what.tenant.as_ref()).await?;
    let armed = stack.store.all_armed().await.map_err(|e| unread(&e))?;
    let wanted = |thread: &&ThreadKey| {
        let tenant = what.tenant.as_ref();
        tenant.is_none_or(|tenant| *tenant == thread.tenant())
    };
    let armed = armed.iter().filter(wanted).map(ThreadKey::sandbox);
    let keys = named.listed.into_iter().map(|one| one.key).chain(armed);
    let keys = keys.collect();
    let read = stack.store.sandboxes(&keys).await.map_err(|e| unread(&e))?;
    let readable = |(key, record): (SandboxKey, Result<Option<SandboxRecord>, _>)| {
        Some((key, record.ok().flatten()?))
    };
    Ok(read.into_iter().filter_map(readable).collect())
}

fn words(stack: &Stack, lines: &[SnapshotLine], more: bool) -> String {
    if lines.is_empty() {
        return "There are no snapshots.".to_owned();
    }
    let now_ms = now_ms();
    let row = |line: &SnapshotLine| {
        let of = line.sandbox.as_ref().map(ToString::to_string);
        let prebuilt = line.prebuild_of.as_ref().map(|repo| format!("prebuild of {repo}"));
        [
            line.id.clone(),
            prebuilt.or_else(|| line.name.clone()).or(of).unwrap_or_else(|| "-".to_owned()),
            when(line.at_ms, now_ms),
            match line.by.as_deref() {
                None | Some("") => BY_ITSELF.to_owned(),
                Some(by) => by.to_owned(),
            },
            line.state.to_owned(),
            line.gib.map_or_else(|| "-".to_owned(), |gib| format!("{gib:.1} GiB")),
        ]
    };
    let rows: Vec<[String; 6]> = lines.iter().map(row).collect();
    let heads = ["SNAPSHOT", "OF", "MADE", "BY", "STATE", "SIZE"];
    let mut text = table(heads, &rows, Style::of_output());
    if more {
        text.push_str(&format!(
            "\nThere are more. List those of one sandbox with: bobbin {} sandbox snapshot NAME --list",
            stack.said
        ));
    }
    text
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

async fn delete(stack: &Stack, id: &str) -> Result<Output, CommandError> {
    let listed = format!("List the snapshots with: bobbin {} sandbox snapshot --list", stack.said);
    let Some(name) = SnapshotName::parse(stack.labels(), id) else {
        return Err(CommandError::not_found(format!(
            "{id} is not a snapshot of a sandbox of this stack, so nothing was deleted. {listed}"
        )));
    };
    let provider = stack.provider().await?;
    let snapshots = able(&*provider)?;
    let state = snapshots.observe(&name).await;
    if state.map_err(|e| trouble(&e))? == SnapshotState::Absent {
        return Err(CommandError::not_found(format!(
            "The snapshot {id} no longer exists. {listed}"
        )));
    }
    let deleted = snapshots.delete(&name).await;
    deleted.map_err(|e| trouble(&e))?;
    let words = format!("{id} is deleted. Sandboxes that started from it are unchanged.");
    let deleted = id.to_owned();
    Output::new(words, &Deleted { deleted }, ExitStatus::Done)
}

/// The provider's snapshot store, if it has one.
fn able(provider: &dyn Provider) -> Result<&dyn SnapshotStore, CommandError> {
    let snapshots = provider.facts().snapshots();
    snapshots.map_err(|why| format!("The provider of this stack has no snapshots: {why}.").into())
}

fn trouble(error: &bobbin_sandbox::ProviderError) -> CommandError {
    format!("The provider failed: {error}. Try again in a minute; its status page says more.")
        .into()
}

/// Refuses a snapshot that is gone or unusable.
pub async fn look_at(
    stack: &Stack,
    tenant: &Tenant,
    snapshot: &str,
    provider: Option<&str>,
) -> Result<(), CommandError> {
    let listed = format!("List the snapshots with: bobbin {} sandbox snapshot --list", stack.said);
    let Some(name) = SnapshotName::parse(stack.labels(), snapshot) else {
        return Err(CommandError::not_found(format!(
            "{snapshot} is not a snapshot of a sandbox of this stack, so nothing was done. {listed}"
        )));
    };
    // A snapshot holds a sandbox's data: the tenant must match.
    if !name.is_of_tenant(tenant) {
        return Err(format!(
            "The snapshot {snapshot} belongs to another server or workspace than {tenant}, so nothing was done. {listed} --tenant {tenant}"
        )
        .into());
    }
    let provider = stack.provider_named(provider).await?;
    let state = match provider.facts().snapshots {
        Ok(snapshots) => snapshots.observe(&name).await,
        Err(_) => Ok(SnapshotState::Absent),
    };
    let state = state.map_err(|e| {
        format!("The snapshot could not be read, so nothing was done: {e}. Try again in a minute.")
    })?;
    match state {
        SnapshotState::Ready | SnapshotState::Asleep => Ok(()),
        SnapshotState::Underway => {
            Err("The snapshot is not ready yet, so nothing was done: try again in a minute.".into())
        }
        SnapshotState::Absent => Err(CommandError::not_found(format!(
            "The snapshot {snapshot} no longer exists: it has expired or was deleted. Nothing was done. {listed}"
        ))),
        SnapshotState::Failed { reason } => Err(format!(
            "The snapshot {snapshot} cannot be used: {reason}. Nothing was done. {listed}"
        )
        .into()),
    }
}
