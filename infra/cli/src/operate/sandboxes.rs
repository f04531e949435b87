//! What the provider lists, joined with the records.

use std::collections::BTreeSet;
use std::sync::Arc;

use bobbin_app::orphans::{Judged, judged, origin};
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

/// A sandbox, as it is told to programs.
#[derive(Debug, Default, Serialize)]
pub struct Line {
    /// Its name at the provider; none where there is none.
    pub name: Option<String>,
    /// The id that the provider gave it.
    pub id: Option<String>,
    /// The thread that it was made for, by its labels; its own key where that was none.
    pub thread: Option<String>,
    /// Which of its generations it is.
    pub generation: Option<u32>,
    /// The provider's word for its state; `unlisted` where the provider does not list it.
    pub state: String,
    /// When it was made.
    pub created_at_ms: Option<Ms>,
    /// What the record says: `live`, `orphan`, `young` (no record has it, and it may be too early to say),
    /// `vanished` (its record gave it up, and takes it back or keeps it for a day), `unknown`
    /// (its labels, or a record of a newer version, cannot be read), `unlisted` (the record has it, the provider does not list
    /// it) or `none` (there is only a name).
    pub belongs: &'static str,
    /// What people call it.
    pub called: Option<String>,
    /// The provider that it was made at; none: the stack's first.
    pub provider: Option<String>,
    /// Its phase by the record.
    pub phase: Option<&'static str>,
    /// The repository that it was made with.
    pub repo: Option<String>,
    /// When a turn last began or ended in it.
    pub last_used_ms: Option<Ms>,
    /// The threads that share it.
    pub threads: Vec<ThreadKey>,
    /// Those of which a turn works in it now.
    pub in_use: Vec<ThreadKey>,
    /// Turns that wait for the common checkout.
    pub waiting: usize,
    /// Snapshots that were made of it and are on record.
    pub snapshots: usize,
    /// Somebody wants it destroyed: nothing begins in it any more.
    pub closing: bool,
}

impl Line {
    /// The line with what the record says.
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

/// A listed sandbox with what it is.
pub struct Found {
    /// As the provider lists it.
    pub sandbox: Sandbox,
    /// Who lists it.
    pub provider: Arc<dyn Provider>,
    /// Whose it is, by its labels.
    pub key: Option<SandboxKey>,
    /// The record of that key.
    pub record: Option<SandboxRecord>,
    /// What the command tells of it, in JSON and as a row.
    pub line: Line,
    /// By the sweeper's rule.
    pub judged: Judged,
}

/// What the provider lists of this stack, judged by the records, which are read after it.
pub async fn found(stack: &Stack, tenant: Option<&Tenant>) -> Result<Vec<Found>, CommandError> {
    let mut listed: Vec<(Sandbox, Arc<dyn Provider>)> = Vec::new();
    for provider in stack.providers().await? {
        let here = provider.list(tenant).await.map_err(|e| {
            format!("The sandboxes could not be listed: {e}. Look at the provider's status page and at the stack's key.")
        })?;
        // Those of another stack of this name are none of this one's business.
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
            // What a newer version keeps is not ours to judge.
            Some(Err(StoreError::Newer(_))) => Err(()),
            Some(Err(error)) => {
                let of = key.map(|key| key.to_string()).unwrap_or_default();
                return Err(format!(
                    "{error}: {of}. That sandbox cannot be judged; mend its record, or reset its thread."
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
) -> Found {
    let judged = match &record {
        Err(()) => Judged::Unknown,
        Ok(record) => {
            let graces = (&stack.limits.sandbox).into();
            judged(&sandbox, &stack.id, record.as_ref(), now_ms(), graces)
        }
    };
    let record = record.ok().flatten();
    Found { line: line(&sandbox, record.as_ref(), &judged), sandbox, provider, key, record, judged }
}

fn line(sandbox: &Sandbox, record: Option<&SandboxRecord>, judged: &Judged) -> Line {
    let owner = sandbox.owner();
    let is_live = owner.as_ref().zip(record).is_some_and(|((_, generation), record)| {
        record.generation == *generation && record.is_alive()
    });
    Line {
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
            Judged::Unknown | Judged::Foreign => "unknown",
            Judged::Orphan => "orphan",
            Judged::Kept | Judged::TakenBack => "vanished",
            Judged::Spared if is_live => "live",
            Judged::Spared => "young",
        },
        ..Line::default()
    }
}

/// What the provider has, as a table for people.
pub fn shown(found: &[Found]) -> String {
    let now_ms = now_ms();
    let none = || "-".to_owned();
    let row = |Found { line, sandbox, .. }: &Found| {
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
