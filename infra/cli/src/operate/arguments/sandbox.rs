//! Arguments of the `sandbox` commands, and how a sandbox is named.

use std::str::FromStr;

use bobbin_core::base::ids::{SandboxName, Tenant, ThreadKey};
use bobbin_core::shown::sandboxes::SandboxOption;
use bobbin_core::tenant::settings::DefaultKind;
use clap::{Args, Subcommand};

use super::super::host::HostCommand;
use super::super::meant::GivenThread;
use super::super::task::{TaskChannel, channel};
use super::{beside, provider, usable};
use crate::table::CUT;
use crate::time::duration_ms;

/// What can be done with sandboxes.
#[derive(Debug, Subcommand)]
pub enum SandboxCommand {
    /// List sandboxes: those that have a name, and what the provider has, joined with the records
    List(ListSandboxes),
    /// Make a sandbox with a name, which threads can share; in a terminal it asks for what is missing
    Create(Create),
    /// Stop a sandbox and keep its disk
    Stop(Act),
    /// Bring a stopped sandbox back, with its server
    Start(Act),
    /// Delete a sandbox with its files; the threads that work in it are told
    Destroy(Destroy),
    /// Keep what a sandbox's disk holds, as a snapshot; list snapshots, delete one
    Snapshot(TakeSnapshot),
    /// Take a thread to another sandbox, behind what runs in it
    Connect(Connect),
    /// Show the keys of a server's or workspace's own, have one entered, take one away
    Setup(SetupKey),
    /// Tell what an agent that runs elsewhere needs to work in a sandbox: an address, a bearer, a configuration
    Tools(OpenTools),
    /// Show the log of the OpenCode server in a sandbox
    Log(SandboxLog),
    /// Find sandboxes that belong to nobody, as the sweeper does (a dry run, unless told to destroy)
    Orphans(Orphans),
    /// Write a script that prepares a machine of one's own for sandboxes
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
    /// What people will call it: 1 to 40 of a-z, 0-9 and -
    pub name: Option<SandboxName>,
    /// Whose it is (discord:GUILD or slack:TEAM)
    #[arg(long, value_name = "TENANT", conflicts_with = "channel")]
    pub tenant: Option<Tenant>,
    /// Whose it is, by the id of a channel that the bot is in
    #[arg(long, value_name = "ID", value_parser = channel)]
    pub channel: Option<TaskChannel>,
    /// The provider that it is made at; without it the stack's first
    #[arg(long, value_name = "PROVIDER", value_parser = provider)]
    pub provider: Option<String>,
    /// How agents are run in it: opencode, compat, native or outside; without it the tenant's or the stack's
    #[arg(long, value_name = "MODE", value_parser = |word: &str| usable(DefaultKind::Runtime, word))]
    pub runtime: Option<String>,
    /// The repository that is cloned into it: owner/name, or an https address
    #[arg(long, value_name = "URL", value_parser = |word: &str| usable(DefaultKind::Repo, word))]
    pub repo: Option<String>,
    /// The snapshot that it begins with, as `bobbin sandbox snapshot --list` shows it
    #[arg(long, value_name = "ID", value_parser = |word: &str| beside(SandboxOption::Snapshot, word))]
    pub snapshot: Option<String>,
    /// Ask for nothing: what is not said is the stack's
    #[arg(short, long)]
    pub yes: bool,
    /// Wait for the result for so long (0s: not at all)
    #[arg(long = "wait", value_name = "TIME", default_value = "10m", value_parser = duration_ms)]
    pub wait_ms: u64,
}

#[derive(Debug, Args)]
pub struct Act {
    /// Its name, or a thread that works in it, as `bobbin thread list` shows it
    #[arg(value_name = "NAME|THREAD")]
    pub sandbox: GivenSandbox,
    /// Whose it is, where several servers or workspaces have one of this name
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<Tenant>,
    /// End the turns that run in it, as somebody who presses Stop
    #[arg(long)]
    pub even_if_busy: bool,
    /// Wait for the result for so long (0s: not at all)
    #[arg(long = "wait", value_name = "TIME", default_value = "5m", value_parser = duration_ms)]
    pub wait_ms: u64,
}

