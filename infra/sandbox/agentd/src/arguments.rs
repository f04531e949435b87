//! Arguments of the daemon.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::Parser;

/// May hold the token instead of `--token`, which other users of the machine can read in the list of processes.
pub(crate) const TOKEN_VARIABLE: &str = "BOBBIN_AGENTD_TOKEN";

/// Runs coding agents in a sandbox behind one durable session API.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "bobbin-agentd",
    version,
    after_help = "bobbin-agentd install AGENT... --into DIR fetches agents and ends."
)]
pub(crate) struct DaemonArguments {
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,
    /// Port to listen on; 0 chooses a free one and prints it
    #[arg(long, default_value_t = 2468)]
    pub(crate) port: u16,
    /// What clients must send as `Authorization: Bearer`
    #[arg(long, env = TOKEN_VARIABLE, hide_env_values = true)]
    pub(crate) token: String,
    /// Folder of sessions and installed agents; created if missing
    #[arg(long)]
    pub(crate) state: PathBuf,
    /// File for the daemon's own log, instead of standard error
    #[arg(long)]
    pub(crate) log: Option<PathBuf>,
    /// Another agent that speaks the Agent Client Protocol on its standard input and output; may be repeated. Words are
    /// separated by spaces
    #[arg(long = "acp", value_name = "NAME=COMMAND LINE")]
    pub(crate) acp: Vec<String>,
    /// End when standard input ends: for a parent program that may be killed
    #[arg(long)]
    pub(crate) while_stdin: bool,
    /// The serving half, which the reaping half with this process id starts
    #[arg(long, hide = true)]
    pub(crate) serve: Option<u32>,
}

/// Fetches agents by their pinned hashes and ends, for building a sandbox's image. By naming an agent you accept its
/// licence.
#[derive(Debug, Clone, Parser)]
#[command(name = "bobbin-agentd install", bin_name = "bobbin-agentd install", version)]
pub(crate) struct Install {
    /// opencode, claude or codex; an agent already on PATH is left as it is
    #[arg(required = true)]
    pub(crate) agents: Vec<String>,
    /// Folder whose `bin` gets their programs; created if missing
    #[arg(long)]
    pub(crate) into: PathBuf,
    /// Install the pinned version into that folder even if the agent is on PATH
    #[arg(long)]
    pub(crate) pinned: bool,
}

impl Install {
    /// The agents that a command line asks to install; `None` if it starts the daemon.
    pub(crate) fn asked(words: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let mut words = words.into_iter();
        let program = words.next()?;
        let is_install = words.next().is_some_and(|word| word == "install");
        is_install.then(|| Self::parse_from(std::iter::once(program).chain(words)))
    }
}
