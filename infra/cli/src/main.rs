//! `bobbin`: the command line. It sets up everything around a deployed Bobbin, shows what runs in it, and says what is to
//! become of that. `docs/OPERATE.md` has a section on each command of operation; `docs/PRODUCTION.md` describes those of set-up.
//!
//! Promised: no credential is ever printed, nor a part of one, but for the laptop stack's own where it is asked for; what
//! people wrote is shown only where that is asked for; every list and wait is bounded; every step of set-up looks first,
//! writes only what differs, and can be undone; whatever is to become of a thread is asked for in the thread's own group, as
//! everybody does. Deliberately absent: the deployment itself (`sam deploy`), and writes of records past the group's head.

// A reader that has gone is no reason to panic: `output` has the one writer.
#![deny(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod output;

mod agent;
mod arguments;
mod columns;
mod completions;
mod keys;
mod operate;
mod setup;
mod table;
mod target;
mod terminal;
mod time;

use std::process::ExitCode;

use crate::arguments::{Arguments, Command, Own};
use crate::output::{CommandError, Status};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Arguments { stack, json, command } =
        arguments::read(std::env::args_os()).unwrap_or_else(|refused| refused.exit());
    let done = match command {
        Some(Command::Setup(command)) => setup::run(stack, &command, json).await,
        Some(Command::Operate(command)) => {
            let output = operate::run(stack, &command, json).await;
            Ok(output.map_or_else(|error| error.tell(json), |output| output.print(json)))
        }
        Some(Command::Own(Own::Agent(command))) => agent::run(&command).await,
        Some(Command::Own(Own::Completions { shell })) => completions::print(shell),
        None => {
            tell_part!("{}", arguments::command().render_help());
            Ok(Status::Usage)
        }
    };
    let status = done.unwrap_or_else(|error: CommandError| {
        // Set-up prints its report as JSON, whatever went wrong.
        error.tell(false)
    });
    status.into()
}
