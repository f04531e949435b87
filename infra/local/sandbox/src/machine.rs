//! What a provider and this machine give every sandbox, and the start of a sandbox's first process.

use std::borrow::Cow;
use std::net::{IpAddr, TcpListener};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bobbin_local_breakpoint::{FolderError, FolderLock};
use rand::Rng;
use tokio_util::task::TaskTracker;

use crate::confine::{self, Bwrap, Confinement, SYSTEM_PATH};
use crate::disk::{give_to, private_folder};
use crate::gateway::Treatments;
use crate::identity;
use crate::init::protocol::Environment;
use crate::init_process::{InitLaunch, InitProcess, Spawner};
use crate::limits::{DRAIN_MS_MAX, KILL_WAIT_MS_MAX, PORT_FIRST, PORT_LAST, PORT_TRIES_MAX};
use crate::network::SandboxNetwork;
use crate::outbound::{Egress, ReachablePorts};
use crate::processes::{ProcessSet, SANDBOX_VARIABLE, STATE_DIR_VARIABLE, UNCONFINED_VARIABLE};
use crate::stand_in::StandIn;
use crate::tls::TlsInterceptor;

/// Port of agents' servers. Where sandboxes share the machine's ports, another port stands in for it.
pub const AGENT_PORT: u16 = 4096;
/// First descriptor after input, output and errors.
const FIRST_OWN: std::os::fd::RawFd = 3;
/// Variable with the port that stands in for it.
const PORT_VARIABLE: &str = "OPENCODE_PORT";

/// Settings for running a provider's sandboxes.
pub struct MachineSettings {
    /// Folder of sandboxes and their records; one provider at a time.
    pub state_dir: PathBuf,
    /// Folders put first on PATH inside sandboxes, read-only.
    pub tools: Vec<PathBuf>,
    /// Repositories that replace GitHub's ([`LocalMachine::git_mirror`]).
    pub git_mirror: Option<PathBuf>,
    /// The program whose [`crate::init::sandbox_init_main`] runs inside; the current one by default.
    pub init: Option<PathBuf>,
    /// Use bubblewrap if it works.
    pub confine: bool,
    /// Loopback ports of this machine that sandboxes with their own network can reach.
    pub reachable: ReachablePorts,
    /// A non-loopback address of this machine that must not be reached.
    pub own_address: Option<IpAddr>,
    /// Public hosts for which something on this machine stands in.
    pub stand_ins: Vec<StandIn>,
}

/// Why a machine cannot run sandboxes.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// Another provider holds the state folder.
    #[error("another provider is using {0}; stop it or choose another state folder")]
    InUse(PathBuf),
    /// The state folder is unusable.
    #[error("the sandbox provider cannot use {path}: {source}")]
    StateDir {
        /// The configured folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A folder of tools or repositories does not exist.
    #[error("the folder {path} cannot be used: {source}")]
    Tools {
        /// The configured folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// No certificates can be generated for intercepted connections.
    #[error("the sandbox provider cannot create certificates: {0}")]
    Certificates(String),
    /// The running program cannot be found, or a thread cannot be started.
    #[error("the sandbox provider cannot start processes: {0}")]
    Start(std::io::Error),
}

/// The machine, from one provider's side.
pub struct LocalMachine {
    /// Folder of the provider's state, which identifies its processes.
    pub state_dir: String,
    /// Isolation of commands.
    pub confinement: Confinement,
    /// Traffic allowed out of a sandbox.
    pub egress: Egress,
    /// Background tasks of sandboxes.
    pub tasks: TaskTracker,
    tools: Vec<PathBuf>,
    /// Git in the sandboxes reads `https://github.com/` from here, so that cloning needs no network.
    git_mirror: Option<PathBuf>,
    init: PathBuf,
    bwrap: Option<Bwrap>,
    spawner: Spawner,
    /// Held while the state folder is ours, until [`LocalMachine::end`].
    lock: Mutex<Option<FolderLock>>,
}

/// Settings of one start of a sandbox.
pub struct SandboxStart<'a> {
    /// Sandbox id, carried by its processes.
    pub id: &'a str,
    /// Folder with its home.
    pub folder: &'a Path,
    /// This machine's port that stands in for [`AGENT_PORT`] if sandboxes share the machine's ports.
    pub port: u16,
    /// Name of its user.
    pub user: &'a str,
    /// The provider's own variables.
    pub variables: Vec<(String, String)>,
    /// Programs inside trust the interceptor's authority.
    pub trusts: bool,
    /// Treatment of its requests, by host.
    pub treatments: Treatments,
}

