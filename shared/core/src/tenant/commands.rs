//! The table of commands. A command is a variant of [`Command`] and its row. Both chats register, parse, complete and
//! explain commands from this table; `bobbin-app` has a file with the command's name for what it does.
#![allow(missing_docs, reason = "the names say it")]

mod row;

use serde::{Deserialize, Serialize};

pub use self::row::{
    Argument, ArgumentKind, CommandRow, HelpText, Reach, Spoken, Topic, WhoMay, Writing, help,
};
use self::row::{flag, optional, required, subcommand};
use crate::tenant::budgets::BudgetKind;
use crate::tenant::settings::DefaultKind;

/// A command. The order is that of [`TABLE`]; queued messages use the variant's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    Sandbox,
    Say,
    Status,
    Diff,
    Pr,
    Stop,
    Reset,
    Name,
    List,
    Connect,
    Destroy,
    Config,
    Setup,
    GitHub,
    Usage,
    Help,
}

/// Names of arguments, for reading what was filled in.
pub mod argument {
    pub const PROMPT: &str = "prompt";
    pub const FILE: &str = "file";
    pub const NOW: &str = "now";
    /// The pull request to work from.
    pub const PR: &str = "pr";
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
    /// The owner of repositories to remove.
    pub const OWNER: &str = "owner";
    pub const CONNECT: &str = "connect";
    pub const DISCONNECT: &str = "disconnect";
    pub const SHOW: &str = "show";
    pub const DEFAULT: &str = "default";
    pub const ALLOW: &str = "allow";
    pub const DISALLOW: &str = "disallow";
    pub const OPEN: &str = "open";
    pub const CLOSE: &str = "close";
    pub const BUDGET: &str = "budget";
    pub const ENVIRONMENT: &str = "environment";
    pub const SECRET: &str = "secret";
    pub const NETWORK: &str = "network";
    /// How much of the world is reached.
    pub const ACCESS: &str = "access";
    /// Where a secret is sent.
    pub const HOSTS: &str = "hosts";
    pub const READABLE: &str = "readable";
    pub const SET_UP: &str = "set-up";
    /// How a project is made ready.
    pub const RECIPE: &str = "recipe";
    /// A repository of the forge.
    pub const REPOSITORY: &str = "repository";
    /// Subject and text of a pull request.
    pub const SUBJECT: &str = "subject";
    pub const BODY: &str = "body";
    pub const WHAT: &str = "what";
    pub const VALUE: &str = "value";
    pub const CHANNEL: &str = "channel";
    pub const ROLE: &str = "role";
    pub const PERSON: &str = "person";
}

use argument::{
    ACCESS, ALL, ALLOW, BODY, BUDGET, CHANNEL, CLOSE, CONNECT, DEFAULT, DISALLOW, DISCONNECT,
    ENVIRONMENT, FILE, HOSTS, IN, IN_SHARED, KEEP_FILES, NAME, NETWORK, NOW, OPEN, OWNER, PERSON,
    PR, PROMPT, PROVIDER, READABLE, RECIPE, REMOVE, REPOSITORY, ROLE, RUNTIME, SANDBOX, SANDBOXES,
    SECRET, SET_UP, SHOW, SNAPSHOT, SUBJECT, VALUE, WHAT,
};

const MODEL: Argument = optional(
    DefaultKind::Model.word(),
    "Model for this task, as provider/model",
    ArgumentKind::Kind(DefaultKind::Model),
);
const AGENT: Argument = optional(
    DefaultKind::Agent.word(),
    "Agent: plan only plans; claude is Claude Code, codex Codex",
    ArgumentKind::Kind(DefaultKind::Agent),
);
const ATTACHED: Argument = optional(FILE, "A file that the agent can read", ArgumentKind::File);

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

/// What a project's sandboxes can reach.
const ACCESSES: [(&str, &str); 3] = [
    ("open: everything", "open"),
    ("listed: the forge, registries, the model and named hosts", "listed"),
    ("off: only the model", "off"),
];