#[derive(Debug, Args)]
pub struct OpenTools {
    /// Its name, or a thread that works in it, as `bobbin thread list` shows it
    #[arg(value_name = "NAME|THREAD")]
    pub sandbox: GivenSandbox,
    /// Whose it is, where several servers or workspaces have one of this name
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<Tenant>,
}

#[derive(Debug, Args)]
pub struct Destroy {
    #[command(flatten)]
    pub act: Act,
    /// Do not ask: what is lost is known
    #[arg(short, long)]
    pub yes: bool,
    /// Keep what its disk holds before, as a snapshot; without that one it stays
    #[arg(long)]
    pub snapshot: bool,
}

#[derive(Debug, Args)]
pub struct TakeSnapshot {
    /// The sandbox: its name, or a thread that works in it
    #[arg(value_name = "NAME|THREAD", required_unless_present_any = ["list", "delete"])]
    pub sandbox: Option<GivenSandbox>,
    /// Whose it is, where several servers or workspaces have one of this name
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<Tenant>,
    /// List the snapshots of this sandbox, or of all
    #[arg(long, conflicts_with = "delete")]
    pub list: bool,
    /// Delete this snapshot; sandboxes that began with it stay
    #[arg(long, value_name = "ID", conflicts_with = "sandbox")]
    pub delete: Option<String>,
    /// Wait for the result for so long (0s: not at all)
    #[arg(long = "wait", value_name = "TIME", default_value = "20m", value_parser = duration_ms)]
    pub wait_ms: u64,
}

#[derive(Debug, Args)]
pub struct Connect {
    /// As `bobbin thread list` shows it, or an end of that
    pub thread: GivenThread,
    /// The sandbox that it is to work in, by its name
    #[arg(required_unless_present = "own")]
    pub name: Option<SandboxName>,
    /// Back to a sandbox of its own
    #[arg(long, conflicts_with = "name")]
    pub own: bool,
    /// Wait for the result for so long (0s: not at all)
    #[arg(long = "wait", value_name = "TIME", default_value = "5m", value_parser = duration_ms)]
    pub wait_ms: u64,
}

#[derive(Debug, Args)]
pub struct SetupKey {
    /// Whose keys (discord:GUILD or slack:TEAM)
    #[arg(long, value_name = "TENANT")]
    pub tenant: Tenant,
    /// Have a key of this provider entered: a link is shown that works once
    #[arg(long, value_name = "PROVIDER", value_parser = clap::builder::PossibleValuesParser::new(bobbin_core::tenant::keys::Key::OF_TENANTS.iter().filter_map(|key| key.provider())))]
    pub provider: Option<String>,
    /// Take the key of that provider away, if no sandbox uses it
    #[arg(long, requires = "provider")]
    pub remove: bool,
    /// Wait for the key for so long (0s: not at all)
    #[arg(long = "wait", value_name = "TIME", default_value = "10m", value_parser = duration_ms)]
    pub wait_ms: u64,
}

#[derive(Debug, Args)]
pub struct SandboxLog {
    /// Its name, or a thread that works in it, as `bobbin thread list` shows it
    #[arg(value_name = "NAME|THREAD")]
    pub sandbox: GivenSandbox,
    /// Whose it is, where several servers or workspaces have one of this name
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<Tenant>,
    /// Lines of its end
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=5000))]
    pub lines: u32,
    /// Go on showing what comes
    #[arg(short, long)]
    pub follow: bool,
    /// Follow for so long at most (90s, 30m, 2h)
    #[arg(long = "for", value_name = "TIME", default_value = "30m", value_parser = duration_ms, requires = "follow")]
    pub within_ms: u64,
    /// What the program wrote to its terminal, in place of OpenCode's own log
    #[arg(long)]
    pub server: bool,
}

#[derive(Debug, Args)]
pub struct Orphans {
    /// Delete them
    #[arg(long)]
    pub destroy: bool,
}
