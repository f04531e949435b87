//! `bobbin-setup`: sets up everything around a deployed Bobbin. Without a command it does every step, numbered and in
//! order; each step is a command of its own too, looks first, writes only what differs, and can be undone.
//!
//! Exit codes: 0 done, 1 something is wrong or was refused, 2 used wrongly, 3 something is left to do (a dry run found it,
//! or the stack has to be deployed first). No key is ever printed, nor a part of one.

mod all;
mod check;
mod discord;
mod environment;
mod event;
mod keys;
mod place;
mod report;
mod secrets;
mod slack;
mod snapshot;
mod trial;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

use crate::place::{Around, Place};
use crate::report::Report;

/// The command that no command means.
const ALL: &str = "all";

/// Sets up everything around a deployed Bobbin. Without a command it does every step, with the options of `all`; every step
/// may be repeated: it looks first and writes only what differs.
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
    /// Write env.json: what the functions of the stack are given by `sam local invoke --env-vars`
    Env(environment::Wanted),
    /// Print the key of the laptop stack's AWS for `sam local invoke`: eval "$(bobbin-setup --laptop credentials)"
    Credentials,
    /// Make a file of events/ an event of this stack and of now: signed, or with a receipt of its queue
    Event(event::Wanted),
    /// Undo every step
    Undo(all::Undo),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Arguments { around, what } =
        read(std::env::args_os()).unwrap_or_else(|refused| refused.exit());
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
        What::Env(wanted) => environment::run(&place, &mut report, wanted).await,
        What::Credentials => environment::credentials(&place),
        What::Event(wanted) => event::run(&place, wanted).await,
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

/// Reads the command line. Options of `all` need not name it, because it is what no command means.
fn read(line: impl IntoIterator<Item = OsString>) -> Result<Arguments, clap::Error> {
    let line: Vec<OsString> = line.into_iter().collect();
    Arguments::try_parse_from(&line).or_else(|refused| {
        let mut all = line;
        all.insert(1, ALL.into());
        match refused.kind() {
            ErrorKind::UnknownArgument => Arguments::try_parse_from(all).map_err(|_| refused),
            _ => Err(refused),
        }
    })
}

/// The command that stands for none; what the environment says of it counts.
fn everything() -> What {
    let named = Arguments::parse_from(["bobbin-setup", ALL]);
    named.what.expect("the command was named")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Result<Arguments, clap::Error> {
        read(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn options_of_every_step_need_no_command_and_never_reach_another_one() {
        for line in [
            "bobbin-setup --dry-run",
            "bobbin-setup all --dry-run",
            "bobbin-setup --stack mine --dry-run --from-env",
        ] {
            let read = words(line).expect(line);
            assert!(
                matches!(read.what, Some(What::All(ref wanted)) if wanted.dry_run),
                "{line}: {read:?}"
            );
        }
        let read = words("bobbin-setup --stack mine").expect("no command");
        assert!(read.what.is_none() && read.around.stack == "mine");
        for (line, named) in [
            ("bobbin-setup --dry-run secrets", "--dry-run"),
            ("bobbin-setup check --dry-run", "--dry-run"),
            ("bobbin-setup --dry", "--dry"),
            ("bobbin-setup chekc", "chekc"),
        ] {
            let refused = words(line).expect_err(line).to_string();
            assert!(refused.contains(&format!("'{named}'")), "{line}: {refused}");
        }
    }
}
