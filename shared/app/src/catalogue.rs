//! A tenant's catalogue, kept for suggestions: what the agents of its sandboxes offer, what turns use, and the status
//! of named sandboxes.
//!
//! Promised: never fails a turn, and delays one by at most [`NOTE_MS_MAX`]; writes only what is new. Only the worker
//! writes it. Deliberately absent: a condition on the write, since the next turn repairs whatever two workers
//! overwrite.

use bobbin_core::base::ids::{SandboxName, Tenant};
use bobbin_core::tenant::sandbox_hint::SandboxHint;
use std::time::Duration;

use bobbin_cloud::store::{Store, StoreError};
use bobbin_core::tenant::catalogue::{AgentOptions, Catalogue};
use bobbin_core::tenant::selection::Selection;

/// Longest time for a write to the catalogue.
pub const NOTE_MS_MAX: u64 = 2_000;

/// Records what an agent offers, what a turn uses, and the configured providers.
pub async fn note(
    store: &Store,
    tenant: &Tenant,
    offer: &AgentOptions,
    used: &Selection,
    providers: Vec<String>,
) {
    let noting = write(store, tenant, |catalogue| {
        let learned = catalogue.learn(offer);
        let others = catalogue.providers != providers;
        catalogue.providers = providers;
        catalogue.recent.note(used) || learned || others
    });
    skipped(tenant, noting).await;
}

/// Records the status of a named sandbox.
pub async fn note_sandbox(store: &Store, tenant: &Tenant, name: &SandboxName, glance: SandboxHint) {
    let noting = write(store, tenant, |catalogue| catalogue.note_sandbox(name, glance));
    skipped(tenant, noting).await;
}

/// Logs that the write failed; the next one makes up for it.
async fn skipped(tenant: &Tenant, noting: impl Future<Output = Result<(), StoreError>>) {
    let why = match tokio::time::timeout(Duration::from_millis(NOTE_MS_MAX), noting).await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {NOTE_MS_MAX} ms"),
    };
    tracing::info!(
        event = "catalogue.skipped",
        %tenant,
        "catalogue.skipped: what is suggested was not brought up to date: {why}"
    );
}

async fn write(
    store: &Store,
    tenant: &Tenant,
    change: impl FnOnce(&mut Catalogue) -> bool,
) -> Result<(), StoreError> {
    let mut catalogue = store.catalogue(tenant).await?;
    if change(&mut catalogue) {
        store.save_catalogue(tenant, &catalogue).await?;
    }
    Ok(())
}