impl LocalMachine {
    /// Locks the state folder for this process, ends leftovers of an earlier one, and detects what this machine allows.
    ///
    /// # Errors
    /// [`MachineError`].
    pub async fn prepare(settings: MachineSettings) -> Result<Self, MachineError> {
        // Sandboxes must not inherit files that were open when this program started.
        close_fds::set_fds_cloexec_threadsafe(FIRST_OWN, &[]);
        let (state_dir, lock) = lock_state_dir(&settings.state_dir)?;
        let state_dir = state_dir.to_string_lossy().into_owned();
        end_leftovers(&state_dir).await;
        let init = match settings.init {
            Some(init) => init,
            None => std::env::current_exe().map_err(MachineError::Start)?,
        };
        let tools = settings.tools.into_iter().map(existing);
        let tools = tools.collect::<Result<Vec<_>, _>>()?;
        let git_mirror = settings.git_mirror.map(existing).transpose()?;
        let mut read = tools.clone();
        read.push(init.clone());
        read.extend(git_mirror.clone());
        let (confinement, bwrap) = confine::detect(settings.confine, &read).await;
        let interceptor = match confinement {
            Confinement::Bubblewrap => {
                let interceptor = TlsInterceptor::new(&settings.stand_ins);
                Some(Arc::new(interceptor.map_err(MachineError::Certificates)?))
            }
            _ => None,
        };
        Ok(Self {
            state_dir,
            confinement,
            egress: Egress {
                ports: settings.reachable,
                own: settings.own_address,
                stand_ins: settings.stand_ins,
                interceptor,
            },
            tasks: TaskTracker::new(),
            tools,
            git_mirror,
            init,
            bwrap,
            spawner: Spawner::new().map_err(MachineError::Start)?,
            lock: Mutex::new(Some(lock)),
        })
    }

    /// Every process of a sandbox.
    #[must_use]
    pub fn processes(&self, id: &str) -> ProcessSet {
        ProcessSet::of_sandbox(&self.state_dir, id)
    }

