//! Sandboxes that the provider lists, judged by the records: whose they are, and whether they belong to nobody.
//!
//! The sweeper and the operator's command line judge by this one rule (`bobbin_core::decide::orphan`). The caller lists
//! first; the records are read here, after it.

use bobbin_core::decide::orphan::is_orphan;
use bobbin_core::ids::{Ms, ThreadKey};
use bobbin_core::session::Session;
use bobbin_core::wire::daytona::Sandbox;

use crate::calendar::milliseconds;
use crate::store::{Store, StoreError};

/// What a listed sandbox is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judged {
    /// It is the present generation of its thread, or too young to be judged.
    Spared,
    /// It belongs to no live generation.
    Orphan,
    /// It carries our stack's label, but not its thread, generation or time of creation: left for a person.
    Unknown,
}

/// Whose it is by its labels, and when it was made.
#[must_use]
pub fn origin(sandbox: &Sandbox) -> Option<(ThreadKey, u32, Ms)> {
    let (thread, generation) = sandbox.owner()?;
    let created_ms = sandbox.created_at.as_deref().and_then(milliseconds)?;
    Some((thread, generation, created_ms))
}

/// Judges by a record that was read after the listing.
#[must_use]
pub fn judged(sandbox: &Sandbox, record: Option<&Session>, now_ms: Ms, grace_ms: u64) -> Judged {
    match origin(sandbox) {
        None => Judged::Unknown,
        Some((_, generation, created_ms)) => {
            match is_orphan(record, generation, created_ms, now_ms, grace_ms) {
                true => Judged::Orphan,
                false => Judged::Spared,
            }
        }
    }
}

/// Reads the record and judges.
///
/// # Errors
/// [`StoreError`]: without its record no sandbox is judged.
pub async fn judge(
    store: &Store,
    sandbox: &Sandbox,
    now_ms: Ms,
    grace_ms: u64,
) -> Result<Judged, StoreError> {
    // A young one is no orphan whatever its record says, so that record need not be read.
    match (judged(sandbox, None, now_ms, grace_ms), origin(sandbox)) {
        (Judged::Orphan, Some((thread, ..))) => {
            let (record, _) = store.record(&thread).await?;
            Ok(judged(sandbox, record.as_ref(), now_ms, grace_ms))
        }
        (judged, _) => Ok(judged),
    }
}
