//! The provider's list joined with the records.

use std::collections::BTreeSet;
use std::sync::Arc;

use bobbin_app::orphans::{OrphanVerdict, judged, origin};
use bobbin_cloud::clock::now_ms;
use bobbin_cloud::store::StoreError;
use bobbin_core::base::ids::{Ms, SandboxKey, Tenant, ThreadKey};
use bobbin_core::records::sandbox::SandboxRecord;
use bobbin_core::shown::sandboxes::Listed;
use bobbin_sandbox::{Provider, Sandbox};
use serde::Serialize;

use super::stack::Stack;
use crate::output::CommandError;
use crate::table::{Style, table};
use crate::time::span;

/// A sandbox in JSON.
#[derive(Debug, Default, Serialize)]
pub struct SandboxLine {
    /// Name at the provider; `None` if it has none.
    pub name: Option<String>,
    /// Id at the provider.
    pub id: Option<String>,
    /// The thread it was created for, by its labels; its own key if there was none.
    pub thread: Option<String>,
    /// Sandbox generation.
    pub generation: Option<u32>,
    /// The provider's state; `unlisted` if the provider does not list it.
    pub state: String,
    pub created_at_ms: Option<Ms>,
    /// Judgement by the record: `live`, `orphan`, `young` (in no record, perhaps only not yet), `vanished` (its record
    /// gave it up, and may take it back or keeps it for a day), `unknown` (its labels, or a record of a newer version,
    /// cannot be read), `unlisted` (in a record, not listed by the provider) or `none` (only a name).
    pub belongs: &'static str,
    /// Display name.
    pub called: Option<String>,
    /// Its provider; `None` means the stack's first.
    pub provider: Option<String>,
    /// Phase in the record.
    pub phase: Option<&'static str>,
    /// The repository it was created with.
    pub repo: Option<String>,
    /// When a turn last started or ended in it.
    pub last_used_ms: Option<Ms>,
    /// Threads that share it.
    pub threads: Vec<ThreadKey>,
    /// Threads with a turn at work in it.
    pub in_use: Vec<ThreadKey>,
    /// Turns waiting for the common checkout.
    pub waiting: usize,
    /// Recorded snapshots of it.
    pub snapshots: usize,
    /// It is to be destroyed; no turn starts in it any more.
    pub closing: bool,
}

impl SandboxLine {
    /// Adds the record's fields to the line.
    pub fn with(self, listed: &Listed) -> Self {
        Self {
            called: listed.name.as_ref().map(ToString::to_string),
            provider: listed.provider.clone(),
            phase: Some(listed.phase.word()),
            repo: listed.repo.clone(),
            last_used_ms: Some(listed.last_used_ms).filter(|at_ms| *at_ms > 0),
            threads: listed.threads.clone(),
            in_use: listed.in_use.clone(),
            waiting: listed.waiting,
            snapshots: listed.snapshots.len(),
            closing: listed.closing,
            ..self
        }
    }
}

/// A listed sandbox and its judgement.
pub struct FoundSandbox {
    /// The provider's entry.
    pub sandbox: Sandbox,
    /// Its provider.
    pub provider: Arc<dyn Provider>,
    /// Its key, by its labels.
    pub key: Option<SandboxKey>,
    /// The record under that key.
    pub record: Option<SandboxRecord>,
    /// Output, in JSON and as a row.
    pub line: SandboxLine,
    /// The sweeper's judgement.
    pub judged: OrphanVerdict,
}

