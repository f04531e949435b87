//! Arguments of the `sandbox` commands, and how a sandbox is named.

use std::str::FromStr;

use bobbin_core::base::ids::{SandboxName, Tenant, ThreadKey};
use bobbin_core::shown::sandboxes::SandboxOption;
use bobbin_core::tenant::settings::DefaultKind;
use clap::{Args, Subcommand};

use super::super::find_thread::GivenThread;
use super::super::host::HostCommand;
use super::super::task::{TaskChannel, channel};
use super::{beside, provider, usable};
use crate::table::CUT;
use crate::time::duration_ms;

/// What can be done with sandboxes.
#[derive(Debug, Subcommand)]
pub enum SandboxCommand {
    /// List sandboxes: the named ones, and the provider's, joined with the records
    List(ListSandboxes),
    /// Create a named sandbox that threads can share; in a terminal it asks for missing values
    Create(Create),
    /// Stop a sandbox and keep its disk
    Stop(Act),
    /// Start a stopped sandbox and its server
    Start(Act),
    /// Delete a sandbox with its files; the threads that work in it are notified
    Destroy(Destroy),
    /// Take a snapshot of a sandbox's disk; list snapshots, delete one
    Snapshot(TakeSnapshot),
    /// Move a thread to another sandbox, after its running and waiting turns
    Connect(Connect),
    /// Show a server's or workspace's own keys, get a link to enter one, remove one
    Setup(SetupKey),
    /// Show what an agent elsewhere needs to work in a sandbox: an address, a bearer, a configuration
    Tools(OpenTools),
    /// Show the log of the OpenCode server in a sandbox
    Log(SandboxLog),
    /// Find orphaned sandboxes, as the sweeper does (a dry run without --destroy)
    Orphans(Orphans),
    /// Print a script that prepares your own machine for sandboxes
    #[command(subcommand)]
    Host(HostCommand),
}

/// How a sandbox is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GivenSandbox {
    /// By its name.
    Named(SandboxName),
    /// By a thread that works in it, or by its own key.
    Of(ThreadKey),
    /// By the end of such a thread's key.
    OfEnd(GivenThread),
}

impl FromStr for GivenSandbox {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        // A name has none of these characters; every key has colons.
        if word.contains([':', '.', CUT]) {
            return Ok(match word.parse()? {
                GivenThread::Key(key) => Self::Of(key),
                end @ GivenThread::Short { .. } => Self::OfEnd(end),
            });
        }
        let name = word.parse();
        name.map(Self::Named).map_err(|bad| format!("{bad}"))
    }
}

#[derive(Debug, Args)]
pub struct ListSandboxes {
    /// Only those of this tenant (discord:GUILD or slack:TEAM)
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<Tenant>,
}

#[derive(Debug, Args)]
pub struct Create {
    /// Its name: 1 to 40 characters of a-z, 0-9 and -
    pub name: Option<SandboxName>,
    /// Its tenant (discord:GUILD or slack:TEAM)
    #[arg(long, value_name = "TENANT", conflicts_with = "channel")]
    pub tenant: Option<Tenant>,
    /// Its tenant, by the id of a channel that the bot is in
    #[arg(long, value_name = "ID", value_parser = channel)]
    pub channel: Option<TaskChannel>,
    /// Its provider; by default the one set for the tenant or the stack
    #[arg(long, value_name = "PROVIDER", value_parser = provider)]
    pub provider: Option<String>,
    /// How agents run in it: opencode, compat, native or outside; by default as set for the tenant or the stack
    #[arg(long, value_name = "MODE", value_parser = |word: &str| usable(DefaultKind::Runtime, word))]
    pub runtime: Option<String>,
    /// The repository to clone into it: owner/name or an https address
    #[arg(long, value_name = "URL", value_parser = |word: &str| usable(DefaultKind::Repo, word))]
    pub repo: Option<String>,
    /// The snapshot to start it from, as `bobbin sandbox snapshot --list` shows it
    #[arg(long, value_name = "ID", value_parser = |word: &str| beside(SandboxOption::Snapshot, word))]
    pub snapshot: Option<String>,
    /// Ask nothing: use the stack's defaults
    #[arg(short, long)]
    pub yes: bool,
    /// Wait this long for the result (0s: not at all)
    #[arg(long = "wait", value_name = "TIME", default_value = "10m", value_parser = duration_ms)]
    pub wait_ms: u64,
}

