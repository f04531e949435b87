//! Arguments of the operation commands.

mod environment;
mod sandbox;

use bobbin_app::providers::PROVIDERS;
use bobbin_core::base::ids::{SandboxName, Tenant, ThreadKey};
use bobbin_core::records::sandbox::Phase;
use bobbin_core::shown::sandboxes::SandboxOption;
use bobbin_core::tenant::repositories::usable_number;
use bobbin_core::tenant::settings::DefaultKind;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};

pub use self::environment::{
    AskBuild, EnvironmentCommand, ForgetPrebuilds, ListPrebuilds, ShowEnvironment, repository,
};
pub use self::sandbox::{
    Act, Connect, Create, Destroy, GivenSandbox, ListSandboxes, OpenTools, Orphans, SandboxCommand,
    SandboxLog, SetupKey, TakeSnapshot,
};
use super::find_thread::GivenThread;
use super::task::{SendId, TaskChannel, channel};
use crate::time::duration_ms;

/// The commands of operation: a noun, then a verb.
#[derive(Debug, Subcommand)]
pub enum OperateCommand {
    /// Send a task to a channel: it gets a thread there, and the agent works in it
    Send(Send),
    /// List, show and follow threads; export or forget the stored data of one
    #[command(subcommand)]
    Thread(Thread),
    /// List, create, stop, start and destroy sandboxes; snapshots, connections of threads, logs, keys, orphans, hosts
    #[command(subcommand)]
    Sandbox(SandboxCommand),
    /// Show how a repository's project is made ready, and try it; list, build and forget its prebuilds
    #[command(subcommand)]
    Environment(EnvironmentCommand),
    /// Show and open the pull request of a thread's work
    #[command(subcommand)]
    Pr(PrCommand),
    /// Show what was spent on models, by months; forget the sums of a person
    Usage(ShowUsage),
    /// List dead letters, and send them again
    #[command(subcommand)]
    Dead(DeadCommand),
}

/// What can be done with a thread's pull request.
#[derive(Debug, Subcommand)]
pub enum PrCommand {
    /// Show the thread's branch, its pull request, and what was shown last
    Show(ShowPullRequest),
    /// Show in the thread what would be published; with --yes push it, and open or update the pull request
    Open(OpenPullRequest),
}

#[derive(Debug, Args)]
pub struct ShowPullRequest {
    /// The thread, as `bobbin thread list` shows it, or the end of its key
    pub thread: GivenThread,
}

