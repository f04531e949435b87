//! `sandbox snapshot`: creates, lists and deletes snapshots.

use std::collections::BTreeMap;

use bobbin_cloud::clock::now_ms;
use bobbin_core::base::ids::{Ms, SandboxKey, Tenant};
use bobbin_core::records::control::Operation;
use bobbin_core::records::sandbox::SandboxRecord;
use bobbin_sandbox::{SnapshotName, SnapshotState};
use serde::Serialize;

use super::super::act;
use super::super::arguments::{GivenSandbox, TakeSnapshot};
use super::super::kept::{self, FoundSnapshot, able, size, trouble};
use super::super::stack::Stack;
use super::chosen;
use crate::output::{CommandError, ExitStatus, Output};
use crate::table::{Style, table};
use crate::time::when;

/// Snapshots per list, newest first.
pub const LISTED_MAX: usize = 500;
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
    /// As in [`FoundSnapshot`].
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
    let records = match which {
        Some(which) => {
            let chosen = chosen(stack, which, what.tenant.as_ref()).await?;
            BTreeMap::from([(chosen.key, chosen.record)])
        }
        None => kept::sources(stack, what.tenant.as_ref()).await?,
    };
    let wanted = |name: &SnapshotName, of: Option<&SandboxKey>| {
        let is_theirs = |tenant: &Tenant| name.is_of_tenant(tenant) || name.is_prebuild_of(tenant);
        what.tenant.as_ref().is_none_or(is_theirs) && (of.is_some() || which.is_none())
    };
    let line = |found: FoundSnapshot<'_>| SnapshotLine {
        sandbox: found.of.map(|(key, _)| key.clone()),
        name: found.of.and_then(|(_, one)| one.sharing.name.as_ref().map(ToString::to_string)),
        at_ms: found.at_ms,
        prebuild_of: found.of.and_then(|(_, record)| built(record)),
        by: found.kept.map(|kept| kept.by.name.clone()),
        state: found.state,
        gib: found.gib,
        id: found.id,
    };
    let found = kept::found(stack, &records, wanted).await?;
    let mut lines: Vec<SnapshotLine> = found.into_iter().map(line).collect();
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
            size(line.gib),
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

async fn delete(stack: &Stack, id: &str) -> Result<Output, CommandError> {
    let listed = format!("List the snapshots with: bobbin {} sandbox snapshot --list", stack.said);
    let Some(name) = SnapshotName::parse(stack.labels(), id) else {
        return Err(CommandError::not_found(format!(
            "{id} is not a snapshot of a sandbox of this stack, so nothing was deleted. {listed}"
        )));
    };
    let provider = kept::provider_with(stack, &name).await?;
    let Some(provider) = provider else {
        return Err(CommandError::not_found(format!(
            "The snapshot {id} no longer exists. {listed}"
        )));
    };
    let deleted = able(&*provider)?.delete(&name).await;
    deleted.map_err(|e| trouble(&e))?;
    let words = format!("{id} is deleted. Sandboxes that started from it are unchanged.");
    let deleted = id.to_owned();
    Output::new(words, &Deleted { deleted }, ExitStatus::Done)
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