#[derive(Debug, Args)]
pub struct Act {
    /// The sandbox's name, or a thread that works in it, as `bobbin thread list` shows it
    #[arg(value_name = "NAME|THREAD")]
    pub sandbox: GivenSandbox,
    /// Its tenant, if several servers or workspaces have a sandbox of this name
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<Tenant>,
    /// Stop the turns that run in it, as the Stop button does
    #[arg(long)]
    pub even_if_busy: bool,
    /// Wait this long for the result (0s: not at all)
    #[arg(long = "wait", value_name = "TIME", default_value = "5m", value_parser = duration_ms)]
    pub wait_ms: u64,
}

#[derive(Debug, Args)]
pub struct OpenTools {
    /// The sandbox's name, or a thread that works in it, as `bobbin thread list` shows it
    #[arg(value_name = "NAME|THREAD")]
    pub sandbox: GivenSandbox,
    /// Its tenant, if several servers or workspaces have a sandbox of this name
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<Tenant>,
}

#[derive(Debug, Args)]
pub struct Destroy {
    #[command(flatten)]
    pub act: Act,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub yes: bool,
    /// Take a snapshot of its disk first; if that fails, it is not destroyed
    #[arg(long)]
    pub snapshot: bool,
}

#[derive(Debug, Args)]
pub struct TakeSnapshot {
    /// The sandbox's name, or a thread that works in it
    #[arg(value_name = "NAME|THREAD", required_unless_present_any = ["list", "delete"])]
    pub sandbox: Option<GivenSandbox>,
    /// Its tenant, if several servers or workspaces have a sandbox of this name
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<Tenant>,
    /// List the snapshots of this sandbox, or of all
    #[arg(long, conflicts_with = "delete")]
    pub list: bool,
    /// Delete this snapshot; sandboxes that started from it stay
    #[arg(long, value_name = "ID", conflicts_with = "sandbox")]
    pub delete: Option<String>,
    /// Wait this long for the result (0s: not at all)
    #[arg(long = "wait", value_name = "TIME", default_value = "20m", value_parser = duration_ms)]
    pub wait_ms: u64,
}

#[derive(Debug, Args)]
pub struct Connect {
    /// The thread, as `bobbin thread list` shows it, or the end of its key
    pub thread: GivenThread,
    /// The sandbox to work in, by name
    #[arg(required_unless_present = "own")]
    pub name: Option<SandboxName>,
    /// Move it back to its own sandbox
    #[arg(long, conflicts_with = "name")]
    pub own: bool,
    /// Wait this long for the result (0s: not at all)
    #[arg(long = "wait", value_name = "TIME", default_value = "5m", value_parser = duration_ms)]
    pub wait_ms: u64,
}

#[derive(Debug, Args)]
pub struct SetupKey {
    /// Whose keys (discord:GUILD or slack:TEAM)
    #[arg(long, value_name = "TENANT")]
    pub tenant: Tenant,
    /// Show a link that works once, to enter a key of this provider
    #[arg(long, value_name = "PROVIDER", value_parser = clap::builder::PossibleValuesParser::new(bobbin_core::tenant::keys::Key::OF_TENANTS.iter().filter_map(|key| key.provider())))]
    pub provider: Option<String>,
    /// Remove the key of that provider, if no sandbox uses it
    #[arg(long, requires = "provider")]
    pub remove: bool,
    /// Wait this long for the key (0s: not at all)
    #[arg(long = "wait", value_name = "TIME", default_value = "10m", value_parser = duration_ms)]
    pub wait_ms: u64,
}

#[derive(Debug, Args)]
pub struct SandboxLog {
    /// The sandbox's name, or a thread that works in it, as `bobbin thread list` shows it
    #[arg(value_name = "NAME|THREAD")]
    pub sandbox: GivenSandbox,
    /// Its tenant, if several servers or workspaces have a sandbox of this name
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<Tenant>,
    /// How many of the last lines to show
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=5000))]
    pub lines: u32,
    /// Keep showing new lines
    #[arg(short, long)]
    pub follow: bool,
    /// Follow for at most this long (90s, 30m, 2h)
    #[arg(long = "for", value_name = "TIME", default_value = "30m", value_parser = duration_ms, requires = "follow")]
    pub within_ms: u64,
    /// Show what the program wrote to its terminal instead of OpenCode's own log
    #[arg(long)]
    pub server: bool,
}

#[derive(Debug, Args)]
pub struct Orphans {
    /// Delete them
    #[arg(long)]
    pub destroy: bool,
}
