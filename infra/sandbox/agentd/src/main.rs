//! `bobbin-agentd`: runs in a sandbox beside coding agents, gives all of them one session API, and survives what kills
//! them.
//!
//! Promised: every event is on the disk before it is sent; after `kill -9`, a stop of the sandbox or a full disk, sessions,
//! offsets and turns are what they were, and a turn that was cut says so; a prompt with a turn's id runs once, however
//! often it is sent; nothing that an agent started outlives the daemon.
//! Deliberately absent: TLS (a preview or a tunnel stands in front), and walls between the agent and the daemon: both are
//! the same user in one sandbox, so an ask is a courtesy.
//!
//! Two processes: one reaps, the other serves. The reaping one adopts whatever loses its parent below it, ends all of it
//! when the daemon ends, and starts the serving one anew when that was killed; the serving one ends with the reaping one.

mod agents;
mod api;
mod arguments;
mod changes;
mod connections;
mod daemon_log;
mod driver;
mod host;
mod limits;
mod log;
mod names;
mod nudge;
mod plain;
mod process;
mod reaper;
mod serve;
mod session;
mod sessions;
mod state;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Install};

fn main() -> ExitCode {
    if let Some(wanted) = Install::asked(std::env::args_os()) {
        return installed(&wanted);
    }
    let arguments = Arguments::parse();
    let (role, done) = match arguments.serve {
        Some(reaper) => ("bobbin-agentd (serving)", serve::run(arguments, reaper)),
        None => ("bobbin-agentd", reaper::run(arguments)),
    };
    match done {
        Ok(status) => status,
        Err(error) => {
            eprintln!("{role}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn installed(wanted: &Install) -> ExitCode {
    match agents::install(&wanted.agents, &wanted.into, wanted.pinned) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bobbin-agentd install: {error}");
            ExitCode::FAILURE
        }
    }
}
