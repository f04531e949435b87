//! The command line.

use std::path::PathBuf;

use bobbin_core::ids::ThreadKey;
use clap::{Args, Parser, Subcommand};

use crate::time::duration_ms;

const AFTER: &str = "\
Exit codes: 0 done, 1 refused or failed, 2 used wrongly, 3 nothing found (or a dry run found something).

A THREAD is written as it is stored: discord:GUILD:THREAD or slack:TEAM:CHANNEL:TS (see `threads`).
AWS is reached with the credentials and region of your terminal (AWS_PROFILE, AWS_REGION).
Every command is described in docs/OPERATE.md.";

/// What runs in a stack of Bobbin, and what is to become of it.
#[derive(Debug, Parser)]
#[command(name = "bobbin-operate", version, after_help = AFTER)]
pub struct Arguments {
    #[command(flatten)]
    pub place: Place,
    /// Answer with one JSON object, for programs
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub what: What,
}

/// Which stack.
#[derive(Debug, Args)]
pub struct Place {
    /// Name of the deployed stack
    #[arg(long, global = true, env = "BOBBIN_STACK", value_name = "NAME")]
    pub stack: Option<String>,
    /// The laptop stack that runs beside this (`cargo run`)
    #[arg(long, global = true, conflicts_with = "stack")]
    pub laptop: bool,
    /// State folder of the laptop stack, if it is not .bobbin/state of the checkout
    #[arg(long, global = true, value_name = "DIR", requires = "laptop")]
    pub state_dir: Option<PathBuf>,
    /// Address that stands for AWS's own, such as an emulator's
    #[arg(long, global = true, value_name = "URL", conflicts_with = "laptop")]
    pub endpoint: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum What {
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
    pub phase: Option<bobbin_core::session::Phase>,
    /// Only those of this tenant (discord:GUILD or slack:TEAM)
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<String>,
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
    pub tenant: Option<String>,
}

#[derive(Debug, Args)]
pub struct Show {
    pub thread: ThreadKey,
    /// Show the beginning of what was asked and answered, too
    #[arg(long)]
    pub content: bool,
}

#[derive(Debug, Args)]
pub struct Log {
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
    pub thread: ThreadKey,
}

#[derive(Debug, Args)]
pub struct Forget {
    pub thread: ThreadKey,
    /// Wait for the result for so long
    #[arg(long = "wait", value_name = "TIME", default_value = "5m", value_parser = duration_ms)]
    pub wait_ms: u64,
}

fn phase(word: &str) -> Result<bobbin_core::session::Phase, String> {
    let all = bobbin_core::session::Phase::ALL;
    let words = || all.map(bobbin_core::session::Phase::word).join(", ");
    all.into_iter()
        .find(|phase| phase.word() == word)
        .ok_or_else(|| format!("the phases are {}", words()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The commands of this program that a text quotes: whole lines of code, and code within a line.
    fn quoted(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut block = false;
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                block = !block;
            } else if block {
                let line = line.trim().trim_start_matches("$ ");
                found.push(line.to_owned());
            } else {
                found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
            }
        }
        found.retain(|code| {
            code.starts_with("bobbin-operate ") || code.contains("-p bobbin-operate -- ")
        });
        found
    }

    /// As a shell would, with something in place of what the reader fills in.
    fn words(command: &str) -> Vec<String> {
        let command = command
            .split_once("-p bobbin-operate -- ")
            .map_or(command, |(_, rest)| rest)
            .trim_start_matches("bobbin-operate ");
        let command = command.split(['#', '|', '>']).next().unwrap_or_default();
        let filled = |word: &str| match word {
            "THREAD" | "$THREAD" => "discord:1:2".to_owned(),
            "$STACK" => "bobbin-prod".to_owned(),
            other => other.to_owned(),
        };
        std::iter::once("bobbin-operate".to_owned())
            .chain(command.split_whitespace().map(filled))
            .collect()
    }

    #[test]
    fn every_command_that_the_documents_quote_is_one() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut files = vec![root.join("README.md")];
        let docs = std::fs::read_dir(root.join("docs")).expect("docs/");
        files.extend(docs.map(|entry| entry.expect("a file").path()));
        files.retain(|file| file.extension().is_some_and(|kind| kind == "md"));
        let mut seen = std::collections::BTreeSet::new();
        for file in files {
            for command in quoted(&std::fs::read_to_string(&file).expect("readable")) {
                match Arguments::try_parse_from(words(&command)) {
                    Ok(arguments) => {
                        let what = format!("{:?}", arguments.what);
                        seen.insert(what.split('(').next().unwrap_or_default().to_owned());
                    }
                    Err(error) => panic!("{}: {command}\n{error}", file.display()),
                }
            }
        }
        assert_eq!(seen.len(), 11, "some command is nowhere quoted: {seen:?}");
    }

    #[test]
    fn the_help_says_what_the_exit_codes_mean() {
        use clap::CommandFactory as _;
        Arguments::command().debug_assert();
        let help = Arguments::command().render_help().to_string();
        assert!(
            help.contains("Exit codes: 0 done, 1 refused or failed, 2 used wrongly, 3 nothing found (or a dry run found something)."),
            "{help}"
        );
    }

    #[test]
    fn wrong_words_are_named() {
        let parse = |line: &str| {
            Arguments::try_parse_from(line.split_whitespace()).map_err(|e| e.to_string())
        };
        for (line, says) in [
            (
                "bobbin-operate threads --phase sleeping",
                "the phases are creating, active",
            ),
            ("bobbin-operate threads --idle soon", "90s, 30m, 2h or 1d"),
            ("bobbin-operate show nonsense", "nonsense"),
            ("bobbin-operate dead replay", "<ID>"),
            ("bobbin-operate --laptop --stack a threads", "--stack"),
        ] {
            let error = parse(line).expect_err(line);
            assert!(error.contains(says), "{line}: {error}");
        }
    }
}