/// The budgets that can be set, the narrowest first.
const BUDGETS: [Argument; BudgetKind::ALL.len()] = {
    let mut all = [budget(BudgetKind::Turn); BudgetKind::ALL.len()];
    let mut nth = 0;
    while nth < all.len() {
        all[nth] = budget(BudgetKind::ALL[nth]);
        nth += 1;
    }
    all
};

const fn budget(kind: BudgetKind) -> Argument {
    optional(kind.word(), kind.about(), ArgumentKind::Text)
}

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
            required(PROMPT, "What to do", ArgumentKind::Task),
            ATTACHED,
            optional(
                DefaultKind::Repo.word(),
                "Repository to clone, as owner/name or an https address",
                ArgumentKind::Kind(DefaultKind::Repo),
            ),
            optional(
                PR,
                "Number of a pull request in it, to work from or to review",
                ArgumentKind::Text,
            ),
            MODEL,
            AGENT,
            optional(
                SANDBOX,
                "A named sandbox; leave it out for the thread's own",
                ArgumentKind::Sandbox,
            ),
            optional(
                PROVIDER,
                "Provider of a new sandbox; with a new sandbox name, one of that name is created",
                ArgumentKind::Kind(DefaultKind::Provider),
            ),
            optional(
                RUNTIME,
                "How agents run in a new sandbox: opencode, compat, native or outside",
                ArgumentKind::Kind(DefaultKind::Runtime),
            ),
            optional(SNAPSHOT, "Snapshot to start a new sandbox from", ArgumentKind::Text),
            optional(
                IN,
                "Where to work in a shared sandbox",
                ArgumentKind::OneOf(&[(
                    "shared: in the common checkout, not in a worktree",
                    IN_SHARED,
                )]),
            ),
        ],
        topic: Topic::Begin,
        help: HelpText {
            slash: "`{sandbox}` in a channel starts a thread for a task; in a thread it continues there. Choose a \
repository (with `pr` one of its pull requests), model or agent with its options.",
            mention: "Mention me with a task and I work on it in this thread's own sandbox;",
        },
    },
    CommandRow {
        command: Command::Say,
        name: "say",
        spoken: Spoken::Task,
        reach: Reach::Thread,
        who: WhoMay::Everyone,
        about: "Continue in this thread's sandbox",
        arguments: &[
            required(PROMPT, "What to do next", ArgumentKind::Task),
            ATTACHED,
            MODEL,
            AGENT,
            flag(NOW, "Send it into the running task instead of queueing it"),
        ],
        topic: Topic::GoOn,
        help: HelpText {
            slash: "`{say}`, the Reply button, or **Apps > Send to sandbox** on a message continue in the thread's \
sandbox. The option `now` sends it into the running task.",
            mention: "reply in the thread with another mention to continue (in a direct message no mention is needed).",
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
            slash: "`{status}` shows what the thread's sandbox is doing",
            mention: "`{status}` shows what I am doing",
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
        help: HelpText {
            slash: "`{diff}` shows what the last task changed in the files",
            mention: "",
        },
    },
    CommandRow {
        command: Command::Pr,
        name: "pr",
        spoken: Spoken::Words("pr"),
        reach: Reach::Thread,
        who: WhoMay::Everyone,
        about: "Show what a pull request of this thread's work would publish, and open it",
        arguments: &[
            optional(SUBJECT, "Subject of the pull request", ArgumentKind::Text),
            optional(BODY, "Text of the pull request", ArgumentKind::Text),
        ],
        topic: Topic::Look,
        help: HelpText::of_both("`{pr}` prepares a pull request of the thread's work"),
    },
    CommandRow {
        command: Command::Stop,
        name: "stop",
        spoken: Spoken::Words("stop"),
        reach: Reach::Thread,
        who: WhoMay::Everyone,
        about: "Stop the running task in this thread",
        arguments: &[flag(ALL, "Also drop the tasks that wait behind it")],
        topic: Topic::End,
        help: HelpText::of_both(
            "`{stop}` stops the running task, `{stop} all` also drops the waiting ones",
        ),
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
            "Keep the sandbox and its files; only start a new conversation",
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
            "1 to 40 characters of a-z, 0-9 and -, for example frontend-2",
            ArgumentKind::NewName,
        )],
        topic: Topic::Share,
        help: HelpText {
            slash: "`{sandbox-name}` names the thread's sandbox, so that other threads can work in it too: with the option `sandbox` \
of `{sandbox}`, or with `{sandbox-connect}`.",
            mention: "`{sandbox-name} NAME` names this thread's, `{sandbox-connect} NAME` moves the thread there \
(without a name: back to its own)",
        },
    },
    CommandRow {
        command: Command::List,
        name: "sandbox-list",
        spoken: Spoken::Words("sandbox list"),
        reach: Reach::Anywhere,
        who: WhoMay::Everyone,
        about: "List the named sandboxes of this server",
        arguments: &[],
        topic: Topic::Share,
        help: HelpText::of_both("`{sandbox-list}` lists the named ones"),
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
            "Which sandbox; leave it out for the thread's own",
            ArgumentKind::Sandbox,
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
        arguments: &[optional(
            NAME,
            "Which sandbox; leave it out for this thread's",
            ArgumentKind::Sandbox,
        )],
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
            subcommand(SHOW, "Show who may use it where, the defaults, and the last changes", &[]),
            subcommand(
                DEFAULT,
                "Set or clear a default: repository, model, agent, provider, runtime, pull requests, and others",
                &[
                    required(WHAT, "Which default", ArgumentKind::OneOf(&DEFAULTS)),
                    optional(
                        VALUE,
                        "The new default; leave it out to clear the current one",
                        ArgumentKind::Default,
                    ),
                    optional(
                        CHANNEL,
                        "For this channel only; leave it out for the whole server",
                        ArgumentKind::Channel,
                    ),
                ],
            ),
            subcommand(
                ALLOW,
                "Let a channel, role or person use it; the first one closes it to all others",
                &[
                    optional(CHANNEL, "The channel to allow", ArgumentKind::Channel),
                    optional(ROLE, "The role to allow", ArgumentKind::Role),
                    optional(PERSON, "The person to allow", ArgumentKind::Person),
                ],
            ),
            subcommand(
                DISALLOW,
                "Remove a channel, role or person from the list; removing the last one opens it again",
                &[
                    optional(CHANNEL, "The channel to remove", ArgumentKind::Channel),
                    optional(ROLE, "The role to remove", ArgumentKind::Role),
                    optional(PERSON, "The person to remove", ArgumentKind::Person),
                ],
            ),
            subcommand(
                OPEN,
                "Let tasks work on a private repository, for everybody in the server or one channel",
                &[
                    required(
                        REPOSITORY,
                        "The repository, as owner/name, or all",
                        ArgumentKind::Text,
                    ),
                    optional(CHANNEL, "For tasks in this channel only", ArgumentKind::Channel),
                ],
            ),
            subcommand(
                CLOSE,
                "Take that back",
                &[
                    required(REPOSITORY, "The repository, as it was opened", ArgumentKind::Text),
                    optional(CHANNEL, "The channel for which it was opened", ArgumentKind::Channel),
                ],
            ),
            subcommand(
                BUDGET,
                "Set or clear what may be spent on models; without a value it shows what is set",
                &BUDGETS,
            ),
            subcommand(
                ENVIRONMENT,
                "Choose how a repository's project is set up in new sandboxes",
                &[
                    required(REPOSITORY, "The repository, as owner/name", ArgumentKind::Text),
                    required(
                        RECIPE,
                        "{set-up: [npm ci], services: [postgres]}, off, or own: the repository's files",
                        ArgumentKind::Text,
                    ),
                ],
            ),
            subcommand(
                NETWORK,
                "Set what a repository's sandboxes can reach",
                &[
                    required(REPOSITORY, "The repository, as owner/name", ArgumentKind::Text),
                    required(ACCESS, "What can be reached", ArgumentKind::OneOf(&ACCESSES)),
                    optional(
                        HOSTS,
                        "Hosts beside the forge, registries and the model",
                        ArgumentKind::Text,
                    ),
                ],
            ),
            subcommand(
                SECRET,
                "Store a secret that a repository's tools use; its value is entered on a private page",
                &[
                    required(REPOSITORY, "The repository, as owner/name", ArgumentKind::Text),
                    required(
                        NAME,
                        "Its name, also its variable, such as NPM_TOKEN",
                        ArgumentKind::Text,
                    ),
                    optional(
                        HOSTS,
                        "The only hosts it is sent to: registry.example.com, or *.example.com",
                        ArgumentKind::Text,
                    ),
                    flag(
                        READABLE,
                        "The agent can read it: for values that are not sent in requests",
                    ),
                    flag(SET_UP, "Also for set-up steps, such as a private registry"),
                    flag(REMOVE, "Remove it"),
                ],
            ),
        ],
        topic: Topic::Manage,
        help: HelpText {
            slash: "People who manage the server choose with `{sandbox-config}` who may use it where, and the defaults.",
            mention: "`{sandbox-config}` shows the defaults",
        },
    },
    CommandRow {
        command: Command::Setup,
        name: "sandbox-setup",
        spoken: Spoken::Words("setup"),
        reach: Reach::Tenant,
        who: WhoMay::Managers,
        about: "Where new sandboxes are created, this server's own keys, and its owners at GitHub",
        arguments: &[
            optional(
                PROVIDER,
                "Whose key, or GitHub to bind an owner; leave it out to see what is stored",
                ArgumentKind::KeyOwner,
            ),
            flag(REMOVE, "Remove the key or owner instead of storing one"),
            optional(OWNER, "With GitHub and remove: the owner to remove", ArgumentKind::Text),
            optional(
                SANDBOXES,
                "Provider for new sandboxes; none leaves the choice to the operator",
                ArgumentKind::Kind(DefaultKind::Provider),
            ),
            optional(CHANNEL, "With sandboxes: for this channel only", ArgumentKind::Channel),
        ],
        topic: Topic::Manage,
        help: HelpText {
            slash: "With `{sandbox-setup}` they choose where new sandboxes are created, and store the server's own keys",
            mention: "`{sandbox-setup}` shows where new sandboxes are created and this workspace's own keys",
        },
    },
    CommandRow {
        command: Command::GitHub,
        name: "github",
        spoken: Spoken::Words("github"),
        reach: Reach::Anywhere,
        who: WhoMay::Everyone,
        about: "Connect your own GitHub account, so that your pull requests are yours",
        arguments: &[
            subcommand(CONNECT, "Get a link to sign in with GitHub", &[]),
            subcommand(SHOW, "Show which account is connected", &[]),
            subcommand(DISCONNECT, "Forget the account and end what you allowed", &[]),
        ],
        topic: Topic::Look,
        help: HelpText::of_both("`{github} connect` connects your own GitHub account"),
    },
    CommandRow {
        command: Command::Usage,
        name: "sandbox-usage",
        spoken: Spoken::Words("usage"),
        reach: Reach::Anywhere,
        who: WhoMay::Everyone,
        about: "What was spent on models: by you today, in this thread, and here this month",
        arguments: &[],
        topic: Topic::Look,
        help: HelpText::of_both("`{sandbox-usage}` shows what was spent on models"),
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
        help: HelpText { slash: "", mention: "`{help}` shows this text" },
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
                if let ArgumentKind::Subcommand(arguments) = argument.takes {
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
