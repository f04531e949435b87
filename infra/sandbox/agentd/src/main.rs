//! `bobbin-agentd`: runs in a sandbox beside coding agents, gives them one session API, and survives whatever kills
//! them.
//!
//! Promised: every event is on disk before it is sent; after `kill -9`, a stop of the sandbox or a full disk, sessions,
//! offsets and turns are unchanged, and a turn that was cut off says so; a prompt with a turn id runs once, however
//! often it is sent; nothing that an agent started outlives the daemon. Deliberately absent: TLS (a preview or a tunnel
//! provides it), and isolation between the agent and the daemon: both are the same user in one sandbox, so an ask is a
//! courtesy.
//!
//! Two processes: a reaper and a server. The reaper adopts orphaned descendants, ends all of them when the daemon ends,
//! and restarts the server after it was killed; the server ends with the reaper.

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

use crate::arguments::{DaemonArguments, Install};

fn main() -> ExitCode {
    if let Some(wanted) = Install::asked(std::env::args_os()) {
        return installed(&wanted);
    }
    let arguments = DaemonArguments::parse();
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
