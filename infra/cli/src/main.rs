//! `bobbin`: the command line. It sets up everything around a deployed Bobbin, and shows and operates what runs in it.
//! `docs/OPERATE.md` has a section on each operation command; `docs/PRODUCTION.md` describes set-up.
//!
//! Promised: no credential is ever printed, in whole or in part, except the laptop stack's own on request; what people
//! wrote is shown only on request; every list and wait is bounded; every set-up step checks first, writes only
//! differences, and can be undone; every change to a thread goes through the thread's own group, like anybody's.
//! Deliberately absent: the deployment itself (`sam deploy`), and writes to records that bypass the group.

// A closed pipe must not panic: `output` is the only writer.
#![deny(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod output;

mod agent;
mod arguments;
mod columns;
mod completions;
mod following;
mod keys;
mod laptop;
mod operate;
mod setup;
mod table;
mod target;
mod terminal;
mod time;

use std::process::ExitCode;

use crate::arguments::{Arguments, CliCommand, OwnCommand};
use crate::output::{CommandError, ExitStatus};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Arguments { stack, json, command } =
        arguments::read(std::env::args_os()).unwrap_or_else(|refused| refused.exit());
    let done = match command {
        Some(CliCommand::Setup(command)) => setup::run(stack, &command, json).await,
        Some(CliCommand::Operate(command)) => {
            let output = operate::run(stack, &command, json).await;
            Ok(output.map_or_else(|error| error.tell(json), |output| output.print(json)))
        }
        Some(CliCommand::Own(OwnCommand::Agent(command))) => agent::run(&command).await,
        Some(CliCommand::Own(OwnCommand::Completions { shell })) => completions::print(shell),
        None => {
            tell_part!("{}", arguments::command().render_help());
            Ok(ExitStatus::Usage)
        }
    };
    let status = done.unwrap_or_else(|error: CommandError| {
        // Set-up prints its JSON report itself, even on failure.
        error.tell(false)
    });
    status.into()
}
