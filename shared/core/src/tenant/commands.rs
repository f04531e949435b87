//! The table of commands. A command is a variant of [`Command`] and its row. Both chats register, parse, complete and
//! explain commands from this table; `bobbin-app` has a file with the command's name for what it does.
#![allow(missing_docs, reason = "the names say it")]

mod row;

use serde::{Deserialize, Serialize};

pub use self::row::{
    Argument, CommandRow, HelpText, Reach, Spoken, Takes, Topic, WhoMay, Writing, help,
};
use self::row::{flag, optional, required, subcommand};
use crate::tenant::settings::DefaultKind;

/// A command. The order is that of [`TABLE`]; queued messages use the variant's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    Sandbox,
    Say,
    Status,
    Diff,
    Stop,
    Reset,
    Name,
    List,
    Connect,
    Destroy,
    Config,
    Setup,
    Help,
}

/// Names of arguments, for reading what was filled in.
pub mod argument {
    pub const PROMPT: &str = "prompt";
    pub const FILE: &str = "file";
    pub const NOW: &str = "now";
    pub const ALL: &str = "all";
    pub const KEEP_FILES: &str = "keep-files";
    /// The sandbox for a task.
    pub const SANDBOX: &str = "sandbox";
    pub const NAME: &str = "name";
    /// The provider of a new sandbox; for `sandbox-setup`, the key's provider.
    pub const PROVIDER: &str = "provider";
    pub const RUNTIME: &str = "runtime";
    pub const SNAPSHOT: &str = "snapshot";
    /// Where to work in a shared sandbox.
    pub const IN: &str = "in";
    /// The one value of [`IN`].
    pub const IN_SHARED: &str = "shared";
    /// Where new sandboxes are created.
    pub const SANDBOXES: &str = "sandboxes";
    /// The value of [`SANDBOXES`] that leaves it to the operator.
    pub const NONE: &str = "none";
    pub const REMOVE: &str = "remove";
    pub const SHOW: &str = "show";
    pub const DEFAULT: &str = "default";
    pub const ALLOW: &str = "allow";
    pub const DISALLOW: &str = "disallow";
    pub const WHAT: &str = "what";
    pub const VALUE: &str = "value";
    pub const CHANNEL: &str = "channel";
    pub const ROLE: &str = "role";
    pub const PERSON: &str = "person";
}

use argument::{
    ALL, ALLOW, CHANNEL, DEFAULT, DISALLOW, FILE, IN, IN_SHARED, KEEP_FILES, NAME, NOW, PERSON,
    PROMPT, PROVIDER, REMOVE, ROLE, RUNTIME, SANDBOX, SANDBOXES, SHOW, SNAPSHOT, VALUE, WHAT,
};

const MODEL: Argument = optional(
    DefaultKind::Model.word(),
    "Model for this task, as provider/model",
    Takes::Kind(DefaultKind::Model),
);
const AGENT: Argument = optional(
    DefaultKind::Agent.word(),
    "Agent: plan only plans; claude is Claude Code, codex Codex",
    Takes::Kind(DefaultKind::Agent),
);
const ATTACHED: Argument = optional(FILE, "A file that the agent can read", Takes::File);

/// What a default can be of.
const DEFAULTS: [(&str, &str); DefaultKind::ALL.len()] = {
    let mut all = [("", ""); DefaultKind::ALL.len()];
    let mut nth = 0;
    while nth < all.len() {
        all[nth] = (DefaultKind::ALL[nth].label(), DefaultKind::ALL[nth].word());
        nth += 1;
    }
    all
};

