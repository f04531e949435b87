//! How a provider runs on this machine, whatever API it speaks, and why it may not start.

use std::net::IpAddr;
use std::path::PathBuf;

use bobbin_local_breakpoint::Breakpoints;

use crate::machine::{MachineError, MachineSettings};
use crate::outbound::ReachablePorts;
use crate::stand_in::StandIn;

/// Time in each state of transition where nobody names one.
const TRANSITION_MS: u64 = 50;
/// Time between SIGTERM and SIGKILL where nobody names one.
const STOP_GRACE_MS: u64 = 3_000;

/// How to run a provider.
#[derive(Clone)]
pub struct RunSettings {
    /// Where sandboxes and their records are kept. One provider at a time.
    pub state_dir: PathBuf,
    /// Port on 127.0.0.1; 0 takes a free one.
    pub port: u16,
    /// An address of this machine at which the API and the sandboxes' ports listen too, on the same ports, for callers that
    /// do not share its loopback.
    pub also_on: Option<IpAddr>,
    /// A name or address of this machine by which such callers reach it.
    pub also_named: Option<String>,
    /// Ports of this machine's loopback that sandboxes with a network of their own reach too, such as a model's.
    pub reachable: ReachablePorts,
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
    /// Where this machine has less memory left than so many megabytes, the longest unused sandbox is stopped; 0: none is.
    pub memory_left_mb: u64,
    /// Use bubblewrap if it works.
    pub confine: bool,
    /// The program that calls [`crate::init::sandbox_init_main`] first; the running one by default.
    pub init: Option<PathBuf>,
    /// Test control: holds calls of functions.
    pub breakpoints: Breakpoints,
}

impl RunSettings {
    /// The defaults: a free port, no tools, 50 ms transitions, 3 s of grace, confined if possible.
    #[must_use]
    pub fn new(state_dir: PathBuf) -> Self {
        Self {
            state_dir,
            port: 0,
            also_on: None,
            also_named: None,
            reachable: ReachablePorts::default(),
            stand_ins: Vec::new(),
            tools: Vec::new(),
            git_mirror: None,
            transition_ms: TRANSITION_MS,
            stop_grace_ms: STOP_GRACE_MS,
            memory_left_mb: 0,
            confine: true,
            init: None,
            breakpoints: Breakpoints::default(),
        }
    }

    /// What the machine is prepared with.
    #[must_use]
    pub fn machine(&self) -> MachineSettings {
        MachineSettings {
            state_dir: self.state_dir.clone(),
            tools: self.tools.clone(),
            git_mirror: self.git_mirror.clone(),
            init: self.init.clone(),
            confine: self.confine,
            reachable: self.reachable.clone(),
            own_address: self.also_on,
            stand_ins: self.stand_ins.clone(),
        }
    }
}

/// Why a provider did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The machine cannot run sandboxes.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// What was kept cannot be read.
    #[error("the sandbox provider cannot use what it has kept: {0}")]
    State(std::io::Error),
    /// The second address cannot be listened on.
    #[error(
        "the sandbox provider cannot listen on port {port} of the second address too: {source}; start again for another port"
    )]
    ListenAlso {
        /// The port, which is that of loopback.
        port: u16,
        /// What the system says about the port.
        source: std::io::Error,
    },
    /// The port cannot be had.
    #[error(
        "the sandbox provider cannot listen on 127.0.0.1:{port}: {source}; choose another port, or 0 for a free one"
    )]
    Listen {
        /// The port that was asked for, 0 for any.
        port: u16,
        /// What the system says about the port.
        source: std::io::Error,
    },
}
