//! Capped model keys that belong to no live sandbox: deleted at their vendor, and with the provider that kept them for
//! it. The keys are listed first, then the records are read.

use bobbin_app::capped::{CappedKeys, orphans};
use bobbin_cloud::clock::now_ms;
use bobbin_cloud::config::Config;
use bobbin_cloud::store::Store;
use bobbin_core::protocol::decide::orphan::is_unbelievable;
use bobbin_core::protocol::signals::ORPHANS_HELD;
use serde_json::{Value, json};

use crate::ProviderList;

/// Maximum number of keys deleted in one tick; the next tick finds the rest.
const REAPED_MAX: usize = 20;

/// Deletes orphaned keys, unless they are most of the list.
///
/// # Errors
/// What was seen; or that a person has to look.
pub async fn reap(config: &Config, store: &Store, capped: &CappedKeys) -> Result<Value, String> {
    let listed = capped.all().await.map_err(|e| e.to_string())?;
    let (all, now) = (listed.len(), now_ms());
    let (ended, living): (Vec<_>, Vec<_>) =
        listed.into_iter().partition(|(_, name)| now >= name.until_ms());
    let graces = (&config.limits.sandbox).into();
    let of_living = living.len();
    let mut orphans = orphans(store, living, now, graces).await?;
    let held = if is_unbelievable(orphans.len(), of_living) { orphans.len() } else { 0 };
    if held > 0 {
        tracing::error!(
            event = ORPHANS_HELD,
            listed = of_living,
            orphans = held,
            "most of the capped model keys look like orphans: they are left to end by themselves within a day"
        );
        orphans.clear();
    }
    // One that has ended opens nothing, whatever the records say.
    orphans.extend(ended);
    orphans.truncate(REAPED_MAX);
    capped.delete(&orphans).await.map_err(|e| e.to_string())?;
    if !orphans.is_empty() {
        tracing::warn!(
            event = "model.key.orphan.deleted",
            deleted = orphans.len(),
            "capped model keys of no live sandbox were deleted"
        );
    }
    Ok(json!({"listed": all, "deleted": orphans.len(), "held": held}))
}

/// Has providers delete what they kept for sandboxes that they do not list.
///
/// # Errors
/// The last failure, after all others were tried.
pub async fn forget(config: &Config, lists: &[ProviderList]) -> Result<(), String> {
    let before_ms = now_ms().saturating_sub(config.limits.sandbox.stale_grace_ms);
    let mut trouble = None;
    for ProviderList { provider, listed, is_whole } in lists {
        let living: Vec<&str> = listed.iter().map(|sandbox| sandbox.name.as_str()).collect();
        if let Ok(store) = provider.facts().secrets
            && *is_whole
        {
            let forgotten = store.forget_all_but(&living, before_ms).await;
            trouble = forgotten.err().map(|e| e.to_string()).or(trouble);
        }
    }
    trouble.map_or(Ok(()), Err)
}
