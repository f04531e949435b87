//! The top-level command line, around the set-up and operation commands.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

use crate::target::StackOptions;
use crate::{agent, operate, setup};

const AFTER: &str = "\
Exit codes: 0 done, 1 something is wrong, was refused or failed, 2 used wrongly, 3 something is left to do (a dry run found
it, or the stack has to be deployed first) or nothing was found. Of a followed turn: 0 answered, 4 failed or met a
budget, 5 stopped by somebody, 6 lost with its sandbox, 7 still running, 130 Ctrl-C ended only the following.

A THREAD is its full key, discord:GUILD:THREAD or slack:TEAM:CHANNEL:TS (see `bobbin thread list`), or a unique end of
that key, as a narrow terminal shows it. The NAME of a sandbox is the one that people gave it (see `bobbin sandbox list`).
Bobbin reaches AWS with the credentials and region of your terminal (AWS_PROFILE, AWS_REGION).
`bobbin COMMAND --help` says more; docs/PRODUCTION.md describes set-up, docs/OPERATE.md every command of operation.";

/// Sets up everything around a deployed Bobbin, shows what runs in it, and controls it.
#[derive(Debug, Parser)]
#[command(name = "bobbin", version, after_help = AFTER)]
pub struct Arguments {
    /// Answer with one JSON object, for programs
    #[arg(long, global = true)]
    pub json: bool,
    #[command(flatten)]
    pub stack: StackOptions,
    #[command(subcommand)]
    pub command: Option<CliCommand>,
}

/// A command.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// What prepares a stack and takes that back; their words stand in the list of commands itself.
    #[command(flatten)]
    Setup(setup::SetupCommand),
    /// What shows and changes what runs in a stack; likewise.
    #[command(flatten)]
    Operate(operate::OperateCommand),
    /// What is about this machine and this program itself; likewise.
    #[command(flatten)]
    Own(OwnCommand),
}

/// The commands that are about this machine and this program itself.
#[derive(Debug, Subcommand)]
pub enum OwnCommand {
    /// Run a coding agent on this machine, without any chat
    #[command(subcommand)]
    Agent(agent::AgentCommand),
    /// Print the shell completion script: source <(bobbin completions bash)
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// The shells whose completion is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// GNU bash
    Bash,
    /// The Z shell
    Zsh,
    /// The friendly interactive shell
    Fish,
}

/// The clap command, with help grouped by purpose.
#[must_use]
pub fn command() -> clap::Command {
    let without_stack = |command: clap::Command| command.args(unused_options());
    Arguments::command()
        .mut_subcommand("agent", without_stack)
        .mut_subcommand("completions", without_stack)
        .help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\nOperation:\n{}\nSet-up:\n{}\nThis machine:\n{}\nOptions:\n{{options}}{{after-help}}",
        listed::<operate::OperateCommand>(),
        listed::<setup::SetupCommand>(),
        listed::<OwnCommand>(),
    ))
}

/// Global options that mean nothing to commands without a stack; hidden from their help.
fn unused_options() -> Vec<clap::Arg> {
    let all = Arguments::command();
    let global = all.get_arguments().filter(|one| one.is_global_set());
    global.map(|one| one.clone().hide(true)).collect()
}

fn listed<C: Subcommand>() -> String {
    let commands = C::augment_subcommands(clap::Command::new("bobbin"));
    let line = |one: &clap::Command| {
        let about = one.get_about().map(ToString::to_string);
        format!("  {:<11} {}\n", one.get_name(), about.unwrap_or_default())
    };
    commands.get_subcommands().map(line).collect()
}

