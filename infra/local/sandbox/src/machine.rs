//! What a provider and this machine give to every sandbox, and the start of a sandbox's first process with it.

use std::borrow::Cow;
use std::fs::File;
use std::net::{IpAddr, TcpListener};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rand::Rng;
use rustix::fs::{FlockOperation, flock};
use tokio_util::task::TaskTracker;

use crate::confine::{self, Bwrap, Confinement, SYSTEM_PATH};
use crate::disk::{give_to, private_folder};
use crate::gateway::Treatments;
use crate::identity;
use crate::init::protocol::Environment;
use crate::init_process::{InitProcess, Launch, Spawner};
use crate::limits::{DRAIN_MS_MAX, KILL_WAIT_MS_MAX, PORT_FIRST, PORT_LAST, PORT_TRIES_MAX};
use crate::network::SandboxNetwork;
use crate::outbound::{Egress, ReachablePorts};
use crate::processes::{ProcessSet, SANDBOX_VARIABLE, STATE_DIR_VARIABLE, UNCONFINED_VARIABLE};
use crate::stand_in::StandIn;
use crate::tls::TlsInterceptor;

/// The port that agents' servers listen on. Where sandboxes share the machine's ports, another one stands for it.
pub const AGENT_PORT: u16 = 4096;
/// Of the descriptors those behind input, output and errors.
const FIRST_OWN: std::os::fd::RawFd = 3;
/// The environment variable that holds the port which stands for it.
const PORT_VARIABLE: &str = "OPENCODE_PORT";

/// How a provider's sandboxes are run.
pub struct MachineSettings {
    /// Where sandboxes and their records are kept. One provider at a time.
    pub state_dir: PathBuf,
    /// Folders put first on PATH inside sandboxes, read-only.
    pub tools: Vec<PathBuf>,
    /// Repositories that stand in for those of GitHub ([`Machine::git_mirror`]).
    pub git_mirror: Option<PathBuf>,
    /// The program whose [`crate::init::sandbox_init_main`] runs inside; the running one by default.
    pub init: Option<PathBuf>,
    /// Use bubblewrap if it works.
    pub confine: bool,
    /// Ports of this machine's loopback that sandboxes with a network of their own reach too.
    pub reachable: ReachablePorts,
    /// An address of this machine besides loopback that is not to be reached.
    pub own_address: Option<IpAddr>,
    /// Hosts of the world that something on this machine stands in for.
    pub stand_ins: Vec<StandIn>,
}

/// Why a machine cannot run sandboxes.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// Another provider holds the state folder.
    #[error("another provider is using {0}; stop it or choose another state folder")]
    InUse(PathBuf),
    /// The state folder cannot be used.
    #[error("the sandbox provider cannot use {path}: {source}")]
    StateDir {
        /// The folder that was named.
        path: PathBuf,
        /// What the system says about the folder.
        source: std::io::Error,
    },
    /// A folder of tools, or of repositories, is not there.
    #[error("the folder {path} cannot be used: {source}")]
    Tools {
        /// The folder that was named.
        path: PathBuf,
        /// What the system says about the folder.
        source: std::io::Error,
    },
    /// There can be no certificates for what goes through it.
    #[error("the sandbox provider cannot make certificates: {0}")]
    Certificates(String),
    /// The running program cannot be found, or a thread not be started.
    #[error("the sandbox provider cannot start processes: {0}")]
    Start(std::io::Error),
}

/// The machine, as one provider has it.
pub struct Machine {
    /// The folder of the provider's state, by which its processes are found again.
    pub state_dir: String,
    /// How commands are kept apart.
    pub confinement: Confinement,
    /// What may leave a sandbox.
    pub egress: Egress,
    /// Tasks that work for sandboxes.
    pub tasks: TaskTracker,
    tools: Vec<PathBuf>,
    /// Git in the sandboxes reads `https://github.com/` from there, so that cloning needs no network.
    git_mirror: Option<PathBuf>,
    init: PathBuf,
    bwrap: Option<Bwrap>,
    spawner: Spawner,
    /// Held for as long as the state folder is ours; the system lets go of it when the process ends.
    _lock: File,
}

