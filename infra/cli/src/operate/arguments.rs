//! Arguments of the operation commands.

mod sandbox;

use bobbin_app::providers::PROVIDERS;
use bobbin_core::base::ids::{SandboxName, Tenant, ThreadKey};
use bobbin_core::records::sandbox::Phase;
use bobbin_core::shown::sandboxes::SandboxOption;
use bobbin_core::tenant::settings::DefaultKind;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};

pub use self::sandbox::{
    Act, Connect, Create, Destroy, GivenSandbox, ListSandboxes, OpenTools, Orphans, SandboxCommand,
    SandboxLog, SetupKey, TakeSnapshot,
};
use super::meant::GivenThread;
use super::task::{SendId, TaskChannel, channel};
use crate::time::duration_ms;

/// The commands of operation: a noun, then what is to be done with it.
#[derive(Debug, Subcommand)]
pub enum OperateCommand {
    /// Give a task in a channel: it gets a thread there, and the agent works in it
    Send(Send),
    /// List, show and follow threads; export and forget what is stored of one
    #[command(subcommand)]
    Thread(Thread),
    /// List, create, stop, start, keep and destroy sandboxes, take threads to them; logs, keys, those of nobody; hosts
    #[command(subcommand)]
    Sandbox(SandboxCommand),
    /// List dead letters, and send them again
    #[command(subcommand)]
    Dead(DeadCommand),
}

/// What can be done with threads.
#[derive(Debug, Subcommand)]
pub enum Thread {
    /// List threads: those that have a sandbox or a turn, or with --gone all
    List(ListThreads),
    /// Show a thread with its timeline
    Show(Show),
    /// Follow the turn that runs in a thread to its end, with the agent's words as they come
    Follow(FollowTurn),
    /// Everything that is stored of a thread, as JSON
    Export(Export),
    /// Delete what people wrote in a thread from the table; its sandbox must be destroyed before
    Forget(Forget),
}

/// What can be done with dead letters.
#[derive(Debug, Subcommand)]
pub enum DeadCommand {
    /// List them: what it is, whose, and what became of it
    List,
    /// Send a dead letter again, as it was; what has been done is not done twice
    Replay(Replay),
}

/// A task from a terminal.
#[derive(Debug, Args)]
pub struct Send {
    /// The channel in which the task is seen: the id of a text channel of Discord, or of a channel of Slack
    #[arg(long, value_name = "ID", value_parser = channel)]
    pub channel: TaskChannel,
    /// What is to be done; `-` reads it from standard input
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    pub prompt: String,
    /// The sandbox to work in, by its name; with --sandbox-provider it is made where there is none of that name
    #[arg(long, value_name = "NAME")]
    pub sandbox: Option<SandboxName>,
    /// A new sandbox of the thread's own, which is what it gets where none is named
    #[arg(long, conflicts_with = "sandbox")]
    pub new_sandbox: bool,
    /// The provider that a new sandbox is made at; without it the stack's first
    #[arg(long, value_name = "PROVIDER", value_parser = provider)]
    pub sandbox_provider: Option<String>,
    /// How agents are run in a new sandbox: opencode, compat, native or outside; without it the channel's, the tenant's
    /// or the stack's
    #[arg(long, value_name = "MODE", value_parser = |word: &str| usable(DefaultKind::Runtime, word))]
    pub sandbox_runtime: Option<String>,
    /// The repository that the sandbox is made with: owner/name, or an https address
    #[arg(long, value_name = "URL", value_parser = |word: &str| usable(DefaultKind::Repo, word))]
    pub sandbox_repo: Option<String>,
    /// The snapshot that a new sandbox begins with, as `bobbin sandbox snapshot --list` shows it
    #[arg(long, value_name = "ID", value_parser = |word: &str| beside(SandboxOption::Snapshot, word))]
    pub sandbox_snapshot: Option<String>,
    /// The model, as provider/model; without it the channel's, the tenant's or the stack's
    #[arg(long, value_name = "MODEL", value_parser = |word: &str| usable(DefaultKind::Model, word))]
    pub model: Option<String>,
    /// The agent's own mode or persona, by its name there
    #[arg(long, value_name = "AGENT", value_parser = |word: &str| usable(DefaultKind::Agent, word))]
    pub agent: Option<String>,
    /// What you are called in the thread; without it your login name
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Repeat a task of which it is not known whether it was sent, by the id that was shown: it is not sent twice
    #[arg(long, value_name = "ID")]
    pub id: Option<SendId>,
    /// Follow the turn to its end, with the agent's words as they come
    #[arg(short, long)]
    pub follow: bool,
    /// Follow for so long at most (90s, 30m, 2h)
    #[arg(long = "for", value_name = "TIME", default_value = "2h", value_parser = duration_ms, requires = "follow")]
    pub within_ms: u64,
}

