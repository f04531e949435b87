//! A provider from start to stop, as its owner sees it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bobbin_local_sandbox::confine::Confinement;
use bobbin_local_sandbox::machine::LocalMachine;
use bobbin_local_sandbox::program::RunningProvider;
use bobbin_local_sandbox::serve::Listeners;
use bobbin_local_sandbox::settings::StartError;

use crate::record::SessionStatus;
use crate::settings::LocalVercelSettings;
use crate::state::Engine;
use crate::{api, timers};

/// A sandbox, for display.
#[derive(Clone, Debug, serde::Serialize)]
pub struct SandboxView {
    /// Its name.
    pub name: String,
    /// State of its current session.
    pub state: SessionStatus,
    /// Its tags, as the API tells them.
    pub labels: BTreeMap<String, String>,
    /// Directory of its commands.
    pub dir: PathBuf,
    /// Its processes, by this machine's ids.
    pub pids: Vec<u32>,
}

/// A running provider. Dropping it without [`LocalVercel::stop`] leaves its tasks to the end of the runtime.
pub struct LocalVercel {
    engine: Arc<Engine>,
    port: u16,
}

impl LocalVercel {
    /// Starts a provider, after ending leftovers of an earlier one.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn start(settings: LocalVercelSettings) -> Result<LocalVercel, StartError> {
        let machine = LocalMachine::prepare(settings.run.machine()).await?;
        let listeners = Listeners::open(&settings.run).await?;
        let port = listeners.port;
        let engine = Engine::open(settings, machine).map_err(StartError::State)?;
        let engine = Arc::new(engine);
        let router = api::router(&engine);
        listeners.serve(&engine.settings.run, router, &engine.machine, &engine.stopping);
        engine.machine.tasks.spawn(timers::run(engine.clone()));
        Ok(LocalVercel { engine, port })
    }

    /// Base of the API: `http://127.0.0.1:PORT/api`.
    #[must_use]
    pub fn api_url(&self) -> String {
        format!("http://127.0.0.1:{}/api", self.port)
    }

    /// The confinement of sandboxes; without bubblewrap the caller shows a plain warning.
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

    /// Ends every process of every sandbox, then the servers. The next start finds the sandboxes stopped.
    pub async fn stop(self) {
        self.engine.stopping.cancel();
        let processes: Vec<_> = {
            let mut inner = self.engine.lock();
            let entries = inner.sandboxes.values_mut();
            entries.filter_map(|entry| entry.process.take()).collect()
        };
        let machine = &self.engine.machine;
        let grace_ms = self.engine.settings.run.stop_grace_ms;
        machine.end(&processes, grace_ms).await;
    }
}

impl RunningProvider for LocalVercel {
    fn confinement(&self) -> &Confinement {
        self.confinement()
    }

    async fn end(self) {
        self.stop().await;
    }
}