/// Reads a command line.
///
/// # Errors
/// clap's error.
pub fn read(line: impl IntoIterator<Item = OsString>) -> Result<Arguments, clap::Error> {
    let mut command = command();
    let matches = command.try_get_matches_from_mut(line)?;
    let arguments =
        Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
    // --laptop overrides a stack from the environment; a typed --stack conflicts with it.
    let typed = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    for (id, option) in [("stack", "--stack"), ("aws_endpoint", "--aws-endpoint")] {
        if arguments.stack.laptop && typed(id) {
            let why = format!("{option} and --laptop name different stacks: leave one of them out");
            return Err(command.error(ErrorKind::ArgumentConflict, why));
        }
    }
    let prints_a_document = match &arguments.command {
        Some(CliCommand::Setup(command)) => command.prints_a_document(),
        // Output that is followed live has no JSON object either.
        Some(CliCommand::Own(_)) => true,
        Some(CliCommand::Operate(_)) | None => false,
    };
    if arguments.json && prints_a_document {
        let why = "this command prints its own document: leave --json out";
        return Err(command.error(ErrorKind::ArgumentConflict, why));
    }
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::*;

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        read(line.split_whitespace().map(OsString::from))
    }

    /// The Bobbin commands that a text quotes, in code blocks and inline code.
    fn quoted(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut block = false;
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                block = !block;
            } else if block || (line.starts_with("    ") && !line.contains('`')) {
                let line = line.trim().trim_start_matches("$ ");
                found.push(line.to_owned());
            } else {
                found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
            }
        }
        found.retain(|code| code.starts_with("bobbin ") || code.contains("-p bobbin-cli -- "));
        found
    }

    /// Splits like a shell, with placeholders filled in.
    fn words(command: &str) -> Vec<OsString> {
        let command = command
            .split_once("-p bobbin-cli -- ")
            .map_or(command, |(_, rest)| rest)
            .trim_start_matches("bobbin ");
        let command = command.split(['#', '|', '<', '>', ')', '"']).next();
        // Single quotes keep a word together.
        let mut quoted = false;
        let is_end = |c: char| {
            quoted ^= c == '\'';
            c.is_whitespace() && !quoted
        };
        let filled = |word: &str| match word {
            "THREAD" | "$THREAD" => "discord:1:2".to_owned(),
            "NAME" => "frontend".to_owned(),
            "ID" | "CHANNEL_ID" => "123456789012345678".to_owned(),
            "$STACK" => "bobbin-prod".to_owned(),
            other => other.to_owned(),
        };
        let words = command.unwrap_or_default().split(is_end);
        let words = words.filter(|word| !word.is_empty()).map(filled);
        std::iter::once("bobbin".to_owned()).chain(words).map(OsString::from).collect()
    }

    /// The documents in the root, in docs/ and its appendix, and in events/; and the template with its outputs.
    fn documents() -> Vec<PathBuf> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let docs = ["docs", "docs/appendix"].into_iter().flat_map(|folder| {
            let entries = std::fs::read_dir(root.join(folder)).expect(folder);
            entries.map(|entry| entry.expect("a file").path())
        });
        let docs = docs.filter(|file| file.extension().is_some_and(|kind| kind == "md"));
        ["README.md", "CONTRIBUTING.md", "events/README.md", "template.yaml"]
            .map(|name| root.join(name))
            .into_iter()
            .chain(docs)
            .collect()
    }

    #[test]
    fn documented_and_existing_commands_agree() {
        let mut seen = BTreeSet::new();
        for file in documents() {
            for quoted in quoted(&std::fs::read_to_string(&file).expect("readable")) {
                let line = words(&quoted);
                if let Err(error) = read(line.clone()) {
                    panic!("{}: {quoted}\n{error}", file.display());
                }
                let matches = command().try_get_matches_from(line).expect("it was read");
                let (mut at, mut name) = (&matches, Vec::new());
                while let Some((word, below)) = at.subcommand() {
                    name.push(word.to_owned());
                    at = below;
                }
                assert!(!name.is_empty(), "{}: {quoted}", file.display());
                seen.insert(name.join(" "));
            }
        }
        let mut all = BTreeSet::new();
        leaves(&command(), "", &mut all);
        assert_eq!(all.len(), 45, "{all:?}");
        let unquoted: Vec<&String> = all.difference(&seen).collect();
        assert!(unquoted.is_empty(), "nowhere quoted: {unquoted:?}");
    }

    /// All leaf commands, by their full names.
    fn leaves(command: &clap::Command, above: &str, found: &mut BTreeSet<String>) {
        for one in command.get_subcommands().filter(|one| one.get_name() != "help") {
            let name = format!("{above} {}", one.get_name()).trim().to_owned();
            if !one.is_subcommand_required_set() {
                found.insert(name.clone());
            }
            leaves(one, &name, found);
        }
    }

    #[test]
    fn help_groups_commands_and_exit_codes() {
        command().debug_assert();
        let help = command().render_help().to_string();
        let middle = help.find("\nSet-up:\n").expect("two groups");
        let (operation, setup) = help.split_at(middle);
        for (group, name) in
            [(setup, "setup"), (setup, "credentials"), (operation, "thread"), (operation, "send")]
        {
            assert!(group.contains(&format!("\n  {name} ")), "{name}: {help}");
        }
        for one in command().get_subcommands() {
            let line = format!("\n  {:<11} ", one.get_name());
            assert_eq!(help.matches(&line).count(), 1, "{line}: {help}");
        }
        assert!(
            help.contains("Exit codes: 0 done, 1 something is wrong, was refused or failed, 2 used wrongly, 3 something is left to do"),
            "{help}"
        );
    }

    #[test]
    fn options_stay_with_their_command() {
        for line in [
            "bobbin setup --dry-run",
            "bobbin all --dry-run",
            "bobbin --stack mine setup --dry-run --from-env",
            "bobbin setup --dry-run --stack mine",
        ] {
            let read = parse(line).expect(line);
            let Some(CliCommand::Setup(setup::SetupCommand::Setup(options))) = read.command else {
                panic!("{line}: {:?}", read.command);
            };
            assert!(options.dry_run, "{line}");
            assert_eq!(read.stack.stack.is_some(), line.contains("mine"), "{line}");
        }
        for (line, named) in [
            ("bobbin --dry-run secrets", "--dry-run"),
            ("bobbin --dry-run", "--dry-run"),
            ("bobbin check --dry-run", "--dry-run"),
            ("bobbin setup --dry", "--dry"),
            ("bobbin chekc", "chekc"),
        ] {
            let refused = parse(line).expect_err(line);
            assert_eq!(refused.exit_code(), 2, "{line}");
            let refused = refused.to_string();
            assert!(refused.contains(&format!("'{named}'")), "{line}: {refused}");
        }
        assert!(parse("bobbin").expect("no command").command.is_none());
    }

    #[test]
    fn help_offers_no_refused_option() {
        for path in [&["agent", "run"][..], &["completions"], &["thread", "list"]] {
            let line = ["bobbin"].iter().chain(path).chain(&["--help"]);
            let help = read(line.map(OsString::from)).expect_err("help").to_string();
            let takes_stack = path[0] == "thread";
            for option in ["--json", "--stack", "--daytona-api"] {
                assert_eq!(help.contains(option), takes_stack, "{path:?} {option}: {help}");
            }
        }
    }

    #[test]
    fn mistyped_words_get_suggestions() {
        for (line, right) in [
            ("bobbin thraed list", "'thread'"),
            ("bobbin thread lsit", "'list'"),
            ("bobbin thread list --pahse paused", "'--phase'"),
            ("bobbin thread list --phase pausd", "'paused'"),
        ] {
            let told = parse(line).expect_err(line).to_string();
            assert!(told.contains("similar") && told.contains(right), "{line}: {told}");
        }
    }

    #[test]
    fn every_command_takes_stack_options() {
        for command in ["check", "thread list", "discord endpoint", "dead replay --all"] {
            for line in [
                format!("bobbin --stack mine --aws-endpoint http://a {command}"),
                format!("bobbin {command} --endpoint http://a --stack mine"),
            ] {
                let read = parse(&line).expect(&line).stack;
                assert_eq!(read.stack.as_deref(), Some("mine"), "{line}");
                assert_eq!(read.aws_endpoint.as_deref(), Some("http://a"), "{line}");
            }
            let laptop = format!("bobbin --laptop --state-dir /state {command}");
            assert!(parse(&laptop).expect(&laptop).stack.laptop);
            for line in [
                format!("bobbin --laptop --stack a {command}"),
                format!("bobbin --laptop {command} --stack a"),
                format!("bobbin {command} --laptop --aws-endpoint http://a"),
                format!("bobbin {command} --state-dir /state"),
            ] {
                let refused = parse(&line).expect_err(&line);
                assert_eq!(refused.exit_code(), 2, "{line}");
            }
        }
    }

    #[test]
    fn wrong_arguments_are_named() {
        for (line, says) in [
            ("bobbin thread list --phase sleeping", "[possible values: creating, active"),
            ("bobbin thread list --idle soon", "90s, 30m, 2h or 1d"),
            ("bobbin thread show nonsense", "nonsense"),
            ("bobbin sandbox stop Frontend", "use 1 to 40 characters of a-z, 0-9 and -"),
            ("bobbin sandbox create a --provider nobody", "there are: daytona"),
            ("bobbin sandbox snapshot", "<NAME|THREAD>"),
            ("bobbin sandbox connect discord:1:2", "<NAME>"),
            (
                "bobbin sandbox create a --tenant discord:1 --channel C0123ABC",
                "cannot be used with",
            ),
            (
                "bobbin send --channel C0123ABC --prompt x --sandbox a --new-sandbox",
                "cannot be used with",
            ),
            (
                "bobbin environment show acme/api --tenant discord:1 --at HEAD",
                "cannot be used with",
            ),
            ("bobbin environment show --tenant discord:1", "<FOLDER|OWNER/NAME>"),
            ("bobbin environment build api --tenant discord:1", "name it as owner/name"),
            ("bobbin environment try acme/api", "--tenant <TENANT>"),
            ("bobbin sandbox setup --tenant teams:1", "discord:<guild> or slack:<team>"),
            ("bobbin dead replay", "<ID>"),
            ("bobbin --laptop --stack a thread list", "--stack and --laptop name different stacks"),
            ("bobbin --json credentials", "its own document"),
            ("bobbin completions bash --json", "its own document"),
            ("bobbin completions tcsh", "[possible values: bash, zsh, fish]"),
        ] {
            let error = parse(line).expect_err(line).to_string();
            assert!(error.contains(says), "{line}: {error}");
        }
    }
}