/// Lists this stack's sandboxes at the provider, judged by the records, which are read afterwards.
pub async fn found(
    stack: &Stack,
    tenant: Option<&Tenant>,
) -> Result<Vec<FoundSandbox>, CommandError> {
    let mut listed: Vec<(Sandbox, Arc<dyn Provider>)> = Vec::new();
    for provider in stack.providers().await? {
        let here = provider.list(tenant).await.map_err(|e| {
            format!("The sandboxes could not be listed: {e}. Check the provider's status page and the stack's key.")
        })?;
        // Sandboxes of another stack with this name are ignored.
        let here = here.into_iter().filter(|sandbox| !sandbox.is_foreign(&stack.id));
        listed.extend(here.map(|sandbox| (sandbox, Arc::clone(&provider))));
    }
    let owner = |sandbox: &Sandbox| sandbox.owner().map(|(key, _)| key);
    let owners: BTreeSet<SandboxKey> =
        listed.iter().filter_map(|(sandbox, _)| owner(sandbox)).collect();
    let records = stack.store.sandboxes(&owners).await;
    let records = records.map_err(|e| e.to_string())?;
    let mut all = Vec::new();
    for (sandbox, provider) in listed {
        let key = owner(&sandbox);
        let found = key.as_ref().and_then(|key| records.get(key));
        let record = match found.cloned() {
            None => Ok(None),
            Some(Ok(record)) => Ok(record),
            // A newer version's record is not judged.
            Some(Err(StoreError::Newer(_))) => Err(()),
            Some(Err(error)) => {
                let of = key.map(|key| key.to_string()).unwrap_or_default();
                return Err(format!(
                    "{error}: {of}. That sandbox cannot be judged; repair its record, or reset its thread."
                )
                .into());
            }
        };
        all.push(judge(stack, (sandbox, provider), key, record));
    }
    Ok(all)
}

fn judge(
    stack: &Stack,
    (sandbox, provider): (Sandbox, Arc<dyn Provider>),
    key: Option<SandboxKey>,
    record: Result<Option<SandboxRecord>, ()>,
) -> FoundSandbox {
    let judged = match &record {
        Err(()) => OrphanVerdict::Unknown,
        Ok(record) => {
            let graces = (&stack.limits.sandbox).into();
            judged(&sandbox, &stack.id, record.as_ref(), now_ms(), graces)
        }
    };
    let record = record.ok().flatten();
    FoundSandbox {
        line: line(&sandbox, record.as_ref(), &judged),
        sandbox,
        provider,
        key,
        record,
        judged,
    }
}

fn line(sandbox: &Sandbox, record: Option<&SandboxRecord>, judged: &OrphanVerdict) -> SandboxLine {
    let owner = sandbox.owner();
    let is_live = owner.as_ref().zip(record).is_some_and(|((_, generation), record)| {
        record.generation == *generation && record.is_alive()
    });
    SandboxLine {
        name: Some(sandbox.name.clone()),
        id: Some(sandbox.id.clone()),
        thread: owner.as_ref().map(|(key, _)| key.to_string()),
        generation: owner.map(|(_, generation)| generation),
        state: match sandbox.said.as_str() {
            "" => "unknown".to_owned(),
            said => said.to_owned(),
        },
        created_at_ms: origin(sandbox).map(|(_, _, created_ms)| created_ms),
        belongs: match judged {
            OrphanVerdict::Unknown | OrphanVerdict::Foreign => "unknown",
            OrphanVerdict::Orphan => "orphan",
            OrphanVerdict::Kept | OrphanVerdict::TakenBack => "vanished",
            OrphanVerdict::Spared if is_live => "live",
            OrphanVerdict::Spared => "young",
        },
        ..SandboxLine::default()
    }
}

/// The provider's sandboxes as a table.
pub fn shown(found: &[FoundSandbox]) -> String {
    let now_ms = now_ms();
    let none = || "-".to_owned();
    let row = |FoundSandbox { line, sandbox, .. }: &FoundSandbox| {
        [
            sandbox.name.clone(),
            line.thread.clone().unwrap_or_else(none),
            line.state.clone(),
            line.created_at_ms.map_or_else(none, |at| span(now_ms.saturating_sub(at))),
            line.belongs.to_owned(),
        ]
    };
    let rows: Vec<[String; 5]> = found.iter().map(row).collect();
    let heads = ["SANDBOX", "OF", "STATE", "AGE", "IS"];
    table(heads, &rows, Style::of_output())
}
