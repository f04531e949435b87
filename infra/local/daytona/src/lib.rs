//! A Daytona-compatible provider whose sandboxes are directories.
//!
//! Promised: Daytona's v0 API (control calls, toolbox, previews) as its official SDKs and Bobbin's own client use it,
//! with its errors, states, timers and token rotation; real processes, each sandbox's own home and port; state that
//! survives a restart; no process that survives the provider, or at the latest its next start; faults that a test
//! arms.
//!
//! Deliberately absent: images (a Dockerfile's text is kept and never run: what it would install must be on `PATH`),
//! virtual machines with their pauses, forks and sizes, volumes, rules for the network, SSH and quotas. Where sandboxes have no network of their own, no secret can be put
//! into their requests, and `/secret` answers 501. The API listens on loopback only.
//!
//! Where bubblewrap works, commands are confined ([`Confinement`]); where it does not, a sandbox is no isolation at
//! all, and the caller should say so.
//!
//! Beside the API prefix, with the same key: `POST /_control/clock {"advance_ms":N}`, `POST /_control/faults
//! {"faults":[…]}` (`GET` lists, `DELETE` clears), `POST /_control/lose {"sandbox":…}`.

mod api;
mod clock;
mod confine;
mod fail;
mod faults;
mod gateway;
mod guest;
mod init;
mod launch;
mod lifecycle;
mod limits;
mod network;
pub mod opencode;
mod preview;
mod processes;
mod record;
mod serve;
mod shared;
mod state;
mod store;
mod timers;
mod toolbox;

use std::collections::BTreeMap;
use std::fs::File;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bobbin_local_gate::{Gates, own_only};
use rustix::fs::{FlockOperation, flock};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use confine::Confinement;
pub use gateway::StandIn;
pub use init::sandbox_init_main;
pub use state::State;

/// How to run a provider.
#[derive(Clone)]
pub struct Settings {
    /// Where sandboxes and their records are kept. One provider at a time.
    pub state_dir: PathBuf,
    /// The key that clients send as Bearer.
    pub api_key: String,
    /// Port on 127.0.0.1; 0 takes a free one.
    pub port: u16,
    /// An address of this machine at which the API and the previews listen too, on the same ports, for callers that do
    /// not share its loopback.
    pub also_on: Option<IpAddr>,
    /// A name or address of this machine by which such callers reach it.
    pub also_named: Option<String>,
    /// Ports of this machine's loopback that sandboxes with a network of their own reach too, such as a model's.
    pub reachable: Vec<u16>,
    /// Hosts of the world that something on this machine stands in for, as sandboxes with a network of their own see it.
    pub stand_ins: Vec<StandIn>,
    /// Folders put first on PATH inside sandboxes, read-only: OpenCode, ripgrep.
    pub tools: Vec<PathBuf>,
    /// Repositories that stand in for those of GitHub, as `<owner>/<name>` or `<owner>/<name>.git` below this folder: git
    /// in the sandboxes reads `https://github.com/` from there, so that cloning needs no network.
    pub git_mirror: Option<PathBuf>,
    /// How long a sandbox stays in each state of transition, at least.
    pub transition_ms: u64,
    /// Time between SIGTERM and SIGKILL at a stop.
    pub stop_grace_ms: u64,
    /// Use bubblewrap if it works.
    pub confine: bool,
    /// The program that calls [`sandbox_init_main`] first; the running one by default.
    pub init: Option<PathBuf>,
    /// Announced as `toolboxProxyUrl` instead of our own, for a proxy in front.
    pub toolbox_url: Option<String>,
    /// The snapshot of a create that names neither one nor a build; it is always there and active.
    pub default_snapshot: String,
    /// What the key may do, as `GET /api-keys/current` tells it; nothing is refused for it.
    pub key_permissions: Vec<String>,
    /// Test control: holds calls of functions.
    pub gates: Gates,
}

