//! How a provider of any API runs on this machine, and start errors.

use std::net::IpAddr;
use std::path::PathBuf;

use bobbin_local_breakpoint::Breakpoints;

use crate::machine::{MachineError, MachineSettings};
use crate::outbound::ReachablePorts;
use crate::stand_in::StandIn;

/// Default time in each transition state.
const TRANSITION_MS: u64 = 50;
/// Default time between SIGTERM and SIGKILL.
const STOP_GRACE_MS: u64 = 3_000;

/// Settings for running a provider.
#[derive(Clone)]
pub struct RunSettings {
    /// Folder of sandboxes and their records; one provider at a time.
    pub state_dir: PathBuf,
    /// Port on 127.0.0.1; 0 picks a free one.
    pub port: u16,
    /// Another address of this machine for the API and the sandboxes' ports, on the same ports, for callers that do not
    /// share its loopback.
    pub also_on: Option<IpAddr>,
    /// This machine's name or address for such callers.
    pub also_named: Option<String>,
    /// Loopback ports of this machine that sandboxes with their own network can reach, such as a model's.
    pub reachable: ReachablePorts,
    /// Public hosts for which something on this machine stands in, for sandboxes with their own network.
    pub stand_ins: Vec<StandIn>,
    /// Folders put first on PATH inside sandboxes, read-only: OpenCode, ripgrep.
    pub tools: Vec<PathBuf>,
    /// Repositories that replace GitHub's, as `<owner>/<name>` or `<owner>/<name>.git` below this folder: git in the
    /// sandboxes reads `https://github.com/` from there, so that cloning needs no network.
    pub git_mirror: Option<PathBuf>,
    /// Shortest time of a sandbox in each transition state.
    pub transition_ms: u64,
    /// Time between SIGTERM and SIGKILL at a stop.
    pub stop_grace_ms: u64,
    /// Below this many megabytes of free memory the least recently used sandbox is stopped; 0 turns this off.
    pub memory_left_mb: u64,
    /// Use bubblewrap if it works.
    pub confine: bool,
    /// The program that calls [`crate::init::sandbox_init_main`] first; the current one by default.
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

    /// Settings for preparing the machine.
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
    /// The stored state is unreadable.
    #[error("the sandbox provider cannot use its saved state: {0}")]
    State(std::io::Error),
    /// The second address is unavailable.
    #[error(
        "the sandbox provider cannot listen on port {port} of the second address too: {source}; start again for another port"
    )]
    ListenAlso {
        /// The port, the same as on loopback.
        port: u16,
        /// The system's error.
        source: std::io::Error,
    },
    /// The port is unavailable.
    #[error(
        "the sandbox provider cannot listen on 127.0.0.1:{port}: {source}; choose another port, or 0 for a free one"
    )]
    Listen {
        /// The requested port; 0 for any.
        port: u16,
        /// The system's error.
        source: std::io::Error,
    },
}
