//! The engine that runs sandboxes: what its settings say, what it knows, and the tasks that work for it.

use std::sync::Arc;

use bobbin_local_sandbox::settings::RunSettings;
use tokio_util::sync::CancellationToken;

use crate::accounts::Accounts;
use crate::clock::Clock;
use crate::faults::Faults;
use crate::limits::ACTIVITY_THROTTLE_MS;
use crate::machine::Machine;
use crate::store::Store;

/// One running provider, as its parts see it.
pub(crate) struct Engine {
    pub(crate) api_key: String,
    /// The keys that are accepted; that one is the first.
    pub(crate) accounts: Accounts,
    /// The port on which the API listens.
    pub(crate) port: u16,
    /// How it runs on this machine.
    pub(crate) run: RunSettings,
    /// What runs its sandboxes.
    pub(crate) machine: Machine,
    /// What sandboxes are announced to have as `toolboxProxyUrl`.
    pub(crate) toolbox_url: String,
    pub(crate) default_snapshot: String,
    /// What the key may do, as it is told; nothing is refused for it.
    pub(crate) key_permissions: Vec<String>,
    pub(crate) clock: Clock,
    pub(crate) store: Store,
    pub(crate) faults: Faults,
    /// Ends servers, timers and transitions.
    pub(crate) stopping: CancellationToken,
}

/// The engine, as tasks and handlers hold it.
pub(crate) type SharedEngine = Arc<Engine>;

impl Engine {
    /// Notes a sign of life of a sandbox, for the idle timers; at most one in [`ACTIVITY_THROTTLE_MS`] is written.
    pub(crate) fn touch(&self, id: &str) {
        let now = self.clock.now_ms();
        let recent = {
            let inner = self.store.lock();
            let entry = inner.sandboxes.get(id);
            entry.is_some_and(|entry| now - entry.record.last_activity < ACTIVITY_THROTTLE_MS)
        };
        if !recent {
            self.store.change(id, |entry| entry.record.last_activity = now);
        }
    }

    /// Id and name, by either of which a fault may reach a sandbox.
    pub(crate) fn names(&self, id_or_name: &str) -> Vec<String> {
        let found = self.store.id_of(id_or_name).ok().and_then(|id| self.store.record(&id));
        found.map_or_else(|| vec![id_or_name.to_owned()], |record| vec![record.id, record.name])
    }
}
