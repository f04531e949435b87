//! Set-up around a deployed stack. `bobbin setup` does every step in order; each step is a command of its own too.

mod account;
mod all;
mod check;
mod discord;
mod environment;
mod event;
mod github;
mod image;
mod report;
mod secrets;
mod slack;
mod smoke_test;
mod snapshot;

use clap::Subcommand;

use self::report::Report;
use crate::output::{CommandError, ExitStatus};
use crate::target::{StackOptions, StackTarget};

/// Stack of `samconfig.toml`'s default environment; used if no other is named.
const DEFAULT_STACK: &str = "bobbin";

/// The commands of set-up.
#[derive(Debug, Subcommand)]
pub enum SetupCommand {
    /// Do every step of set-up: check first, write only what differs
    #[command(alias = "all")]
    Setup(all::All),
    /// Try each key, and say what is wrong
    Check,
    /// Store keys in the stack's secrets, or remove them
    Secrets(secrets::SecretsOptions),
    /// The Discord application
    #[command(subcommand)]
    Discord(discord::DiscordSetup),
    /// The Slack app
    #[command(subcommand)]
    Slack(slack::SlackSetup),
    /// The GitHub App
    #[command(subcommand, name = "github")]
    GitHub(github::GitHubSetup),
    /// Build and activate the snapshot that sandboxes start from, or remove it
    Snapshot(snapshot::SnapshotOptions),
    /// Send a test turn, follow it to its end, and clean up
    Test(smoke_test::TestOptions),
    /// Undo set-up, without the snapshot
    Undo(all::Undo),
    /// Write env.json: the functions' variables for `sam local invoke --env-vars`
    Env(environment::EnvironmentOptions),
    /// Turn a file in events/ into a current event of this stack: signed, or with a receipt of its queue
    Event(event::EventOptions),
    /// Print the laptop stack's AWS credentials for `sam local invoke`: eval "$(bobbin --laptop credentials)"
    Credentials,
    /// Print the address of the laptop stack's chat page, with the key that opens it: bobbin --laptop page
    Page,
}

impl SetupCommand {
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
    command: &SetupCommand,
    json: bool,
) -> Result<ExitStatus, CommandError> {
    let target = StackTarget::new(stack, Some(DEFAULT_STACK))?;
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
    target: &StackTarget,
    report: &mut Report,
    command: &SetupCommand,
    json: bool,
) -> Result<(), String> {
    match command {
        SetupCommand::Setup(options) => *report = all::run(target, options, json).await,
        SetupCommand::Undo(options) => *report = all::undo(target, options, json).await,
        SetupCommand::Check => {
            check::stack(target, report).await;
            check::run(target, report).await;
        }
        SetupCommand::Secrets(options) => secrets::run(target, report, options).await?,
        SetupCommand::Discord(command) => discord::run(target, report, command).await?,
        SetupCommand::Slack(command) => slack::run(target, command).await?,
        SetupCommand::GitHub(command) => github::run(target, report, command).await?,
        SetupCommand::Snapshot(options) => {
            snapshot::run(target, report, options).await?;
        }
        SetupCommand::Test(options) => smoke_test::run(target, report, options).await?,
        SetupCommand::Env(options) => environment::run(target, report, options).await?,
        SetupCommand::Event(options) => event::run(target, options).await?,
        SetupCommand::Credentials => environment::credentials(target)?,
        SetupCommand::Page => environment::page(target)?,
    }
    Ok(())
}
