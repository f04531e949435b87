//! A provider from start to stop, as its owner sees it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bobbin_local_sandbox::program::RunningProvider;
use bobbin_local_sandbox::serve::Listeners;
use bobbin_local_sandbox::settings::StartError;
use tokio_util::sync::CancellationToken;

use crate::accounts::AcceptedKeys;
use crate::clock::{Clock, system_ms};
use crate::confine::Confinement;
use crate::engine::Engine;
use crate::faults::Faults;
use crate::machine::{LocalMachine, MachineError};
use crate::record::Record;
use crate::settings::LocalDaytonaSettings;
use crate::state::DaytonaState;
use crate::store::ProviderStore;
use crate::{api, snapshot, timers};

/// A sandbox, for display.
#[derive(Clone, Debug, serde::Serialize)]
pub struct SandboxView {
    /// Its id, as the API tells it.
    pub id: String,
    /// Name; the API accepts it too.
    pub name: String,
    /// State in the API.
    pub state: DaytonaState,
    /// Reason for the state, if this machine caused it.
    pub why: Option<&'static str>,
    /// Its labels, as the API tells them.
    pub labels: BTreeMap<String, String>,
    /// Home folder: the work directory of its commands.
    pub dir: PathBuf,
    /// This machine's port for its port 4096.
    pub port: u16,
    /// Its processes, by this machine's ids.
    pub pids: Vec<u32>,
}

/// Reason for a stop that nobody requested and no timer caused.
const RELIEVED: &str = "memory was short";

/// A running provider. Dropping it without [`LocalDaytona::stop`] leaves its tasks to the end of the runtime.
pub struct LocalDaytona {
    engine: Arc<Engine>,
}

impl LocalDaytona {
    /// Starts a provider, after ending leftovers of an earlier one.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn start(settings: LocalDaytonaSettings) -> Result<LocalDaytona, StartError> {
        let machine = LocalMachine::prepare(settings.run.machine()).await?;
        let store = open_store(Path::new(&machine.state_dir), &settings)?;
        let listeners = Listeners::open(&settings.run).await?;
        let engine = Arc::new(engine(settings, machine, store, listeners.port));
        let router = api::router(&engine);
        listeners.serve(&engine.run, router, &engine.machine, &engine.stopping);
        engine.machine.tasks.spawn(timers::run(engine.clone()));
        Ok(LocalDaytona { engine })
    }

    /// Base of the control API: `http://127.0.0.1:PORT/api`.
    #[must_use]
    pub fn api_url(&self) -> String {
        format!("http://127.0.0.1:{}/api", self.engine.port)
    }

    /// The key required of clients.
    #[must_use]
    pub fn api_key(&self) -> &str {
        &self.engine.api_key
    }

    /// The confinement of sandboxes; without bubblewrap the caller shows a plain warning.
    #[must_use]
    pub fn confinement(&self) -> &Confinement {
        &self.engine.machine.confinement
    }

    /// Every sandbox, oldest first. Reads `/proc`: for people, not for hot loops.
    #[must_use]
    pub fn sandboxes(&self) -> Vec<SandboxView> {
        let mut records: Vec<(Record, bool)> = self
            .engine
            .store
            .lock()
            .sandboxes
            .values()
            .map(|entry| (entry.record.clone(), entry.relieved))
            .collect();
        records.sort_by(|(one, _), (other, _)| {
            (one.created_at, &one.id).cmp(&(other.created_at, &other.id))
        });
        let view = |(record, relieved): (Record, bool)| SandboxView {
            why: relieved.then_some(RELIEVED),
            pids: self.engine.machine.processes(&record.id).pids(),
            dir: self.engine.store.sandbox_dir(&record.folder).join("home"),
            id: record.id,
            name: record.name,
            state: record.state,
            labels: record.labels,
            port: record.port,
        };
        records.into_iter().map(view).collect()
    }

    /// Advances the clock of the idle timers and begins what is due then.
    pub fn advance_clock(&self, ms: u64) {
        self.engine.clock.advance(ms);
        timers::sweep(&self.engine);
    }

    /// Ends every process of every sandbox, then the servers. The next start finds the sandboxes stopped.
    pub async fn stop(self) {
        self.engine.stopping.cancel();
        let processes: Vec<_> = {
            let mut inner = self.engine.store.lock();
            inner.sandboxes.values_mut().filter_map(|entry| entry.process.take()).collect()
        };
        let machine = &self.engine.machine;
        machine.end(&processes, self.engine.run.stop_grace_ms).await;
    }
}

impl RunningProvider for LocalDaytona {
    fn confinement(&self) -> &Confinement {
        self.confinement()
    }

    async fn end(self) {
        self.stop().await;
    }
}

fn open_store(folder: &Path, settings: &LocalDaytonaSettings) -> Result<ProviderStore, StartError> {
    let unusable = |source| MachineError::StateDir { path: settings.run.state_dir.clone(), source };
    let store = ProviderStore::open(folder).map_err(unusable)?;
    {
        let snapshots = &mut store.lock().snapshots;
        snapshot::prepare(snapshots, &settings.default_snapshot, system_ms());
        store
            .save_snapshots(snapshots)
            .map_err(|error| unusable(std::io::Error::other(error.message)))?;
    }
    Ok(store)
}

/// The engine for these settings.
fn engine(
    settings: LocalDaytonaSettings,
    machine: LocalMachine,
    store: ProviderStore,
    port: u16,
) -> Engine {
    Engine {
        accounts: AcceptedKeys::new(&settings.api_key),
        api_key: settings.api_key,
        port,
        machine,
        toolbox_url: settings
            .toolbox_url
            .unwrap_or_else(|| format!("http://127.0.0.1:{port}/toolbox")),
        default_snapshot: settings.default_snapshot,
        key_permissions: settings.key_permissions,
        run: settings.run,
        clock: Clock::default(),
        store,
        faults: Faults::default(),
        stopping: CancellationToken::new(),
    }
}
