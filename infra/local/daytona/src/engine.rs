//! The engine that runs sandboxes: its settings, state and tasks.

use std::sync::Arc;

use bobbin_local_sandbox::settings::RunSettings;
use tokio_util::sync::CancellationToken;

use crate::accounts::AcceptedKeys;
use crate::clock::Clock;
use crate::faults::Faults;
use crate::limits::ACTIVITY_THROTTLE_MS;
use crate::machine::LocalMachine;
use crate::store::ProviderStore;

/// Shared state of a running provider.
pub(crate) struct Engine {
    pub(crate) api_key: String,
    /// Accepted keys; the configured one is the first.
    pub(crate) accounts: AcceptedKeys,
    /// Port of the API.
    pub(crate) port: u16,
    /// Settings for this machine.
    pub(crate) run: RunSettings,
    /// Runs the sandboxes.
    pub(crate) machine: LocalMachine,
    /// Reported `toolboxProxyUrl` of sandboxes.
    pub(crate) toolbox_url: String,
    pub(crate) default_snapshot: String,
    /// The key's reported permissions; never enforced.
    pub(crate) key_permissions: Vec<String>,
    pub(crate) clock: Clock,
    pub(crate) store: ProviderStore,
    pub(crate) faults: Faults,
    /// Stops servers, timers and transitions.
    pub(crate) stopping: CancellationToken,
}

/// Shared handle of the engine.
pub(crate) type SharedEngine = Arc<Engine>;

impl Engine {
    /// Records activity of a sandbox for the idle timers; written at most once per [`ACTIVITY_THROTTLE_MS`].
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

    /// Id and name; a fault may use either.
    pub(crate) fn names(&self, id_or_name: &str) -> Vec<String> {
        let found = self.store.id_of(id_or_name).ok().and_then(|id| self.store.record(&id));
        found.map_or_else(|| vec![id_or_name.to_owned()], |record| vec![record.id, record.name])
    }
}
