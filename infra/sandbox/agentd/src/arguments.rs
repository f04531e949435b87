//! Arguments of the daemon.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::Parser;

/// May hold the token in place of `--token`, which other users of the machine can read in the list of processes.
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
    /// Port to listen on; 0 takes a free one, which is printed
    #[arg(long, default_value_t = 2468)]
    pub(crate) port: u16,
    /// What clients must send as `Authorization: Bearer`
    #[arg(long, env = TOKEN_VARIABLE, hide_env_values = true)]
    pub(crate) token: String,
    /// Folder of sessions and installed agents; made if it is not there
    #[arg(long)]
    pub(crate) state: PathBuf,
    /// File for the daemon's own log, instead of standard error
    #[arg(long)]
    pub(crate) log: Option<PathBuf>,
    /// Another agent that speaks the Agent Client Protocol on its standard input and output; may be repeated. Words are
    /// parted by blanks
    #[arg(long = "acp", value_name = "NAME=COMMAND LINE")]
    pub(crate) acp: Vec<String>,
    /// Ends when its standard input does: for a program that started it and may be killed
    #[arg(long)]
    pub(crate) while_stdin: bool,
    /// The serving half, which the reaping half with this process id starts
    #[arg(long, hide = true)]
    pub(crate) serve: Option<u32>,
}

/// Fetches agents, each by the hash that is pinned here, and ends: for the making of a sandbox's image. Whoever asks
/// for an agent accepts its licence.
#[derive(Debug, Clone, Parser)]
#[command(name = "bobbin-agentd install", bin_name = "bobbin-agentd install", version)]
pub(crate) struct Install {
    /// opencode, claude or codex; what is on PATH already is left as it is
    #[arg(required = true)]
    pub(crate) agents: Vec<String>,
    /// Folder whose `bin` gets their programs; made if it is not there
    #[arg(long)]
    pub(crate) into: PathBuf,
    /// By the pinned version in that folder, whatever is on PATH
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
