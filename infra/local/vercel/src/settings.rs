//! How a provider is run, and why it may not start.

use std::net::IpAddr;
use std::path::PathBuf;

use bobbin_local_breakpoint::Breakpoints;
use bobbin_local_sandbox::machine::MachineError;
use bobbin_local_sandbox::stand_in::StandIn;

/// How to run a provider.
#[derive(Clone)]
pub struct Settings {
    /// Where sandboxes and their records are kept. One provider at a time.
    pub state_dir: PathBuf,
    /// The token that clients send as Bearer.
    pub token: String,
    /// The team that it is of, by id.
    pub team_id: String,
    /// The team's only project, by id.
    pub project_id: String,
    /// Port on 127.0.0.1; 0 takes a free one.
    pub port: u16,
    /// An address of this machine at which the API and the routes listen too, on the same ports, for callers that do not
    /// share its loopback.
    pub also_on: Option<IpAddr>,
    /// A name or address of this machine by which such callers reach it.
    pub also_named: Option<String>,
    /// Ports of this machine's loopback that sandboxes with a network of their own reach too, such as a model's.
    pub reachable: Vec<u16>,
    /// Hosts of the world that something on this machine stands in for.
    pub stand_ins: Vec<StandIn>,
    /// Folders put first on PATH inside sandboxes, read-only.
    pub tools: Vec<PathBuf>,
    /// Repositories that stand in for those of GitHub.
    pub git_mirror: Option<PathBuf>,
    /// How long a session stays in each state of transition, at least.
    pub transition_ms: u64,
    /// Time between SIGTERM and SIGKILL at a stop.
    pub stop_grace_ms: u64,
    /// Use bubblewrap if it works.
    pub confine: bool,
    /// The program that calls [`crate::sandbox_init_main`] first; the running one by default.
    pub init: Option<PathBuf>,
    /// Test control: holds calls of functions.
    pub breakpoints: Breakpoints,
}

impl Settings {
    /// The defaults: a free port, no tools, 50 ms transitions, 3 s of grace, confined if possible.
    #[must_use]
    pub fn new(state_dir: PathBuf, token: String, team_id: String, project_id: String) -> Self {
        Settings {
            state_dir,
            token,
            team_id,
            project_id,
            port: 0,
            also_on: None,
            also_named: None,
            reachable: Vec::new(),
            stand_ins: Vec::new(),
            tools: Vec::new(),
            git_mirror: None,
            transition_ms: 50,
            stop_grace_ms: 3_000,
            confine: true,
            init: None,
            breakpoints: Breakpoints::default(),
        }
    }
}

/// Why a provider did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine cannot run sandboxes.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// What was kept cannot be read.
    #[error("the sandbox provider cannot use what it has kept: {0}")]
    State(std::io::Error),
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
