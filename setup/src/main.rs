//! `bobbin-setup`: sets up what is around Bobbin, one command for each thing. Every command may be repeated: it looks
//! first and writes only what differs.
//!
//! Exit codes: 0 done, 1 refused by the service, 2 used wrongly, 3 a dry run found something to do.

mod discord;
mod slack;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A dry run found something to do.
const TO_DO: u8 = 3;

/// Sets up what is around Bobbin. Every command may be repeated: it looks first and writes only what differs.
#[derive(Debug, Parser)]
#[command(name = "bobbin-setup", version)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The Discord application
    #[command(subcommand)]
    Discord(discord::What),
    /// The Slack app
    #[command(subcommand)]
    Slack(slack::What),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let done = match Arguments::parse().what {
        What::Discord(what) => discord::run(&what).await,
        What::Slack(what) => slack::run(&what),
    };
    match done {
        Ok(done) => {
            println!("{}", done.words);
            ExitCode::from(if done.to_do { TO_DO } else { 0 })
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// What came of a command.
#[derive(Debug)]
struct Done {
    /// For the person.
    words: String,
    /// Something is left to do, because it was a dry run.
    to_do: bool,
}
