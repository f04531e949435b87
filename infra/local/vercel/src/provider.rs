//! A provider from its start to its stop, as the program that owns it sees it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bobbin_local_breakpoint::own_only;
use bobbin_local_sandbox::confine::Confinement;
use bobbin_local_sandbox::limits::{DRAIN_MS_MAX, KILL_WAIT_MS_MAX};
use bobbin_local_sandbox::machine::{Machine, MachineSettings};
use bobbin_local_sandbox::processes::ProcessSet;
use bobbin_local_sandbox::serve;
use tokio::net::TcpListener;

use crate::record::Status;
use crate::settings::{Error, Settings};
use crate::state::Engine;
use crate::{api, timers};

/// A sandbox, for people to look at.
#[derive(Clone, Debug, serde::Serialize)]
pub struct SandboxView {
    /// Its name.
    pub name: String,
    /// The state of its present session.
    pub state: Status,
    /// Its tags, as the API tells them.
    pub labels: BTreeMap<String, String>,
    /// The directory of its commands.
    pub dir: PathBuf,
    /// Its processes, as this machine counts them.
    pub pids: Vec<u32>,
}

/// A running provider. Dropping it without [`Provider::stop`] leaves its tasks to the runtime's end.
pub struct Provider {
    engine: Arc<Engine>,
    port: u16,
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
        let refused = |source| Error::Listen {
            port: settings.port,
            source,
        };
        let listener = TcpListener::bind(("127.0.0.1", settings.port)).await;
        let listener = listener.map_err(refused)?;
        let port = listener.local_addr().map_err(refused)?.port();
        let also = serve::also_on(settings.also_on, port).await;
        let also = also.map_err(refused)?;
        let engine = Arc::new(Engine::open(settings, machine).map_err(Error::State)?);
        let named = engine.settings.also_named.clone();
        let router = own_only(api::router(&engine), named);
        let router = engine.breakpoints.before("provider", serve::peer, router);
        for listener in [Some(listener), also].into_iter().flatten() {
            let served = serve::run(listener, router.clone(), engine.stopping.clone());
            engine.machine.tasks.spawn(served);
        }
        engine.machine.tasks.spawn(timers::run(engine.clone()));
        Ok(Provider { engine, port })
    }

    /// Base of the API: `http://127.0.0.1:PORT/api`.
    #[must_use]
    pub fn api_url(&self) -> String {
        format!("http://127.0.0.1:{}/api", self.port)
    }

    /// How sandboxes are confined; without bubblewrap the caller shows a plain warning.
    #[must_use]
    pub fn confinement(&self) -> &Confinement {
        &self.engine.machine.confinement
    }

    /// Every sandbox, oldest first. Reads `/proc`: for people, not for hot loops.
    #[must_use]
    pub fn sandboxes(&self) -> Vec<SandboxView> {
        let mut records: Vec<_> = {
            let inner = self.engine.lock();
            let records = inner.sandboxes.values().map(|entry| entry.record.clone());
            records.collect()
        };
        records.sort_by_key(|record| record.created_at);
        let view = |record: crate::record::Record| SandboxView {
            pids: self.engine.machine.processes(&record.folder).pids(),
            dir: self.engine.home(&record),
            state: record.status(),
            labels: record.tags,
            name: record.name,
        };
        records.into_iter().map(view).collect()
    }

    /// Ends every process of every sandbox, then the servers. Sandboxes are found stopped by the next start.
    pub async fn stop(self) {
        self.engine.stopping.cancel();
        let processes: Vec<_> = {
            let mut inner = self.engine.lock();
            let entries = inner.sandboxes.values_mut();
            entries.filter_map(|entry| entry.process.take()).collect()
        };
        let grace_ms = self.engine.settings.stop_grace_ms;
        futures::future::join_all(processes.iter().map(|process| process.end(grace_ms))).await;
        let machine = &self.engine.machine;
        machine.tasks.close();
        let bound = Duration::from_millis(DRAIN_MS_MAX + KILL_WAIT_MS_MAX);
        // Whatever still runs then ends with the program.
        let _ = tokio::time::timeout(bound, machine.tasks.wait()).await;
        ProcessSet::of_state_dir(&machine.state_dir).end(0).await;
    }
}
