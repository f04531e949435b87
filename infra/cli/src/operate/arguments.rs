//! The commands of operation, and what each takes.

use bobbin_core::ids::{Tenant, ThreadKey};
use bobbin_core::sandbox::Phase;

use clap::{Args, Subcommand};

use crate::time::duration_ms;

/// The commands of operation.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List threads: those that have a sandbox or a turn, or with --gone all
    Threads(Threads),
    /// List the sandboxes that the provider has, joined with the records
    Sandboxes(Sandboxes),
    /// Show a thread with its timeline
    Show(Show),
    /// Show the log of the OpenCode server in a thread's sandbox
    Log(Log),
    /// Stop a thread's sandbox and keep its disk
    Pause(Act),
    /// Bring a thread's paused sandbox back
    Resume(Act),
    /// Delete a thread's sandbox with its files; the thread is told
    Destroy(Act),
    /// List dead letters, or send them again
    Dead(Dead),
    /// Find sandboxes that belong to nobody, as the sweeper does (a dry run, unless told to destroy)
    Orphans(Orphans),
    /// Everything that is stored of a thread, as JSON
    Export(Export),
    /// Delete what people wrote in a thread from the table; its sandbox must be destroyed before
    Forget(Forget),
}

#[derive(Debug, Args)]
pub struct Threads {
    /// Only those in this phase
    #[arg(long, value_name = "PHASE", value_parser = phase)]
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
    /// As `bobbin threads` lists it
    pub thread: ThreadKey,
    /// Show the beginning of what was asked and answered, too
    #[arg(long)]
    pub content: bool,
}

#[derive(Debug, Args)]
pub struct Log {
    /// As `bobbin threads` lists it
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
    /// As `bobbin threads` lists it
    pub thread: ThreadKey,
    /// End the turn that runs, as somebody who presses Stop
    #[arg(long)]
    pub even_if_busy: bool,
    /// Wait for the result for so long (0s: not at all)
    #[arg(long = "wait", value_name = "TIME", default_value = "5m", value_parser = duration_ms)]
    pub wait_ms: u64,
}

#[derive(Debug, Args)]
pub struct Dead {
    #[command(subcommand)]
    pub what: Option<DeadWhat>,
}

#[derive(Debug, Subcommand)]
pub enum DeadWhat {
    /// Send a dead letter again, as it was; what has been done is not done twice
    Replay(Replay),
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
    /// As `bobbin threads` lists it
    pub thread: ThreadKey,
}

#[derive(Debug, Args)]
pub struct Forget {
    /// As `bobbin threads` lists it
    pub thread: ThreadKey,
    /// Wait for the result for so long
    #[arg(long = "wait", value_name = "TIME", default_value = "5m", value_parser = duration_ms)]
    pub wait_ms: u64,
}

fn phase(word: &str) -> Result<Phase, String> {
    let known = Phase::ALL.into_iter().find(|phase| phase.word() == word);
    known.ok_or_else(|| {
        let words = Phase::ALL.map(Phase::word).join(", ");
        format!("the phases are {words}")
    })
}
