//! Orphans: sandboxes of our stack that belong to no live generation. The provider is listed first, then the records
//! are read.

use bobbin_app::orphans::{OrphanVerdict, judge_all};
use bobbin_cloud::clock::now_ms;
use bobbin_cloud::config::Config;
use bobbin_cloud::queue::Queues;
use bobbin_cloud::store::{RECORDS_MAX, Store, StoreError};
use bobbin_core::protocol::decide::orphan::is_unbelievable;
use bobbin_core::protocol::signals::ORPHANS_HELD;
use bobbin_core::schema::NEWER;
use bobbin_sandbox::{Deletion, ErrorKind, Provider, Sandbox};
use serde_json::{Value, json};

use crate::vanished::ask_to_reconcile;

/// Maximum number of sandboxes deleted in one tick; the next tick finds the rest.
const REAPED_MAX: usize = 20;

/// Counts of what happened to the listed sandboxes.
#[derive(Default)]
pub struct Reaped {
    listed: usize,
    deleted: usize,
    /// Orphans not deleted, because they were most of the list.
    held: usize,
}

impl Reaped {
    /// Adds another provider's counts.
    pub fn and(self, other: Self) -> Self {
        Self {
            listed: self.listed + other.listed,
            deleted: self.deleted + other.deleted,
            held: self.held + other.held,
        }
    }

    /// The counts as JSON, for an operator who invokes the function by hand.
    pub fn summary(&self) -> Value {
        json!({"listed": self.listed, "deleted": self.deleted})
    }

    /// Fails if most of the listed sandboxes are orphans.
    ///
    /// # Errors
    /// How many were kept for that reason.
    pub fn is_believable(&self) -> Result<(), String> {
        match (self.held, self.listed) {
            (0, _) => Ok(()),
            (held, listed) => Err(format!(
                "{held} of {listed} sandboxes look like orphans and are kept until a person has checked them (docs/RUNBOOK.md, SweeperFails)"
            )),
        }
    }
}

/// Deletes orphans, unless they are most of the list. A record that gave its listed sandbox up as vanished is asked to
/// reconcile.
///
/// # Errors
/// The last error, after everything else was tried.
pub async fn reap(
    config: &Config,
    (store, queues): (&Store, &Queues),
    provider: &dyn Provider,
    listed: &[Sandbox],
) -> Result<Reaped, String> {
    let (mut deleted, mut trouble) = (0_usize, None);
    let (mut orphans, mut back) = (Vec::new(), Vec::new());
    for some in listed.chunks(RECORDS_MAX) {
        let graces = (&config.limits.sandbox).into();
        let judged = judge_all(store, &config.stack_id, some, now_ms(), graces).await;
        for (sandbox, judged) in some.iter().zip(judged) {
            if let Ok(OrphanVerdict::TakenBack) = judged
                && let Some((key, _)) = sandbox.owner()
            {
                tracing::warn!(event = "sandbox.vanished.seen", sandbox.name = %sandbox.name, "a sandbox exists that its record gave up as vanished: the record is reconciled again");
                back.push(key);
            }
            match orphaned(sandbox, judged) {
                Ok(true) => orphans.push(sandbox),
                Ok(false) => {}
                Err(error) => trouble = Some(error),
            }
        }
    }
    if let Some(unsent) = ask_to_reconcile(queues, back, now_ms()).await {
        trouble = Some(unsent);
    }
    if is_unbelievable(orphans.len(), listed.len()) {
        tracing::error!(
            event = ORPHANS_HELD,
            listed = listed.len(),
            orphans = orphans.len(),
            "most of the provider's sandboxes look like orphans: nothing is deleted until a person has checked them (docs/RUNBOOK.md)"
        );
        return Ok(Reaped { listed: listed.len(), deleted: 0, held: orphans.len() });
    }
    for sandbox in orphans.into_iter().take(REAPED_MAX) {
        match delete(provider, sandbox).await {
            Ok(false) => {}
            Ok(true) => {
                tracing::warn!(event = "sandbox.orphan.destroyed", sandbox.name = %sandbox.name, "an orphan was deleted");
                deleted += 1;
            }
            Err(error) => {
                trouble = Some(format!("{} could not be deleted: {error}", sandbox.name));
            }
        }
    }
    match trouble {
        None => Ok(Reaped { listed: listed.len(), deleted, held: 0 }),
        Some(trouble) => {
            tracing::error!(
                event = "sandbox.orphan.failed",
                listed = listed.len(),
                deleted,
                "{trouble}"
            );
            Err(trouble)
        }
    }
}

/// Deletes the sandbox if its labels are still those it was judged by: labels can change after a listing.
async fn delete(provider: &dyn Provider, listed: &Sandbox) -> Result<bool, String> {
    let now = match provider.observe(&listed.id).await {
        Ok(now) => now,
        Err(error) if error.kind == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error.to_string()),
    };
    if now.labels != listed.labels {
        tracing::warn!(event = "sandbox.orphan.changed", sandbox.name = %listed.name, "the labels of an orphan have changed since it was listed: it is left for the next sweep");
        return Ok(false);
    }
    match provider.delete(Deletion::Found(&now)).await {
        Ok(_) => Ok(true),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.to_string()),
    }
}

/// A sandbox with our stack's label but no thread or time is left for a person: it is not ours to judge.
fn orphaned(sandbox: &Sandbox, judged: Result<OrphanVerdict, StoreError>) -> Result<bool, String> {
    match judged {
        Ok(OrphanVerdict::Orphan) => Ok(true),
        Ok(
            OrphanVerdict::Spared
            | OrphanVerdict::Kept
            | OrphanVerdict::TakenBack
            | OrphanVerdict::Foreign,
        ) => Ok(false),
        Ok(OrphanVerdict::Unknown) => {
            tracing::warn!(event = "sandbox.orphan.unnamed", sandbox.name = %sandbox.name, "a sandbox carries our stack's name but not its thread, generation or time of creation, or neither the stack's id nor a record");
            Ok(false)
        }
        // Only a newer worker can read its owner's record: the sandbox is not ours to delete, and this is not an error.
        Err(StoreError::Newer(seen)) => {
            tracing::warn!(event = NEWER, sandbox.name = %sandbox.name, "{seen}");
            Ok(false)
        }
        Err(error) => Err(error.to_string()),
    }
}