/// A turn that is followed.
#[derive(Debug, Args)]
pub struct FollowTurn {
    /// As `bobbin thread list` shows it, or an end of that
    pub thread: GivenThread,
    /// The turn, by its id; without it the one that runs, else the last one
    #[arg(long, value_name = "ID")]
    pub turn: Option<String>,
    /// Follow for so long at most (90s, 30m, 2h)
    #[arg(long = "for", value_name = "TIME", default_value = "2h", value_parser = duration_ms)]
    pub within_ms: u64,
}

#[derive(Debug, Args)]
pub struct ListThreads {
    /// Only those in this phase
    #[arg(long, value_name = "PHASE", value_parser = phases())]
    pub phase: Option<Phase>,
    /// Only those of this tenant (discord:GUILD or slack:TEAM)
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<Tenant>,
    /// Only those in which nothing runs, and nothing has for so long (90s, 30m, 2h, 1d)
    #[arg(long, value_name = "TIME", value_parser = duration_ms)]
    pub idle: Option<u64>,
    /// Only those that the sweeper should have looked at by now
    #[arg(long)]
    pub due: bool,
    /// Those without a sandbox too: reads the whole table
    #[arg(long)]
    pub gone: bool,
    /// At most so many (1 to 1000)
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub limit: u16,
    /// Go on after this thread
    #[arg(long, value_name = "THREAD")]
    pub after: Option<ThreadKey>,
    /// Page after page until there are no more (at most 100,000 threads)
    #[arg(long, conflicts_with_all = ["limit", "after"])]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct Show {
    /// As `bobbin thread list` shows it, or an end of that
    pub thread: GivenThread,
    /// Show the beginning of what was asked and answered, too
    #[arg(long)]
    pub content: bool,
}

#[derive(Debug, Args)]
pub struct Replay {
    /// Its id, as the list shows it
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub id: Option<String>,
    /// Every one
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct Export {
    /// As `bobbin thread list` shows it, or an end of that
    pub thread: GivenThread,
}

#[derive(Debug, Args)]
pub struct Forget {
    /// As `bobbin thread list` shows it, or an end of that
    pub thread: GivenThread,
    /// Wait for the result for so long
    #[arg(long = "wait", value_name = "TIME", default_value = "5m", value_parser = duration_ms)]
    pub wait_ms: u64,
}

/// Parses a phase; the possible values complete in a shell.
fn phases() -> impl TypedValueParser<Value = Phase> {
    let known = |word: &str| Phase::ALL.into_iter().find(|phase| phase.word() == word);
    PossibleValuesParser::new(Phase::ALL.map(Phase::word))
        .try_map(move |word| known(&word).ok_or_else(|| "there is no such phase".to_owned()))
}

/// Parses the name of a known provider.
pub fn provider(word: &str) -> Result<String, String> {
    let word = beside(SandboxOption::Provider, word)?;
    if PROVIDERS.contains(&word.as_str()) {
        return Ok(word);
    }
    Err(format!("there are: {}", PROVIDERS.join(", ")))
}

fn beside(what: SandboxOption, word: &str) -> Result<String, String> {
    what.usable(word).map_err(|unusable| unusable.to_string())
}

/// Parses and normalises a value.
fn usable(kind: DefaultKind, word: &str) -> Result<String, String> {
    kind.usable(word).map_err(|unusable| unusable.to_string())
}
