//! `sandboxes`: what the provider lists, joined with the records.

use std::collections::BTreeMap;

use bobbin_app::orphans::{Judged, judged, origin};
use bobbin_cloud::clock::now_ms;
use bobbin_cloud::store::StoreError;
use bobbin_core::ids::{Ms, Tenant, ThreadKey};
use bobbin_core::sandbox::SandboxState;
use bobbin_core::session::Session;
use bobbin_sandbox::Sandbox;
use serde::Serialize;

use super::arguments::Sandboxes;
use super::stack::Stack;
use crate::output::{CommandError, Output, Status};
use crate::table::{Style, table};
use crate::time::span;

/// Records that one call reads.
const BATCH: usize = 100;

/// A sandbox, as it is told to programs.
#[derive(Debug, Serialize)]
pub struct Line {
    /// Its name at the provider.
    pub name: String,
    /// The id that the provider gave it; people use the name.
    pub id: String,
    /// Whose it is, by its labels.
    pub thread: Option<String>,
    /// Which of the thread's sandboxes it is.
    pub generation: Option<u32>,
    /// The provider's word for its state.
    pub state: String,
    /// When it was made.
    pub created_at_ms: Option<Ms>,
    /// What the record says: `live`, `orphan`, `young` (no record has it, and it may be too early to say) or `unknown`
    /// (its labels, or a record of a newer version, cannot be read).
    pub belongs: &'static str,
}

/// A listed sandbox with what it is.
pub struct Found {
    /// As the provider lists it.
    pub sandbox: Sandbox,
    /// What the command tells of it, in JSON and as a row.
    pub line: Line,
    /// By the sweeper's rule.
    pub judged: Judged,
}

#[derive(Serialize)]
struct Answer<'a> {
    sandboxes: Vec<&'a Line>,
}

/// What the provider lists of this stack, judged by the records, which are read after it.
pub async fn found(stack: &Stack, tenant: Option<&Tenant>) -> Result<Vec<Found>, CommandError> {
    let provider = stack.provider().await?;
    let listed = provider.list(tenant).await.map_err(|e| {
        format!("The sandboxes could not be listed: {e}. Look at the provider's status page and at the stack's key.")
    })?;
    // Those of another stack of this name are none of this one's business.
    let listed: Vec<Sandbox> = listed
        .into_iter()
        .filter(|sandbox| !sandbox.is_foreign(&stack.id))
        .collect();
    let owners: Vec<ThreadKey> = listed
        .iter()
        .filter_map(|sandbox| sandbox.owner().map(|(key, _)| key.thread().clone()))
        .collect();
    let (records, newer) = records(stack, &owners).await?;
    let now_ms = now_ms();
    let judge = |sandbox: Sandbox| {
        let record = sandbox
            .owner()
            .and_then(|(key, _)| records.get(&key.to_string()));
        let of_newer = sandbox
            .owner()
            .is_some_and(|(key, _)| newer.contains(key.thread()));
        let judged = if of_newer {
            Judged::Unknown
        } else {
            let grace_ms = stack.limits.stale_grace_ms;
            judged(&sandbox, &stack.id, record, now_ms, grace_ms)
        };
        Found {
            line: line(&sandbox, record, &judged),
            judged,
            sandbox,
        }
    };
    Ok(listed.into_iter().map(judge).collect())
}

/// The records of these threads by their keys, and the threads whose record only a newer version can read: what that keeps is
/// not ours to judge.
async fn records(
    stack: &Stack,
    owners: &[ThreadKey],
) -> Result<(BTreeMap<String, Session>, Vec<ThreadKey>), CommandError> {
    let mut records: BTreeMap<String, Session> = BTreeMap::new();
    let mut missing = Vec::new();
    for batch in owners.chunks(BATCH) {
        let mut batch = batch.to_vec();
        batch.sort_by_key(ToString::to_string);
        batch.dedup();
        let read = stack
            .store
            .records(&batch)
            .await
            .map_err(|e| e.to_string())?;
        records.extend(
            read.into_iter()
                .map(|(session, _)| (session.thread.to_string(), session)),
        );
        missing.extend(
            batch
                .into_iter()
                .filter(|thread| !records.contains_key(&thread.to_string())),
        );
    }
    let mut newer = Vec::new();
    for thread in missing {
        match stack.store.record(&thread).await {
            Ok(_) => {}
            Err(StoreError::Newer(_)) => newer.push(thread),
            Err(error) => {
                return Err(format!(
                    "{error}: {thread}. Its sandbox cannot be judged; mend or reset that thread."
                )
                .into());
            }
        }
    }
    Ok((records, newer))
}

fn line(sandbox: &Sandbox, record: Option<&Session>, judged: &Judged) -> Line {
    let owner = sandbox.owner();
    // Without any age a sandbox that is nobody's would be an orphan.
    let live = match &owner {
        Some((_, generation)) => {
            !bobbin_core::decide::orphan::is_orphan(record, *generation, 0, 0, 0)
        }
        None => false,
    };
    Line {
        name: sandbox.name.clone(),
        id: sandbox.id.clone(),
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
            Judged::Spared if live => "live",
            Judged::Spared => "young",
        },
    }
}

pub async fn run(stack: &Stack, what: &Sandboxes) -> Result<Output, CommandError> {
    let found = found(stack, what.tenant.as_ref()).await?;
    let lines: Vec<&Line> = found
        .iter()
        .filter(|one| one.sandbox.state != SandboxState::Gone)
        .map(|one| &one.line)
        .collect();
    let code = if lines.is_empty() {
        Status::Notice
    } else {
        Status::Done
    };
    let words = if lines.is_empty() {
        "The provider lists no sandbox of this stack.".to_owned()
    } else {
        shown(&lines)
    };
    Output::new(words, &Answer { sandboxes: lines }, code)
}

/// The sandboxes as a table for people.
pub fn shown(lines: &[&Line]) -> String {
    let now_ms = now_ms();
    let row = |line: &&Line| {
        [
            line.name.clone(),
            line.thread.clone().unwrap_or_else(|| "-".to_owned()),
            line.state.clone(),
            line.created_at_ms
                .map_or_else(|| "-".to_owned(), |at| span(now_ms.saturating_sub(at))),
            line.belongs.to_owned(),
        ]
    };
    let rows: Vec<[String; 5]> = lines.iter().map(row).collect();
    table(
        ["SANDBOX", "THREAD", "STATE", "AGE", "IS"],
        &rows,
        Style::of_output(),
    )
}