impl Settings {
    /// The defaults: a free port, no tools, 150 ms transitions, 3 s of grace, confined if possible.
    #[must_use]
    pub fn new(state_dir: PathBuf, api_key: String) -> Self {
        Settings {
            state_dir,
            api_key,
            port: 0,
            also_on: None,
            also_named: None,
            reachable: Vec::new(),
            stand_ins: Vec::new(),
            tools: Vec::new(),
            git_mirror: None,
            transition_ms: 150,
            stop_grace_ms: 3_000,
            confine: true,
            init: None,
            toolbox_url: None,
            default_snapshot: "bobbin-opencode".to_owned(),
            key_permissions: [
                "write:sandboxes",
                "delete:sandboxes",
                "write:snapshots",
                "delete:snapshots",
                "manage:secrets",
                "read:limits",
            ]
            .map(str::to_owned)
            .to_vec(),
            gates: Gates::default(),
        }
    }
}

/// Why a provider did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another provider holds the state folder.
    #[error("another provider is using {0}; stop it or choose another state folder")]
    InUse(PathBuf),
    /// The state folder cannot be used.
    #[error("the sandbox provider cannot use {path}: {source}")]
    StateDir {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The second address cannot be listened on.
    #[error(
        "the sandbox provider cannot listen on port {port} of the second address too: {source}; start again for another port"
    )]
    ListenAlso {
        /// The port, which is that of loopback.
        port: u16,
        /// What the system says.
        source: std::io::Error,
    },
    /// A folder of tools, or of repositories, is not there.
    #[error("the folder {path} cannot be used: {source}")]
    Tools {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The port cannot be had.
    #[error(
        "the sandbox provider cannot listen on 127.0.0.1:{port}: {source}; choose another port, or 0 for a free one"
    )]
    Listen {
        /// The port asked for.
        port: u16,
        /// What the system says.
        source: std::io::Error,
    },
    /// There can be no certificates for what goes through it.
    #[error("the sandbox provider cannot make certificates: {0}")]
    Certificates(String),
    /// The running program cannot be found, or a thread not be started.
    #[error("the sandbox provider cannot start processes: {0}")]
    Start(std::io::Error),
}

/// A sandbox, for people to look at.
#[derive(Clone, Debug, serde::Serialize)]
pub struct SandboxView {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: State,
    /// Its labels.
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
    shared: Arc<shared::Shared>,
    /// Held for as long as the state folder is ours; the system lets go of it when the process ends.
    _lock: File,
}

