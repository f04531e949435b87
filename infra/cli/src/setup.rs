//! Set-up around a deployed stack. `bobbin setup` does every step in order; each step is a command of its own too.

mod account;
mod all;
mod check;
mod discord;
mod environment;
mod event;
mod image;
mod report;
mod secrets;
mod slack;
mod smoke_test;
mod snapshot;

use clap::Subcommand;

use self::report::Report;
use crate::output::{CommandError, Status};
use crate::target::{StackOptions, Target};

/// Stack of `samconfig.toml`'s default environment; used if no other is named.
const DEFAULT_STACK: &str = "bobbin";

/// The commands of set-up.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Do every step of set-up: look first, write only what differs
    #[command(alias = "all")]
    Setup(all::All),
    /// Try each key, and say what is wrong with it
    Check,
    /// Store keys in the stack's secrets, or take them out again
    Secrets(secrets::Secrets),
    /// The Discord application
    #[command(subcommand)]
    Discord(discord::Command),
    /// The Slack app
    #[command(subcommand)]
    Slack(slack::Command),
    /// Build and activate the snapshot that sandboxes start from, or remove it
    Snapshot(snapshot::Options),
    /// Send a test turn, follow it to its end, and clean up
    Test(smoke_test::Options),
    /// Undo every step of set-up
    Undo(all::Undo),
    /// Write env.json: what the functions of the stack are given by `sam local invoke --env-vars`
    Env(environment::Options),
    /// Make a file of events/ an event of this stack and of now: signed, or with a receipt of its queue
    Event(event::Options),
    /// Print the key of the laptop stack's AWS for `sam local invoke`: eval "$(bobbin --laptop credentials)"
    Credentials,
    /// Print the address of the laptop stack's chat page, with the key that opens it: bobbin --laptop page
    Page,
}

impl Command {
    /// Whether it prints a document of its own, which has no JSON object.
    #[must_use]
    pub fn prints_a_document(&self) -> bool {
        match self {
            Self::Slack(_) | Self::Event(_) | Self::Credentials | Self::Page => true,
            Self::Env(options) => options.is_printed(),
            _ => false,
        }
    }
}

/// Runs a command.
///
/// # Errors
/// What failed; with advice.
pub async fn run(
    stack: StackOptions,
    command: &Command,
    json: bool,
) -> Result<Status, CommandError> {
    let target = Target::new(stack, Some(DEFAULT_STACK))?;
    let mut report = Report::default().kept_for_json(json);
    let done = step(&target, &mut report, command, json).await;
    // On failure the report so far is still printed.
    if let Some(told) = report.json() {
        // A closed pipe is not an error.
        let _ = crate::output::print(&format!("{told:#}"));
    }
    done?;
    Ok(report.status())
}

async fn step(
    target: &Target,
    report: &mut Report,
    command: &Command,
    json: bool,
) -> Result<(), String> {
    match command {
        Command::Setup(options) => *report = all::run(target, options, json).await,
        Command::Undo(options) => *report = all::undo(target, options, json).await,
        Command::Check => {
            check::stack(target, report).await;
            check::run(target, report).await;
        }
        Command::Secrets(options) => secrets::run(target, report, options).await?,
        Command::Discord(command) => discord::run(target, report, command).await?,
        Command::Slack(command) => slack::run(target, command).await?,
        Command::Snapshot(options) => snapshot::run(target, report, options).await?,
        Command::Test(options) => smoke_test::run(target, report, options).await?,
        Command::Env(options) => environment::run(target, report, options).await?,
        Command::Event(options) => event::run(target, options).await?,
        Command::Credentials => environment::credentials(target)?,
        Command::Page => environment::page(target)?,
    }
    Ok(())
}