    /// Ends these first processes, and with them everything that runs for the provider, then its tasks.
    pub async fn end(&self, processes: &[Arc<InitProcess>], grace_ms: u64) {
        futures::future::join_all(processes.iter().map(|process| process.end(grace_ms))).await;
        self.tasks.close();
        let bound = Duration::from_millis(DRAIN_MS_MAX + KILL_WAIT_MS_MAX);
        // Anything still running ends with the program.
        let _ = tokio::time::timeout(bound, self.tasks.wait()).await;
        ProcessSet::of_state_dir(&self.state_dir).end(0).await;
        // Whatever still holds this machine has nothing more to write.
        self.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Starts the first process of a sandbox with its environment.
    ///
    /// # Errors
    /// The reason, in words.
    pub async fn start(&self, start: SandboxStart<'_>) -> Result<InitProcess, String> {
        let words = |error: std::io::Error| error.to_string();
        let home = start.folder.join("home");
        let temporary = self.temporary_dir(start.folder).map_err(words)?;
        std::fs::create_dir_all(&home).map_err(words)?;
        let mut readable = self.tools.clone();
        readable.push(self.init.clone());
        readable.extend(self.git_mirror.clone());
        let mut env = self.environment(&start, &home, &temporary);
        let placed = match self.bwrap.as_ref().and_then(Bwrap::user) {
            Some(user) => {
                let (variable, file) = identity::GIT_SYSTEM_CONFIG;
                env.insert(variable.to_owned(), file.to_owned());
                Self::hand_over(&start, &home, user).map_err(words)?
            }
            None => Vec::new(),
        };
        let network = match self.confinement {
            Confinement::Bubblewrap => {
                let folder = start.folder.join("network");
                let (egress, tasks) = (&self.egress, &self.tasks);
                let opened =
                    SandboxNetwork::open(folder, egress, start.trusts, start.treatments, tasks);
                Some(opened.map_err(words)?)
            }
            _ => None,
        };
        env.extend(network.iter().flat_map(SandboxNetwork::variables));
        let launch = InitLaunch {
            bwrap: self.bwrap.clone(),
            init: self.init.clone(),
            readable,
            placed,
            home,
            log: start.folder.join("init.log"),
            env,
            network,
            processes: self.processes(start.id),
        };
        InitProcess::start(&self.spawner, launch).await
    }

    /// Changes a home's owner to this user if needed, and writes the sandbox's user files.
    fn hand_over(
        start: &SandboxStart<'_>,
        home: &Path,
        user: u32,
    ) -> std::io::Result<Vec<(PathBuf, &'static str)>> {
        // If the provider created or copied it, the top folder is the provider's too.
        if std::fs::symlink_metadata(home)?.uid() != user {
            give_to(home, user)?;
        }
        identity::write(start.folder, start.user, user, home)
    }

    /// A private folder in place of the /tmp that an unconfined sandbox would share with the machine.
    fn temporary_dir(&self, sandbox_dir: &Path) -> std::io::Result<PathBuf> {
        if self.bwrap.is_some() {
            return Ok(PathBuf::from("/tmp"));
        }
        let temporary = sandbox_dir.join("tmp");
        // Leftovers of the last run; there may be none.
        let _ = std::fs::remove_dir_all(&temporary);
        std::fs::create_dir_all(&temporary)?;
        Ok(temporary)
    }

    /// The initial environment of every process of the sandbox.
    fn environment(&self, start: &SandboxStart<'_>, home: &Path, temporary: &Path) -> Environment {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut env = Environment::from([
            ("PATH".to_owned(), self.path_variable()),
            ("HOME".to_owned(), text(home)),
            ("TMPDIR".to_owned(), text(temporary)),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
            ("USER".to_owned(), start.user.to_owned()),
            ("SHELL".to_owned(), "/bin/sh".to_owned()),
            (PORT_VARIABLE.to_owned(), start.port.to_string()),
            (SANDBOX_VARIABLE.to_owned(), start.id.to_owned()),
            (STATE_DIR_VARIABLE.to_owned(), self.state_dir.clone()),
        ]);
        if self.bwrap.is_none() {
            env.insert(UNCONFINED_VARIABLE.to_owned(), "yes".to_owned());
        }
        env.extend(start.variables.iter().cloned());
        if let Some(mirror) = &self.git_mirror {
            // The sandbox's own git configuration: programs clone from the real address.
            let base = format!("url.file://{}/.insteadOf", text(mirror));
            env.extend([
                ("GIT_CONFIG_COUNT".to_owned(), "1".to_owned()),
                ("GIT_CONFIG_KEY_0".to_owned(), base),
                ("GIT_CONFIG_VALUE_0".to_owned(), "https://github.com/".to_owned()),
            ]);
        }
        env
    }

    fn path_variable(&self) -> String {
        let tools = self.tools.iter().map(|folder| folder.to_string_lossy());
        let system = SYSTEM_PATH.map(Cow::Borrowed);
        tools.chain(system).collect::<Vec<_>>().join(":")
    }
}

/// The sandbox's previous port if it is free and no other sandbox has it, else another one.
#[must_use]
pub fn free_port(had: u16, of_others: &[u16]) -> Option<u16> {
    let free = |port: u16| {
        (PORT_FIRST..=PORT_LAST).contains(&port)
            && !of_others.contains(&port)
            && TcpListener::bind(("127.0.0.1", port)).is_ok()
    };
    let mut random = rand::rng();
    std::iter::once(had)
        .chain((0..PORT_TRIES_MAX).map(|_| random.random_range(PORT_FIRST..=PORT_LAST)))
        .find(|port| free(*port))
}

/// Locks the state folder for this process.
fn lock_state_dir(state_dir: &Path) -> Result<(PathBuf, FolderLock), MachineError> {
    let unusable = |source| MachineError::StateDir { path: state_dir.to_owned(), source };
    private_folder(state_dir).map_err(unusable)?;
    let folder = state_dir.canonicalize().map_err(unusable)?;
    let lock = FolderLock::take(&folder).map_err(|error| match error {
        FolderError::Taken => MachineError::InUse(folder.clone()),
        FolderError::Unusable(source) => unusable(source),
    })?;
    Ok((folder, lock))
}

/// Ends processes left by an earlier run.
async fn end_leftovers(state_dir: &str) {
    let left = ProcessSet::of_state_dir(state_dir).end(0).await;
    if left > 0 {
        tracing::warn!(processes = left, "processes of an earlier run could not be ended");
    }
}

/// A folder's canonical path, under which sandboxes see it.
fn existing(path: PathBuf) -> Result<PathBuf, MachineError> {
    match path.canonicalize() {
        Ok(found) => Ok(found),
        Err(source) => Err(MachineError::Tools { path, source }),
    }
}
