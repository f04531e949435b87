//! A provider from its start to its stop, as the program that owns it sees it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bobbin_local_breakpoint::own_only;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::accounts::Accounts;
use crate::clock::{Clock, system_ms};
use crate::confine::Confinement;
use crate::engine::Engine;
use crate::faults::Faults;
use crate::limits::{DRAIN_MS_MAX, KILL_WAIT_MS_MAX};
use crate::machine::{Machine, MachineError, MachineSettings};
use crate::processes::ProcessSet;
use crate::record::Record;
use crate::settings::{Error, Settings};
use crate::state::SandboxState;
use crate::store::Store;
use crate::{api, serve, snapshot, timers};

/// A sandbox, for people to look at.
#[derive(Clone, Debug, serde::Serialize)]
pub struct SandboxView {
    /// Its id, as the API tells it.
    pub id: String,
    /// Its name, by which the API finds it too.
    pub name: String,
    /// The state that the API tells.
    pub state: SandboxState,
    /// Its labels, as the API tells them.
    pub labels: BTreeMap<String, String>,
    /// Its home: the work directory of its commands.
    pub dir: PathBuf,
    /// The port of this machine that stands for its 4096.
    pub port: u16,
    /// Its processes, as this machine counts them.
    pub pids: Vec<u32>,
}

/// A running provider. Dropping it without [`Provider::stop`] leaves its tasks to the runtime's end.
pub struct Provider {
    engine: Arc<Engine>,
}

impl Provider {
    /// Starts a provider, after ending what an earlier one may have left behind.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn start(settings: Settings) -> Result<Provider, Error> {
        let machine = Machine::prepare(MachineSettings {
            state_dir: settings.state_dir.clone(),
            tools: settings.tools.clone(),
            git_mirror: settings.git_mirror.clone(),
            init: settings.init.clone(),
            confine: settings.confine,
            reachable: settings.reachable.clone(),
            own_address: settings.also_on,
            stand_ins: settings.stand_ins.clone(),
        })
        .await?;
        let store = open_store(Path::new(&machine.state_dir), &settings)?;
        let listeners = listen(&settings).await?;
        let engine = Arc::new(engine(settings, machine, store, listeners.port));

        let router = own_only(api::router(&engine), engine.also_named.clone());
        let router = engine.breakpoints.before("provider", serve::peer, router);
        for listener in [Some(listeners.loopback), listeners.also]
            .into_iter()
            .flatten()
        {
            let served = serve::run(listener, router.clone(), engine.stopping.clone());
            engine.machine.tasks.spawn(served);
        }
        engine.machine.tasks.spawn(timers::run(engine.clone()));
        Ok(Provider { engine })
    }

    /// Base of the control API: `http://127.0.0.1:PORT/api`.
    #[must_use]
    pub fn api_url(&self) -> String {
        format!("http://127.0.0.1:{}/api", self.engine.port)
    }

    /// The key that clients must send.
    #[must_use]
    pub fn api_key(&self) -> &str {
        &self.engine.api_key
    }

    /// How sandboxes are confined; without bubblewrap the caller shows a plain warning.
    #[must_use]
    pub fn confinement(&self) -> &Confinement {
        &self.engine.machine.confinement
    }

    /// Every sandbox, oldest first. Reads `/proc`: for people, not for hot loops.
    #[must_use]
    pub fn sandboxes(&self) -> Vec<SandboxView> {
        let mut records: Vec<Record> = self
            .engine
            .store
            .lock()
            .sandboxes
            .values()
            .map(|entry| entry.record.clone())
            .collect();
        records.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        let view = |record: Record| SandboxView {
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

    /// Moves the clock of the idle timers forward and begins what is due then.
    pub fn advance_clock(&self, ms: u64) {
        self.engine.clock.advance(ms);
        timers::sweep(&self.engine);
    }

    /// Ends every process of every sandbox, then the servers. Sandboxes are found stopped by the next start.
    pub async fn stop(self) {
        self.engine.stopping.cancel();
        let processes: Vec<_> = {
            let mut inner = self.engine.store.lock();
            inner
                .sandboxes
                .values_mut()
                .filter_map(|entry| entry.process.take())
                .collect()
        };
        let grace_ms = self.engine.stop_grace_ms;
        futures::future::join_all(processes.iter().map(|process| process.end(grace_ms))).await;
        self.engine.machine.tasks.close();
        let bound = Duration::from_millis(DRAIN_MS_MAX + KILL_WAIT_MS_MAX);
        // Whatever still runs then ends with the program.
        let _ = tokio::time::timeout(bound, self.engine.machine.tasks.wait()).await;
        ProcessSet::of_state_dir(&self.engine.machine.state_dir)
            .end(0)
            .await;
    }
}

fn open_store(folder: &Path, settings: &Settings) -> Result<Store, Error> {
    let unusable = |source| MachineError::StateDir {
        path: settings.state_dir.clone(),
        source,
    };
    let store = Store::open(folder).map_err(unusable)?;
    {
        let snapshots = &mut store.lock().snapshots;
        snapshot::prepare(snapshots, &settings.default_snapshot, system_ms());
        store
            .save_snapshots(snapshots)
            .map_err(|error| unusable(std::io::Error::other(error.message)))?;
    }
    Ok(store)
}

/// Where the API listens: on loopback, and on the same port of a second address if one is named.
struct Listeners {
    loopback: TcpListener,
    port: u16,
    also: Option<TcpListener>,
}

async fn listen(settings: &Settings) -> Result<Listeners, Error> {
    let refused = |source| Error::Listen {
        port: settings.port,
        source,
    };
    let loopback = TcpListener::bind(("127.0.0.1", settings.port))
        .await
        .map_err(refused)?;
    let port = loopback.local_addr().map_err(refused)?.port();
    let also = serve::also_on(settings.also_on, port)
        .await
        .map_err(|source| Error::ListenAlso { port, source })?;
    Ok(Listeners {
        loopback,
        port,
        also,
    })
}

/// The engine of these settings.
fn engine(settings: Settings, machine: Machine, store: Store, port: u16) -> Engine {
    Engine {
        accounts: Accounts::new(&settings.api_key),
        api_key: settings.api_key,
        port,
        also_on: settings.also_on,
        also_named: settings.also_named,
        machine,
        toolbox_url: settings
            .toolbox_url
            .unwrap_or_else(|| format!("http://127.0.0.1:{port}/toolbox")),
        default_snapshot: settings.default_snapshot,
        key_permissions: settings.key_permissions,
        breakpoints: settings.breakpoints,
        transition_ms: settings.transition_ms,
        stop_grace_ms: settings.stop_grace_ms,
        clock: Clock::default(),
        store,
        faults: Faults::default(),
        stopping: CancellationToken::new(),
    }
}