/// Every command, in the order of registration.
pub const TABLE: &[CommandRow] = &[
    CommandRow {
        command: Command::Sandbox,
        name: "sandbox",
        spoken: Spoken::Task,
        reach: Reach::Anywhere,
        who: WhoMay::Everyone,
        about: "Give a task to a coding agent in its own sandbox",
        arguments: &[
            required(PROMPT, "What shall be done", Takes::Task),
            ATTACHED,
            optional(
                DefaultKind::Repo.word(),
                "Repository to clone, as owner/name or an https address",
                Takes::Kind(DefaultKind::Repo),
            ),
            MODEL,
            AGENT,
            optional(
                SANDBOX,
                "A sandbox that has a name; leave it out for one of the thread's own",
                Takes::Sandbox,
            ),
            optional(
                PROVIDER,
                "Provider of a new sandbox; with a new name beside it one of that name is made",
                Takes::Kind(DefaultKind::Provider),
            ),
            optional(
                RUNTIME,
                "How agents are run in a new sandbox: opencode, compat, native or outside",
                Takes::Kind(DefaultKind::Runtime),
            ),
            optional(SNAPSHOT, "Snapshot that a new sandbox begins with", Takes::Text),
            optional(
                IN,
                "Where in a shared sandbox the work is done",
                Takes::OneOf(&[("shared: in the common checkout, not in a worktree", IN_SHARED)]),
            ),
        ],
        topic: Topic::Begin,
        help: HelpText {
            slash: "`{sandbox}` in a channel starts a thread for a task; in a thread it goes on there. Choose a repository, model or \
agent with its options.",
            mention: "Mention me with a task and I work on it in a sandbox of this thread's own;",
        },
    },
    CommandRow {
        command: Command::Say,
        name: "say",
        spoken: Spoken::Task,
        reach: Reach::Thread,
        who: WhoMay::Everyone,
        about: "Go on in this thread's sandbox",
        arguments: &[
            required(PROMPT, "What shall happen next", Takes::Task),
            ATTACHED,
            MODEL,
            AGENT,
            flag(NOW, "Send it into what is running, instead of after it"),
        ],
        topic: Topic::GoOn,
        help: HelpText {
            slash: "`{say}`, the Reply button, or **Apps > Send to sandbox** on a message go on in the thread's sandbox. Its option \
`now` sends it into what is running.",
            mention: "reply in the thread with another mention to go on (in a direct message no mention is needed).",
        },
    },
    CommandRow {
        command: Command::Status,
        name: "status",
        spoken: Spoken::Words("status"),
        reach: Reach::Thread,
        who: WhoMay::Everyone,
        about: "What this thread's sandbox is doing",
        arguments: &[],
        topic: Topic::Look,
        help: HelpText {
            slash: "`{status}` says what the thread's sandbox is doing",
            mention: "`{status}` says what I am doing",
        },
    },
    CommandRow {
        command: Command::Diff,
        name: "diff",
        spoken: Spoken::Button("View diff"),
        reach: Reach::Thread,
        who: WhoMay::Everyone,
        about: "What the last task in this thread changed in the files",
        arguments: &[],
        topic: Topic::Look,
        help: HelpText { slash: "`{diff}` what its last task changed in the files", mention: "" },
    },
    CommandRow {
        command: Command::Stop,
        name: "stop",
        spoken: Spoken::Words("stop"),
        reach: Reach::Thread,
        who: WhoMay::Everyone,
        about: "End what is running in this thread",
        arguments: &[flag(ALL, "Also drop everything that waits behind it")],
        topic: Topic::End,
        help: HelpText {
            slash: "`{stop}` ends what is running, `{stop} all` also drops what waits",
            mention: "`{stop}` ends the present run, `{stop} all` empties the queue as well",
        },
    },
    CommandRow {
        command: Command::Reset,
        name: "reset",
        spoken: Spoken::Words("reset"),
        reach: Reach::Thread,
        who: WhoMay::Everyone,
        about: "Give this thread a fresh sandbox",
        arguments: &[flag(
            KEEP_FILES,
            "Keep the sandbox with its files: only the conversation begins anew",
        )],
        topic: Topic::End,
        help: HelpText {
            slash: "`{reset}` gives the thread a fresh sandbox, with `keep-files` a new conversation in the same one",
            mention: "`{reset}` starts over with a fresh sandbox (`{reset} keep files` with a new conversation in the same one)",
        },
    },
    CommandRow {
        command: Command::Name,
        name: "sandbox-name",
        spoken: Spoken::Words("sandbox name"),
        reach: Reach::Thread,
        who: WhoMay::Everyone,
        about: "Give this thread's sandbox a name, so that other threads can share it",
        arguments: &[required(
            NAME,
            "1 to 40 of a-z, 0-9 and -, for example frontend-2",
            Takes::NewName,
        )],
        topic: Topic::Share,
        help: HelpText {
            slash: "`{sandbox-name}` names the thread's sandbox, so that other threads can work in it too: with the option `sandbox` \
of `{sandbox}`, or with `{sandbox-connect}`.",
            mention: "`{sandbox-name} NAME` names this thread's, `{sandbox-connect} NAME` takes the thread there (without a name: \
back to one of its own)",
        },
    },
    CommandRow {
        command: Command::List,
        name: "sandbox-list",
        spoken: Spoken::Words("sandbox list"),
        reach: Reach::Anywhere,
        who: WhoMay::Everyone,
        about: "The sandboxes of this server that have a name",
        arguments: &[],
        topic: Topic::Share,
        help: HelpText::of_both("`{sandbox-list}` shows those there are"),
    },
    CommandRow {
        command: Command::Connect,
        name: "sandbox-connect",
        spoken: Spoken::Words("sandbox connect"),
        reach: Reach::Thread,
        who: WhoMay::Everyone,
        about: "Let this thread work in another sandbox",
        arguments: &[optional(
            NAME,
            "Which one; leave it out for one of the thread's own",
            Takes::Sandbox,
        )],
        topic: Topic::Share,
        // The help of `sandbox-name` covers it.
        help: HelpText::of_both(""),
    },
    CommandRow {
        command: Command::Destroy,
        name: "sandbox-destroy",
        spoken: Spoken::Words("sandbox destroy"),
        reach: Reach::Anywhere,
        who: WhoMay::Everyone,
        about: "Delete a sandbox for everybody who works in it; asks first",
        arguments: &[optional(NAME, "Which one; leave it out for this thread's", Takes::Sandbox)],
        topic: Topic::Share,
        help: HelpText::of_both("`{sandbox-destroy}` deletes one for everybody"),
    },
    CommandRow {
        command: Command::Config,
        name: "sandbox-config",
        spoken: Spoken::Words("config"),
        reach: Reach::Tenant,
        who: WhoMay::Managers,
        about: "See and change who may use Bobbin in this server, and its defaults",
        arguments: &[
            subcommand(SHOW, "Who may use it where, the defaults, and the last changes", &[]),
            subcommand(
                DEFAULT,
                "Set or clear the default repository, model, agent, sandbox provider or runtime",
                &[
                    required(WHAT, "What the default is of", Takes::OneOf(&DEFAULTS)),
                    optional(
                        VALUE,
                        "The new default; leave it out to clear the present one",
                        Takes::Default,
                    ),
                    optional(
                        CHANNEL,
                        "For this channel only; leave it out for the whole server",
                        Takes::Channel,
                    ),
                ],
            ),
            subcommand(
                ALLOW,
                "Let a channel, role or person use it; the first one closes it to all others",
                &[
                    optional(CHANNEL, "The channel to let in", Takes::Channel),
                    optional(ROLE, "The role to let in", Takes::Role),
                    optional(PERSON, "The person to let in", Takes::Person),
                ],
            ),
            subcommand(
                DISALLOW,
                "Take that back; the last one taken back opens it again",
                &[
                    optional(CHANNEL, "The channel to take off the list", Takes::Channel),
                    optional(ROLE, "The role to take off the list", Takes::Role),
                    optional(PERSON, "The person to take off the list", Takes::Person),
                ],
            ),
        ],
        topic: Topic::Manage,
        help: HelpText {
            slash: "`{sandbox-config}` is for people who manage the server: who may use it where, and defaults.",
            mention: "`{sandbox-config}` shows the defaults",
        },
    },
    CommandRow {
        command: Command::Setup,
        name: "sandbox-setup",
        spoken: Spoken::Words("setup"),
        reach: Reach::Tenant,
        who: WhoMay::Managers,
        about: "See and change where new sandboxes are made, and keys of this server's own",
        arguments: &[
            optional(PROVIDER, "Whose key; leave it out to see which there are", Takes::KeyOwner),
            flag(REMOVE, "Take the key away instead of storing one"),
            optional(
                SANDBOXES,
                "Provider at which new sandboxes are made; none leaves it to the operator",
                Takes::Kind(DefaultKind::Provider),
            ),
            optional(CHANNEL, "With sandboxes: for this channel only", Takes::Channel),
        ],
        topic: Topic::Manage,
        help: HelpText {
            slash: "With `{sandbox-setup}` they say where new sandboxes are made, and store keys of the server's own",
            mention: "`{sandbox-setup}` where new sandboxes are made and the keys of this workspace's own",
        },
    },
    CommandRow {
        command: Command::Help,
        name: "help",
        spoken: Spoken::Words("help"),
        reach: Reach::Anywhere,
        who: WhoMay::Everyone,
        about: "How to use it",
        arguments: &[],
        topic: Topic::Help,
        help: HelpText { slash: "", mention: "`{help}` says this" },
    },
];

