//! The commands of operation, and what each takes.

use bobbin_core::ids::{Tenant, ThreadKey};
use bobbin_core::sandbox::Phase;
use bobbin_core::settings::Kind;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};

use super::host::Setup;
use super::send::{Channel, SendId, channel};
use crate::time::duration_ms;

/// The commands of operation: a noun, then what is to be done with it.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Give a task in a channel: it gets a thread there, and the agent works in it
    Send(Send),
    /// List, show and follow threads; export and forget what is stored of one
    #[command(subcommand)]
    Thread(Thread),
    /// List, stop, start and destroy sandboxes; read their logs, find those of nobody, prepare hosts
    #[command(subcommand)]
    Sandbox(Sandbox),
    /// List dead letters, and send them again
    #[command(subcommand)]
    Dead(Dead),
}

/// What can be done with threads.
#[derive(Debug, Subcommand)]
pub enum Thread {
    /// List threads: those that have a sandbox or a turn, or with --gone all
    List(Threads),
    /// Show a thread with its timeline
    Show(Show),
    /// Follow the turn that runs in a thread to its end, with the agent's words as they come
    Follow(Follow),
    /// Everything that is stored of a thread, as JSON
    Export(Export),
    /// Delete what people wrote in a thread from the table; its sandbox must be destroyed before
    Forget(Forget),
}

/// What can be done with sandboxes.
#[derive(Debug, Subcommand)]
pub enum Sandbox {
    /// List the sandboxes that the provider has, joined with the records
    List(Sandboxes),
    /// Stop a thread's sandbox and keep its disk
    Stop(Act),
    /// Bring a thread's stopped sandbox back, with its server
    Start(Act),
    /// Delete a thread's sandbox with its files; the thread is told
    Destroy(Act),
    /// Show the log of the OpenCode server in a thread's sandbox
    Log(Log),
    /// Find sandboxes that belong to nobody, as the sweeper does (a dry run, unless told to destroy)
    Orphans(Orphans),
    /// Write a script that prepares a machine of one's own for sandboxes
    #[command(subcommand)]
    Setup(Setup),
}

/// What can be done with dead letters.
#[derive(Debug, Subcommand)]
pub enum Dead {
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
    pub channel: Channel,
    /// What is to be done; `-` reads it from standard input
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    pub prompt: String,
    /// The repository that the sandbox is made with: owner/name, or an https address
    #[arg(long, value_name = "URL", value_parser = |word: &str| usable(Kind::Repo, word))]
    pub sandbox_repo: Option<String>,
    /// The model, as provider/model; without it the channel's, the tenant's or the stack's
    #[arg(long, value_name = "MODEL", value_parser = |word: &str| usable(Kind::Model, word))]
    pub model: Option<String>,
    /// The agent's own mode or persona, by its name there
    #[arg(long, value_name = "AGENT", value_parser = |word: &str| usable(Kind::Agent, word))]
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
pub struct Follow {
    /// As `bobbin thread list` shows it
    pub thread: ThreadKey,
    /// The turn, by its id; without it the one that runs, else the last one
    #[arg(long, value_name = "ID")]
    pub turn: Option<String>,
    /// Follow for so long at most (90s, 30m, 2h)
    #[arg(long = "for", value_name = "TIME", default_value = "2h", value_parser = duration_ms)]
    pub within_ms: u64,
}

#[derive(Debug, Args)]
pub struct Threads {
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
pub struct Sandboxes {
    /// Only those of this tenant
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<Tenant>,
}

#[derive(Debug, Args)]
pub struct Show {
    /// As `bobbin thread list` shows it
    pub thread: ThreadKey,
    /// Show the beginning of what was asked and answered, too
    #[arg(long)]
    pub content: bool,
}

#[derive(Debug, Args)]
pub struct Log {
    /// As `bobbin thread list` shows it
    pub thread: ThreadKey,
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
pub struct Act {
    /// As `bobbin thread list` shows it
    pub thread: ThreadKey,
    /// End the turn that runs, as somebody who presses Stop
    #[arg(long)]
    pub even_if_busy: bool,
    /// Wait for the result for so long (0s: not at all)
    #[arg(long = "wait", value_name = "TIME", default_value = "5m", value_parser = duration_ms)]
    pub wait_ms: u64,
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
pub struct Orphans {
    /// Delete them
    #[arg(long)]
    pub destroy: bool,
}

#[derive(Debug, Args)]
pub struct Export {
    /// As `bobbin thread list` shows it
    pub thread: ThreadKey,
}

#[derive(Debug, Args)]
pub struct Forget {
    /// As `bobbin thread list` shows it
    pub thread: ThreadKey,
    /// Wait for the result for so long
    #[arg(long = "wait", value_name = "TIME", default_value = "5m", value_parser = duration_ms)]
    pub wait_ms: u64,
}

/// The phases by their words, which a shell can complete.
fn phases() -> impl TypedValueParser<Value = Phase> {
    let known = |word: &str| Phase::ALL.into_iter().find(|phase| phase.word() == word);
    PossibleValuesParser::new(Phase::ALL.map(Phase::word))
        .try_map(move |word| known(&word).ok_or_else(|| "there is no such phase".to_owned()))
}

/// In the form in which it can be used.
fn usable(kind: Kind, word: &str) -> Result<String, String> {
    kind.usable(word).map_err(|unusable| unusable.to_string())
}