#[derive(Debug, Args)]
pub struct OpenPullRequest {
    /// The thread, as `bobbin thread list` shows it, or the end of its key
    pub thread: GivenThread,
    /// Subject of the pull request; by default made of the work
    #[arg(long, value_name = "WORDS")]
    pub subject: Option<String>,
    /// Text of the pull request; by default made of the agent's answer
    #[arg(long, value_name = "WORDS")]
    pub body: Option<String>,
    /// Push what is shown, and open the pull request
    #[arg(long)]
    pub yes: bool,
    /// Wait at most this long for the end (90s, 30m)
    #[arg(long = "wait", value_name = "TIME", default_value = "3m", value_parser = duration_ms)]
    pub wait_ms: u64,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ShowUsage {
    #[command(subcommand)]
    pub command: Option<UsageCommand>,
    /// Only those of this tenant (discord:GUILD or slack:TEAM)
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<Tenant>,
    /// Print comma-separated values
    #[arg(long)]
    pub csv: bool,
}

/// What can be done with stored sums.
#[derive(Debug, Subcommand)]
pub enum UsageCommand {
    /// Delete the sums of a person: what they have spent on each day
    Forget(ForgetSums),
}

#[derive(Debug, Args)]
pub struct ForgetSums {
    /// The person, by the chat's id
    #[arg(long, value_name = "ID")]
    pub person: String,
    /// The server or workspace (discord:GUILD or slack:TEAM)
    #[arg(long, value_name = "TENANT")]
    pub tenant: Tenant,
}

/// What can be done with threads.
#[derive(Debug, Subcommand)]
pub enum Thread {
    /// List threads: those that have a sandbox or a turn, or with --gone all
    List(ListThreads),
    /// Show a thread with its timeline
    Show(Show),
    /// Follow a thread's running turn to its end, with the agent's words as they arrive
    Follow(FollowTurn),
    /// Print all stored data of a thread, as JSON
    Export(Export),
    /// Delete what people wrote in a thread from the table; destroy its sandbox first
    Forget(Forget),
}

/// What can be done with dead letters.
#[derive(Debug, Subcommand)]
pub enum DeadCommand {
    /// List them: what each one is, whose it is, and what happened to it
    List,
    /// Send a dead letter again unchanged; nothing is done twice
    Replay(Replay),
}

/// A task from a terminal.
#[derive(Debug, Args)]
pub struct Send {
    /// The channel that shows the task: the id of a Discord text channel or of a Slack channel
    #[arg(long, value_name = "ID", value_parser = channel)]
    pub channel: TaskChannel,
    /// What to do; `-` reads it from standard input
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    pub prompt: String,
    /// The sandbox to work in, by name; with --sandbox-provider it is created if there is none of that name
    #[arg(long, value_name = "NAME")]
    pub sandbox: Option<SandboxName>,
    /// Use a new sandbox for this thread alone (the default without --sandbox)
    #[arg(long, conflicts_with = "sandbox")]
    pub new_sandbox: bool,
    /// The provider of a new sandbox; by default the one set for the channel, the tenant or the stack
    #[arg(long, value_name = "PROVIDER", value_parser = provider)]
    pub sandbox_provider: Option<String>,
    /// How agents run in a new sandbox: opencode, compat, native or outside; by default as set for the channel, the
    /// tenant or the stack
    #[arg(long, value_name = "MODE", value_parser = |word: &str| usable(DefaultKind::Runtime, word))]
    pub sandbox_runtime: Option<String>,
    /// The repository of the sandbox: owner/name or an https address
    #[arg(long, value_name = "URL", value_parser = |word: &str| usable(DefaultKind::Repo, word))]
    pub sandbox_repo: Option<String>,
    /// Number of a pull request in that repository, to work from or to review
    #[arg(long, value_name = "N", value_parser = number)]
    pub sandbox_pr: Option<u64>,
    /// The snapshot to start a new sandbox from, as `bobbin sandbox snapshot --list` shows it
    #[arg(long, value_name = "ID", value_parser = |word: &str| beside(SandboxOption::Snapshot, word))]
    pub sandbox_snapshot: Option<String>,
    /// The model, as provider/model; by default the one set for the channel, the tenant or the stack
    #[arg(long, value_name = "MODEL", value_parser = |word: &str| usable(DefaultKind::Model, word))]
    pub model: Option<String>,
    /// The agent, or a mode of it, by name
    #[arg(long, value_name = "AGENT", value_parser = |word: &str| usable(DefaultKind::Agent, word))]
    pub agent: Option<String>,
    /// Your name in the thread; by default your login name
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Repeat a task that may not have been sent, by the id that was shown: it is never sent twice
    #[arg(long, value_name = "ID")]
    pub id: Option<SendId>,
    /// Follow the turn to its end, with the agent's words as they arrive
    #[arg(short, long)]
    pub follow: bool,
    /// Follow for at most this long (90s, 30m, 2h)
    #[arg(long = "for", value_name = "TIME", default_value = "2h", value_parser = duration_ms, requires = "follow")]
    pub within_ms: u64,
}

/// A turn that is followed.
#[derive(Debug, Args)]
pub struct FollowTurn {
    /// The thread, as `bobbin thread list` shows it, or the end of its key
    pub thread: GivenThread,
    /// The turn, by its id; by default the running one, else the last one
    #[arg(long, value_name = "ID")]
    pub turn: Option<String>,
    /// Follow for at most this long (90s, 30m, 2h)
    #[arg(long = "for", value_name = "TIME", default_value = "2h", value_parser = duration_ms)]
    pub within_ms: u64,
}

#[derive(Debug, Args)]
pub struct ListThreads {
    /// Only threads in this phase
    #[arg(long, value_name = "PHASE", value_parser = phases())]
    pub phase: Option<Phase>,
    /// Only those of this tenant (discord:GUILD or slack:TEAM)
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<Tenant>,
    /// Only threads in which nothing has run for this long (90s, 30m, 2h, 1d)
    #[arg(long, value_name = "TIME", value_parser = duration_ms)]
    pub idle: Option<u64>,
    /// Only threads whose sweep is overdue
    #[arg(long)]
    pub due: bool,
    /// Also threads without a sandbox: reads the whole table
    #[arg(long)]
    pub gone: bool,
    /// At most this many (1 to 1000)
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub limit: u16,
    /// Continue after this thread
    #[arg(long, value_name = "THREAD")]
    pub after: Option<ThreadKey>,
    /// Read all pages (at most 100,000 threads)
    #[arg(long, conflicts_with_all = ["limit", "after"])]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct Show {
    /// The thread, as `bobbin thread list` shows it, or the end of its key
    pub thread: GivenThread,
    /// Also show the beginning of each prompt and answer
    #[arg(long)]
    pub content: bool,
}

#[derive(Debug, Args)]
pub struct Replay {
    /// The id of the dead letter, as the list shows it
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub id: Option<String>,
    /// All dead letters
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct Export {
    /// The thread, as `bobbin thread list` shows it, or the end of its key
    pub thread: GivenThread,
}

#[derive(Debug, Args)]
pub struct Forget {
    /// The thread, as `bobbin thread list` shows it, or the end of its key
    pub thread: GivenThread,
    /// Wait this long for the result
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

/// Parses the number of a pull request.
fn number(word: &str) -> Result<u64, &'static str> {
    usable_number(word).ok_or("a pull request has a number, for example 123")
}

/// Parses and normalises a value.
fn usable(kind: DefaultKind, word: &str) -> Result<String, String> {
    kind.usable(word).map_err(|unusable| unusable.to_string())
}
