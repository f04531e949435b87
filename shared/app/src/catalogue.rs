//! The catalogue of a tenant: what its sandboxes' agents offer and what turns use, noted for suggestions.
//!
//! Promised: never fails a turn, and delays one by no more than [`NOTE_MS_MAX`]; writes only what is new. Written by the
//! worker alone. Deliberately absent: a condition on the write, since two workers take nothing from each other that the
//! next turn does not mend.

use bobbin_core::ids::Tenant;
use std::time::Duration;

use bobbin_cloud::store::{Store, StoreError};
use bobbin_core::selection::Selection;
use bobbin_core::settings::AgentOptions;

/// Noting takes no longer.
pub const NOTE_MS_MAX: u64 = 2_000;

/// Notes what an agent offers and what a turn uses.
pub async fn note(store: &Store, tenant: &Tenant, offer: &AgentOptions, used: &Selection) {
    let noting = write(store, tenant, offer, used);
    let why = match tokio::time::timeout(Duration::from_millis(NOTE_MS_MAX), noting).await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {NOTE_MS_MAX} ms"),
    };
    tracing::info!(
        event = "catalogue.skipped",
        %tenant,
        "catalogue.skipped: what a turn uses was not noted: {why}"
    );
}

async fn write(
    store: &Store,
    tenant: &Tenant,
    offer: &AgentOptions,
    used: &Selection,
) -> Result<(), StoreError> {
    let mut catalogue = store.catalogue(tenant).await?;
    let learned = catalogue.learn(offer);
    if catalogue.recent.note(used) || learned {
        store.save_catalogue(tenant, &catalogue).await?;
    }
    Ok(())
}