impl Provider {
    /// Starts a provider, after ending what an earlier one may have left behind.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn start(settings: Settings) -> Result<Provider, Error> {
        let at = |source| Error::StateDir {
            path: settings.state_dir.clone(),
            source,
        };
        std::fs::create_dir_all(&settings.state_dir).map_err(at)?;
        let folder = settings.state_dir.canonicalize().map_err(at)?;
        let lock = File::create(folder.join("lock")).map_err(at)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| Error::InUse(folder.clone()))?;

        let state_dir = folder.to_string_lossy().into_owned();
        let left = processes::Mark::all(&state_dir).end(0).await;
        if left > 0 {
            tracing::warn!(
                processes = left,
                "processes of an earlier run could not be ended"
            );
        }
        let store = store::Store::open(&folder).map_err(at)?;
        {
            let shelf = &mut store.lock().shelf;
            api::stock(shelf, &settings.default_snapshot, clock::system_ms());
            store
                .save_shelf(shelf)
                .map_err(|fail| at(std::io::Error::other(fail.message)))?;
        }
        let init = match settings.init {
            Some(init) => init,
            None => std::env::current_exe().map_err(Error::Start)?,
        };
        let there = |path: PathBuf| match path.canonicalize() {
            Ok(found) => Ok(found),
            Err(source) => Err(Error::Tools { path, source }),
        };
        let tools = settings
            .tools
            .into_iter()
            .map(there)
            .collect::<Result<Vec<_>, _>>()?;
        let git_mirror = settings.git_mirror.map(there).transpose()?;
        let listening = |source| Error::Listen {
            port: settings.port,
            source,
        };
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", settings.port))
            .await
            .map_err(listening)?;
        let port = listener.local_addr().map_err(listening)?.port();
        let also = serve::also_on(settings.also_on, port)
            .await
            .map_err(|source| Error::ListenAlso { port, source })?;
        let (confinement, bwrap) = confine::detect(settings.confine).await;
        let trust = match confinement {
            Confinement::Bubblewrap => {
                let trust = gateway::Trust::new(&settings.stand_ins);
                Some(Arc::new(trust.map_err(Error::Certificates)?))
            }
            _ => None,
        };
        let shared = Arc::new(shared::Shared {
            api_key: settings.api_key,
            port,
            also_on: settings.also_on,
            also_named: settings.also_named,
            confinement,
            ways: network::Ways {
                ports: settings.reachable,
                own: settings.also_on,
                stand_ins: settings.stand_ins,
                trust,
            },
            toolbox_url: settings
                .toolbox_url
                .unwrap_or_else(|| format!("http://127.0.0.1:{port}/toolbox")),
            default_snapshot: settings.default_snapshot,
            key_permissions: settings.key_permissions,
            gates: settings.gates,
            state_dir,
            tools,
            git_mirror,
            init,
            bwrap,
            transition_ms: settings.transition_ms,
            stop_grace_ms: settings.stop_grace_ms,
            clock: clock::Clock::default(),
            store,
            faults: faults::Faults::default(),
            starter: guest::Starter::new().map_err(Error::Start)?,
            stopping: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        let router = own_only(api::router(&shared), shared.also_named.clone());
        let router = shared.gates.before("provider", serve::peer, router);
        for listener in [Some(listener), also].into_iter().flatten() {
            shared.tasks.spawn(serve::run(
                listener,
                router.clone(),
                shared.stopping.clone(),
            ));
        }
        shared.tasks.spawn(timers::run(shared.clone()));
        Ok(Provider {
            shared,
            _lock: lock,
        })
    }

    /// Base of the control API: `http://127.0.0.1:PORT/api`.
    #[must_use]
    pub fn api_url(&self) -> String {
        format!("http://127.0.0.1:{}/api", self.shared.port)
    }

    /// The key that clients must send.
    #[must_use]
    pub fn api_key(&self) -> &str {
        &self.shared.api_key
    }

    /// How sandboxes are confined; without bubblewrap the caller shows a plain warning.
    #[must_use]
    pub fn confinement(&self) -> &Confinement {
        &self.shared.confinement
    }

    /// Every sandbox, oldest first. Reads `/proc`: for people, not for hot loops.
    #[must_use]
    pub fn sandboxes(&self) -> Vec<SandboxView> {
        let mut records: Vec<record::Record> = self
            .shared
            .store
            .lock()
            .sandboxes
            .values()
            .map(|entry| entry.record.clone())
            .collect();
        records.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        let view = |record: record::Record| SandboxView {
            pids: processes::Mark::one(&self.shared.state_dir, &record.id).pids(),
            dir: self.shared.store.place(&record.folder).join("home"),
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
        self.shared.clock.advance(ms);
        timers::sweep(&self.shared);
    }

    /// Ends every process of every sandbox, then the servers. Sandboxes are found stopped by the next start.
    pub async fn stop(self) {
        self.shared.stopping.cancel();
        let guests: Vec<_> = {
            let mut inner = self.shared.store.lock();
            inner
                .sandboxes
                .values_mut()
                .filter_map(|entry| entry.guest.take())
                .collect()
        };
        let grace_ms = self.shared.stop_grace_ms;
        futures::future::join_all(guests.iter().map(|guest| guest.end(grace_ms))).await;
        self.shared.tasks.close();
        let bound = Duration::from_millis(limits::DRAIN_MS_MAX + limits::KILL_WAIT_MS_MAX);
        // Whatever still runs then ends with the program.
        let _ = tokio::time::timeout(bound, self.shared.tasks.wait()).await;
        processes::Mark::all(&self.shared.state_dir).end(0).await;
    }
}
