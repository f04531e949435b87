//! Sandboxes of our stack that belong to no live generation: list the provider first, then read the records.

use bobbin_adapters::config::Config;
use bobbin_adapters::daytona::{Daytona, DaytonaError};
use bobbin_adapters::metrics::{Metrics, Unit};
use bobbin_adapters::store::{Store, StoreError};
use bobbin_adapters::world::{milliseconds, now_ms};
use bobbin_core::decide::orphan::is_orphan;
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
    for sandbox in listed {
        if deleted == REAPED_MAX {
            break;
        }
        match orphaned(config, store, sandbox).await {
            Ok(false) => {}
            Ok(true) => match daytona.delete(&sandbox.id).await {
                Ok(()) | Err(DaytonaError::NotFound) => {
                    tracing::warn!(sandbox.name = %sandbox.name, "a sandbox that belonged to nobody was deleted");
                    metrics.put(&[(ORPHANS, Unit::Count, 1)], now_ms());
                    deleted += 1;
                }
                Err(error) => {
                    trouble = Some(format!("{} could not be deleted: {error}", sandbox.name))
                }
            },
            Err(error) => trouble = Some(error),
        }
    }
    match trouble {
        None => Ok(json!({"listed": listed.len(), "deleted": deleted})),
        Some(trouble) => {
            tracing::error!(listed = listed.len(), deleted, "{trouble}");
            Err(trouble)
        }
    }
}

/// What carries our stack's label but names no thread or time is left for a person: it is not ours to judge.
async fn orphaned(config: &Config, store: &Store, sandbox: &Sandbox) -> Result<bool, String> {
    let (Some((thread, generation)), Some(created_ms)) = (
        sandbox.owner(),
        sandbox.created_at.as_deref().and_then(milliseconds),
    ) else {
        tracing::warn!(sandbox.name = %sandbox.name, "a sandbox carries our stack's label but not its thread, generation or time of creation");
        return Ok(false);
    };
    let grace_ms = config.limits.stale_grace_ms;
    // A young one is no orphan whatever its record says, so that record need not be read.
    if !is_orphan(None, generation, created_ms, now_ms(), grace_ms) {
        return Ok(false);
    }
    let found = match store.record(&thread).await {
        Ok((found, _)) => found,
        // Only a newer worker can say whose it is: what it keeps is not ours to delete, and that is no trouble.
        Err(StoreError::Newer(seen)) => {
            tracing::warn!(%thread, sandbox.name = %sandbox.name, "{NEWER}: {seen}");
            return Ok(false);
        }
        Err(error) => return Err(error.to_string()),
    };
    Ok(is_orphan(
        found.as_ref(),
        generation,
        created_ms,
        now_ms(),
        grace_ms,
    ))
}