/// One start of a sandbox.
pub struct SandboxStart<'a> {
    /// Its id, which its processes carry.
    pub id: &'a str,
    /// The folder that holds its home.
    pub folder: &'a Path,
    /// The port of this machine that stands for [`AGENT_PORT`] where sandboxes share the machine's ports.
    pub port: u16,
    /// The name of its user.
    pub user: &'a str,
    /// Variables of the provider's own.
    pub variables: Vec<(String, String)>,
    /// Programs inside trust the end that reads their requests.
    pub trusts: bool,
    /// What becomes of its requests, by host.
    pub treatments: Treatments,
}

impl Machine {
    /// Takes the state folder for this process alone, ends what an earlier one may have left behind, and finds out what this
    /// machine allows.
    ///
    /// # Errors
    /// See [`MachineError`].
    pub async fn prepare(settings: MachineSettings) -> Result<Self, MachineError> {
        // Sandboxes must not inherit the files that were open when this program was started.
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
            _lock: lock,
        })
    }

    /// Every process of a sandbox.
    #[must_use]
    pub fn processes(&self, id: &str) -> ProcessSet {
        ProcessSet::of_sandbox(&self.state_dir, id)
    }

    /// Ends these first processes and with them everything that runs for the provider, then its tasks.
    pub async fn end(&self, processes: &[Arc<InitProcess>], grace_ms: u64) {
        futures::future::join_all(processes.iter().map(|process| process.end(grace_ms))).await;
        self.tasks.close();
        let bound = Duration::from_millis(DRAIN_MS_MAX + KILL_WAIT_MS_MAX);
        // Whatever still runs then ends with the program.
        let _ = tokio::time::timeout(bound, self.tasks.wait()).await;
        ProcessSet::of_state_dir(&self.state_dir).end(0).await;
    }

    /// Starts the first process of a sandbox with everything that it finds around it.
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
        let launch = Launch {
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

    /// Makes a home that is still another's this user's own, and the files by which the sandbox knows its user.
    fn hand_over(
        start: &SandboxStart<'_>,
        home: &Path,
        user: u32,
    ) -> std::io::Result<Vec<(PathBuf, &'static str)>> {
        // Of one that was made or copied by the provider, the top was made by it too.
        if std::fs::symlink_metadata(home)?.uid() != user {
            give_to(home, user)?;
        }
        identity::write(start.folder, start.user, user, home)
    }

    /// A private folder stands in for the /tmp that an unconfined sandbox would share with the machine.
    fn temporary_dir(&self, sandbox_dir: &Path) -> std::io::Result<PathBuf> {
        if self.bwrap.is_some() {
            return Ok(PathBuf::from("/tmp"));
        }
        let temporary = sandbox_dir.join("tmp");
        // What the last run left there; that there is nothing is fine.
        let _ = std::fs::remove_dir_all(&temporary);
        std::fs::create_dir_all(&temporary)?;
        Ok(temporary)
    }

    /// The variables that every process of the sandbox starts with.
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
            // The sandbox's own configuration of git: who clones asks for the true address.
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

/// The port that a sandbox had, if it is still free and none of those that others have, else another one.
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

/// Takes the state folder for this process alone.
fn lock_state_dir(state_dir: &Path) -> Result<(PathBuf, File), MachineError> {
    let unusable = |source| MachineError::StateDir { path: state_dir.to_owned(), source };
    private_folder(state_dir).map_err(unusable)?;
    let folder = state_dir.canonicalize().map_err(unusable)?;
    let lock = File::create(folder.join("lock")).map_err(unusable)?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| MachineError::InUse(folder.clone()))?;
    Ok((folder, lock))
}

/// Ends what an earlier run left behind.
async fn end_leftovers(state_dir: &str) {
    let left = ProcessSet::of_state_dir(state_dir).end(0).await;
    if left > 0 {
        tracing::warn!(processes = left, "processes of an earlier run could not be ended");
    }
}

/// A folder by its true path, which sandboxes see it under.
fn existing(path: PathBuf) -> Result<PathBuf, MachineError> {
    match path.canonicalize() {
        Ok(found) => Ok(found),
        Err(source) => Err(MachineError::Tools { path, source }),
    }
}
