//! Sandboxes that the provider lists, judged by the records: who owns them, and whether they are orphans.
//!
//! The sweeper and the operator's command line share this rule (`bobbin_core::protocol::decide::orphan`). The caller
//! lists first; the records are read here, afterwards.

use std::collections::BTreeSet;

#[cfg(doc)]
use bobbin_cloud::store::RECORDS_MAX;
use bobbin_cloud::store::{Store, StoreError};
use bobbin_core::base::ids::{Ms, SandboxKey};
use bobbin_core::protocol::decide::orphan::{Graces, RecordVerdict, fate, is_orphan};
use bobbin_core::records::sandbox::SandboxRecord;
use bobbin_sandbox::Sandbox;
use bobbin_sandbox::labels::LABEL_STACK_ID;

/// Verdict on a listed sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrphanVerdict {
    /// The present generation of its thread, or too young to be judged.
    Spared,
    /// Its record gave it up as vanished: kept for a while beside the next generation.
    Kept,
    /// Its record gave it up as vanished, and takes it back at the next reconcile.
    TakenBack,
    /// Belongs to no live generation.
    Orphan,
    /// Has our stack's name, but lacks thread, generation or creation time, or has neither the stack's id nor a record:
    /// left for a person.
    Unknown,
    /// Created by another stack of the same name.
    Foreign,
}

/// Its owner by its labels, its generation and its creation time.
#[must_use]
pub fn origin(sandbox: &Sandbox) -> Option<(SandboxKey, u32, Ms)> {
    let (key, generation) = sandbox.owner()?;
    Some((key, generation, sandbox.created_ms?))
}

/// Judges by a record that was read after the listing.
#[must_use]
pub fn judged(
    sandbox: &Sandbox,
    stack_id: &str,
    record: Option<&SandboxRecord>,
    now_ms: Ms,
    graces: Graces,
) -> OrphanVerdict {
    if sandbox.is_foreign(stack_id) {
        return OrphanVerdict::Foreign;
    }
    let Some((_, generation, created_ms)) = origin(sandbox) else {
        return OrphanVerdict::Unknown;
    };
    match fate(record, generation, created_ms, now_ms, graces) {
        RecordVerdict::Spared => OrphanVerdict::Spared,
        RecordVerdict::Kept => OrphanVerdict::Kept,
        RecordVerdict::TakenBack => OrphanVerdict::TakenBack,
        // It may belong to another stack of this name: only a record of its thread says that it is ours.
        RecordVerdict::Orphan
            if record.is_none() && !sandbox.labels.contains_key(LABEL_STACK_ID) =>
        {
            OrphanVerdict::Unknown
        }
        RecordVerdict::Orphan => OrphanVerdict::Orphan,
    }
}

/// The owner whose record decides; `None` if the sandbox is spared, foreign or unreadable whatever the record says.
fn suspected(sandbox: &Sandbox, stack_id: &str, now_ms: Ms, graces: Graces) -> Option<SandboxKey> {
    let (key, generation, created_ms) = origin(sandbox)?;
    let is_old = is_orphan(None, generation, created_ms, now_ms, graces.young_ms);
    (is_old && !sandbox.is_foreign(stack_id)).then_some(key)
}

/// Reads the records and judges each sandbox, in the given order: at most [`RECORDS_MAX`] sandboxes.
///
/// # Errors
/// [`StoreError`] for each sandbox whose record could not be read: it is not judged.
pub async fn judge_all(
    store: &Store,
    stack_id: &str,
    sandboxes: &[Sandbox],
    now_ms: Ms,
    graces: Graces,
) -> Vec<Result<OrphanVerdict, StoreError>> {
    let owner = |sandbox: &Sandbox| suspected(sandbox, stack_id, now_ms, graces);
    // Two generations of a sandbox share one record, and a batch must not ask for it twice.
    let owners: BTreeSet<SandboxKey> = sandboxes.iter().filter_map(owner).collect();
    let read = store.sandboxes(&owners).await;
    let judge = |sandbox: &Sandbox| {
        let Some(key) = owner(sandbox) else {
            return Ok(judged(sandbox, stack_id, None, now_ms, graces));
        };
        match read.as_ref().map(|records| records.get(&key)) {
            Ok(Some(Ok(record))) => Ok(judged(sandbox, stack_id, record.as_ref(), now_ms, graces)),
            Ok(Some(Err(error))) | Err(error) => Err(error.clone()),
            Ok(None) => Err(StoreError::Later("the read did not return this record".to_owned())),
        }
    };
    sandboxes.iter().map(judge).collect()
}

/// Reads the record and judges.
///
/// # Errors
/// [`StoreError`]: without its record no sandbox is judged.
pub async fn judge(
    store: &Store,
    stack_id: &str,
    sandbox: &Sandbox,
    now_ms: Ms,
    graces: Graces,
) -> Result<OrphanVerdict, StoreError> {
    let record = match suspected(sandbox, stack_id, now_ms, graces) {
        Some(key) => {
            let mut read = store.sandboxes(&BTreeSet::from([key.clone()])).await?;
            read.remove(&key).transpose()?.flatten()
        }
        None => None,
    };
    Ok(judged(sandbox, stack_id, record.as_ref(), now_ms, graces))
}
