//! `bobbin-setup`: sets up everything around a deployed Bobbin. Without a command it does every step, numbered and in
//! order; each step is a command of its own too, looks first, writes only what differs, and can be undone.
//!
//! Exit codes: 0 done, 1 something is wrong or was refused, 2 used wrongly, 3 something is left to do (a dry run found it,
//! or the stack has to be deployed first). No key is ever printed, nor a part of one.

mod all;
mod check;
mod discord;
mod keys;
mod place;
mod report;
mod secrets;
mod slack;
mod snapshot;
mod trial;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::place::{Around, Place};
use crate::report::Report;

/// Sets up everything around a deployed Bobbin. Without a command it does every step; every step may be repeated: it looks
/// first and writes only what differs.
#[derive(Debug, Parser)]
#[command(name = "bobbin-setup", version)]
struct Arguments {
    #[command(flatten)]
    around: Around,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Do every step (so does no command at all)
    All(all::All),
    /// Try each key, and say what is wrong with it
    Check,
    /// Store keys in the stack's secrets, or take them out again
    Secrets(secrets::Secrets),
    /// The Discord application
    #[command(subcommand)]
    Discord(discord::What),
    /// The Slack app
    #[command(subcommand)]
    Slack(slack::What),
    /// Build and activate the snapshot that sandboxes start from, or remove it
    Snapshot(snapshot::Wanted),
    /// Send a test turn, follow it to its end, and clean up
    Test(trial::Wanted),
    /// Undo every step
    Undo(all::Undo),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Arguments { around, what } = Arguments::parse();
    let what = what.unwrap_or_else(everything);
    let place = Place::new(around);
    let mut report = Report::default();
    let done = match &what {
        What::All(wanted) => {
            report = all::run(&place, wanted).await;
            Ok(())
        }
        What::Undo(wanted) => {
            report = all::undo(&place, wanted).await;
            Ok(())
        }
        What::Check => {
            check::stack(&place, &mut report).await;
            check::run(&place, &mut report).await;
            Ok(())
        }
        What::Secrets(wanted) => secrets::run(&place, &mut report, wanted).await,
        What::Discord(what) => discord::run(&place, &mut report, what).await,
        What::Slack(what) => slack::run(&place, what).await,
        What::Snapshot(wanted) => snapshot::run(&place, &mut report, wanted).await,
        What::Test(wanted) => trial::run(&place, &mut report, wanted).await,
    };
    match done {
        Ok(()) => report.code(),
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// The command that stands for none; what the environment says of it counts.
fn everything() -> What {
    let named = Arguments::parse_from(["bobbin-setup", "all"]);
    named.what.expect("the command was named")
}