impl Command {
    /// Its row in the table.
    #[must_use]
    pub const fn row(self) -> &'static CommandRow {
        &TABLE[self as usize]
    }

    /// The command with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.name == name).map(|row| row.command)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::base::ids::ThreadKey;
    use crate::protocol::decide::words;

    #[test]
    fn each_command_stands_at_its_row() {
        for row in TABLE {
            assert_eq!(row.command.row().name, row.name);
        }
        let names: BTreeSet<&str> = TABLE.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), TABLE.len());
        assert_eq!(Command::Help as usize, TABLE.len() - 1, "a variant has no row");
    }

    #[test]
    fn required_arguments_stand_first() {
        fn check(arguments: &[Argument]) {
            assert!(arguments.is_sorted_by_key(|argument| !argument.required), "{arguments:?}");
            for argument in arguments {
                if let Takes::Subcommand(arguments) = argument.takes {
                    check(arguments);
                }
            }
        }
        TABLE.iter().for_each(|row| check(row.arguments));
    }

    #[test]
    fn texts_name_their_chats_command() {
        let name = "front".parse().expect("a name");
        let slack = ThreadKey::slack("T1", "C1", "1.2").expect("a key");
        let discord = ThreadKey::discord("1", "2").expect("a key");
        let said = |thread: &ThreadKey| {
            [
                words::reset_shared(thread),
                words::connect_gone(thread),
                words::no_sandbox(&name, thread),
                words::too_many_threads(&name, thread),
                words::named(&name, thread),
            ]
        };
        for (there, here) in said(&slack).iter().zip(said(&discord)) {
            assert!(there.contains("@Bobbin sandbox ") && !there.contains('/'), "{there}");
            assert!(here.contains("/sandbox-") && !here.contains('@'), "{here}");
        }
        let group = ThreadKey::Sandbox(slack.sandbox());
        assert_eq!(group.command(Command::Setup), "/bobbin setup");
        assert_eq!(slack.command(Command::Diff), "View diff");
        assert_eq!(discord.command(Command::Diff), "/diff");
    }
}
