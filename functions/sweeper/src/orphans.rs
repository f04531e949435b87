//! Sandboxes of our stack that belong to no live generation: list the provider first, then read the records.

use bobbin_adapters::config::Config;
use bobbin_adapters::daytona::{Daytona, DaytonaError};
use bobbin_adapters::metrics::{Metrics, Unit};
use bobbin_adapters::orphans::{Judged, judge_all};
use bobbin_adapters::store::{RECORDS_MAX, Store, StoreError};
use bobbin_adapters::world::now_ms;
use bobbin_core::schema::NEWER;
use bobbin_core::signals::ORPHANS;
use bobbin_core::wire::daytona::Sandbox;
use serde_json::{Value, json};

/// Sandboxes deleted in one tick; the next tick finds the rest.
const REAPED_MAX: usize = 20;

/// Deletes what is orphaned. The numbers are for whoever invokes it by hand.
///
/// # Errors
/// The last thing that went wrong, after everything else was tried.
pub async fn reap(
    config: &Config,
    store: &Store,
    daytona: &Daytona,
    metrics: &Metrics,
    listed: &[Sandbox],
) -> Result<Value, String> {
    let (mut deleted, mut trouble) = (0_usize, None);
    'listed: for some in listed.chunks(RECORDS_MAX) {
        let judged = judge_all(store, some, now_ms(), config.limits.stale_grace_ms).await;
        for (sandbox, judged) in some.iter().zip(judged) {
            match orphaned(sandbox, judged) {
                Ok(false) => {}
                Ok(true) if deleted == REAPED_MAX => break 'listed,
                Ok(true) => match daytona.delete(&sandbox.id).await {
                    Ok(()) | Err(DaytonaError::NotFound) => {
                        tracing::warn!(event = "sandbox.orphan.destroyed", sandbox.name = %sandbox.name, "a sandbox that belonged to nobody was deleted");
                        metrics.put(&[(ORPHANS, Unit::Count, 1)], now_ms());
                        deleted += 1;
                    }
                    Err(error) => {
                        trouble = Some(format!("{} could not be deleted: {error}", sandbox.name));
                    }
                },
                Err(error) => trouble = Some(error),
            }
        }
    }
    match trouble {
        None => Ok(json!({"listed": listed.len(), "deleted": deleted})),
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

/// What carries our stack's label but names no thread or time is left for a person: it is not ours to judge.
fn orphaned(sandbox: &Sandbox, judged: Result<Judged, StoreError>) -> Result<bool, String> {
    match judged {
        Ok(Judged::Orphan) => Ok(true),
        Ok(Judged::Spared) => Ok(false),
        Ok(Judged::Unknown) => {
            tracing::warn!(event = "sandbox.orphan.unnamed", sandbox.name = %sandbox.name, "a sandbox carries our stack's label but not its thread, generation or time of creation");
            Ok(false)
        }
        // Only a newer worker can say whose it is: what it keeps is not ours to delete, and that is no trouble.
        Err(StoreError::Newer(seen)) => {
            tracing::warn!(event = NEWER, sandbox.name = %sandbox.name, "{seen}");
            Ok(false)
        }
        Err(error) => Err(error.to_string()),
    }
}
