//! Prunes expired data, so that the file stays small however long the stack runs.

use crate::discord::channel;
use crate::hub::Hub;
use crate::limits::{LONG_LIVED_MS, PRUNE_MS, SHORT_LIVED_MS, THREADS_MAX};
use crate::store::{ChatStore, ChatStoreError};
use std::sync::Arc;
use std::time::Duration;

const SHORT_LIVED: [&str; 4] = ["d.interaction", "d.modal", "d.nonce", "d.upload"];
const LONG_LIVED: [&str; 2] = ["s.file", "s.session"];

/// Prunes at the start and then every hour, until the chat stops.
pub async fn every_hour(hub: Arc<Hub>) {
    loop {
        let pruned = hub.store().atomically(|store| prune(&hub, store));
        if let Err(error) = pruned {
            tracing::warn!(%error, "old chat records could not be deleted");
        }
        tokio::select! {
            () = hub.stop.cancelled() => return,
            () = tokio::time::sleep(Duration::from_millis(PRUNE_MS)) => {}
        }
    }
}

fn prune(hub: &Hub, store: &ChatStore) -> Result<(), ChatStoreError> {
    for kind in SHORT_LIVED {
        store.forget_older(kind, SHORT_LIVED_MS)?;
    }
    for kind in LONG_LIVED {
        store.forget_older(kind, LONG_LIVED_MS)?;
    }
    let mut threads = store.all("d.channel", &hub.seeds.guild_id)?;
    threads.retain(channel::is_thread);
    let surplus = threads.len().saturating_sub(THREADS_MAX);
    for thread in &threads[..surplus] {
        channel::remove(hub, store, thread)?;
    }
    Ok(())
}
