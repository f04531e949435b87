//! The commands that are registered with Discord.

use bobbin_core::tenant::keys::Key;
use bobbin_core::tenant::settings::{Kind, VALUE_BYTES_MAX};
use serde_json::{Value, json};

use super::bounds::OPTION_TEXT_UNITS_MAX;

/// Starts a thread with a sandbox, or goes on in one.
pub const SANDBOX: &str = "sandbox";
/// A further prompt in a thread.
pub const SAY: &str = "say";
/// What the thread's session is doing.
pub const STATUS: &str = "status";
/// A fresh sandbox for the thread.
pub const RESET: &str = "reset";
/// End what is running.
pub const STOP: &str = "stop";
/// How to use it.
pub const HELP: &str = "help";
/// The menu command on a message.
pub const SEND: &str = "Send to sandbox";

/// What the last task changed.
pub const DIFF: &str = "diff";
/// The settings of the server.
pub const CONFIG: &str = "sandbox-config";

/// Give the thread's sandbox a name.
pub const NAME_SANDBOX: &str = "sandbox-name";
/// The sandboxes that have a name.
pub const LIST: &str = "sandbox-list";
/// Take the thread to another sandbox.
pub const CONNECT: &str = "sandbox-connect";
/// Delete a sandbox for everybody.
pub const DESTROY: &str = "sandbox-destroy";

/// Keys of the server's own.
pub const SETUP: &str = "sandbox-setup";

/// Name of the option that holds the words.
pub const PROMPT: &str = "prompt";
/// Name of the option that holds a file.
pub const FILE: &str = "file";
/// Option: send it into what is running.
pub const NOW: &str = "now";
/// Option: what waits as well.
pub const ALL: &str = "all";
/// Option of `/reset`: the sandbox stays.
pub const KEEP_FILES: &str = "keep-files";

/// Option: the sandbox to work in, by its name.
pub const SANDBOX_OPTION: &str = "sandbox";
/// Option: the name of a sandbox.
pub const NAME: &str = "name";
/// Option: the snapshot that a new sandbox begins with.
pub const SNAPSHOT: &str = "snapshot";
/// Option: where in a shared sandbox the work is done.
pub const IN: &str = "in";
/// Its one value: in the common checkout, and not in a worktree.
pub const IN_SHARED: &str = "shared";

/// Option: whose key; or the provider of a new sandbox.
pub const PROVIDER: &str = "provider";
/// Option: how agents are run in a new sandbox.
pub const RUNTIME: &str = "runtime";
/// Option of the setup: the provider at which new sandboxes are made.
pub const SANDBOXES: &str = "sandboxes";
/// Its value that leaves it to the operator again.
pub const NONE: &str = "none";
/// Option of the keys: take it away.
pub const REMOVE: &str = "remove";

/// Subcommand of the settings: show them.
pub const SHOW: &str = "show";
/// Subcommand of the settings: set or clear a default.
pub const DEFAULT: &str = "default";
/// Subcommand of the settings: let somebody or somewhere in.
pub const ALLOW: &str = "allow";
/// Subcommand of the settings: take that back.
pub const DISALLOW: &str = "disallow";
/// Option: what a default is of.
pub const WHAT: &str = "what";
/// Option: the value that becomes the default.
pub const VALUE: &str = "value";
/// Option: the channel that may use Bobbin, or no longer.
pub const CHANNEL: &str = "channel";
/// Option: the role that may use Bobbin, or no longer.
pub const ROLE: &str = "role";
/// Option: the person who may use Bobbin, or no longer.
pub const PERSON: &str = "person";

/// Manage Server, as Discord writes permissions. Administrators of the server can change who sees the command; who may
/// change the settings is decided where they are written.
const MANAGE_SERVER: &str = "32";
/// Characters that may be typed as a name; what one looks like is said where it is read.
const NAME_CHARS_MAX: u64 = 100;

/// Kinds of channels that tasks can be started in: text and announcements.
const TASK_CHANNELS: [u64; 2] = [0, 5];

/// The answer to `/help`, in Discord's Markdown.
pub const HELP_TEXT: &str = "Every thread gets its own sandbox with a coding agent in it.\n\
- `/sandbox` in a channel starts a thread for a task; in a thread it goes on there. Choose a repository, model or agent with its options.\n\
- `/say`, the Reply button, or **Apps > Send to sandbox** on a message go on in the thread's sandbox. Its option `now` sends it into what is running.\n\
- `/status` says what the thread's sandbox is doing, `/diff` what its last task changed in the files.\n\
- `/sandbox-name` names the thread's sandbox, so that other threads can work in it too: with the option `sandbox` of `/sandbox`, or \
with `/sandbox-connect`. `/sandbox-list` shows those there are, `/sandbox-destroy` deletes one for everybody.\n\
- `/stop` ends what is running, `/stop all` also drops what waits, `/reset` gives the thread a fresh sandbox, with `keep-files` a new conversation in the same one.\n\
- `/sandbox-config` is for people who manage the server: who may use it where, and defaults. With `/sandbox-setup` they \
say where new sandboxes are made, and store keys of the server's own.\n\
A sandbox that is not used is paused, and wakes with the next prompt.";

/// The whole set, as `PUT /applications/{id}/commands` takes it: for guilds only, never direct messages or user installs.
#[must_use]
pub fn commands() -> Value {
    let mut set = vec![
        slash(SANDBOX, "Give a task to a coding agent in its own sandbox", {
            let mut options = prompt("What shall be done", &[Kind::Repo, Kind::Model, Kind::Agent]);
            options.extend(sandbox_options());
            options
        }),
        slash(SAY, "Go on in this thread's sandbox", {
            let mut options = prompt("What shall happen next", &[Kind::Model, Kind::Agent]);
            options.push(option(5, NOW, "Send it into what is running, instead of after it"));
            options
        }),
        slash(STATUS, "What this thread's sandbox is doing", Vec::new()),
        slash(DIFF, "What the last task in this thread changed in the files", Vec::new()),
        slash(
            STOP,
            "End what is running in this thread",
            vec![option(5, ALL, "Also drop everything that waits behind it")],
        ),
        slash(
            RESET,
            "Give this thread a fresh sandbox",
            vec![option(
                5,
                KEEP_FILES,
                "Keep the sandbox with its files: only the conversation begins anew",
            )],
        ),
        slash(
            NAME_SANDBOX,
            "Give this thread's sandbox a name, so that other threads can share it",
            {
                let mut name = option(3, NAME, "1 to 40 of a-z, 0-9 and -, for example frontend-2");
                name["required"] = json!(true);
                name["min_length"] = json!(1);
                name["max_length"] = json!(NAME_CHARS_MAX);
                vec![name]
            },
        ),
        slash(LIST, "The sandboxes of this server that have a name", Vec::new()),
        slash(
            CONNECT,
            "Let this thread work in another sandbox",
            vec![suggested(NAME, "Which one; leave it out for one of the thread's own")],
        ),
        slash(
            DESTROY,
            "Delete a sandbox for everybody who works in it; asks first",
            vec![suggested(NAME, "Which one; leave it out for this thread's")],
        ),
        settings(),
        setup(),
        slash(HELP, "How to use it", Vec::new()),
        json!({"type": 3, "name": SEND}),
    ];
    for command in &mut set {
        command["contexts"] = json!([0]);
        command["integration_types"] = json!([0]);
    }
    Value::Array(set)
}

fn slash(name: &str, about: &str, options: Vec<Value>) -> Value {
    json!({"type": 1, "name": name, "description": about, "options": options})
}

fn option(kind: u64, name: &str, about: &str) -> Value {
    json!({"type": kind, "name": name, "description": about, "required": false})
}

/// The options of a task: its words first, because what is required comes first.
fn prompt(about: &str, choices: &[Kind]) -> Vec<Value> {
    let mut words = option(3, PROMPT, about);
    words["required"] = json!(true);
    words["min_length"] = json!(1);
    words["max_length"] = json!(OPTION_TEXT_UNITS_MAX);
    let file = option(11, FILE, "A file that the agent can read");
    [words, file].into_iter().chain(choices.iter().map(|kind| choice(*kind))).collect()
}

/// An option whose values are suggested while somebody types.
fn choice(kind: Kind) -> Value {
    let about = match kind {
        Kind::Repo => "Repository to clone, as owner/name or an https address",
        Kind::Model => "Model for this task, as provider/model",
        Kind::Agent => "Agent: plan only plans; claude is Claude Code, codex Codex",
        Kind::Provider => {
            "Provider of a new sandbox; with a new name beside it one of that name is made"
        }
        Kind::Runtime => "How agents are run in a new sandbox: opencode, compat, native or outside",
    };
    suggested(word(kind), about)
}

/// The options that say in which sandbox a task is done.
fn sandbox_options() -> [Value; 5] {
    let mut shared = option(3, IN, "Where in a shared sandbox the work is done");
    shared["choices"] =
        json!([{"name": "shared: in the common checkout, not in a worktree", "value": IN_SHARED}]);
    let text = |name: &str, about: &str| {
        let mut text = option(3, name, about);
        text["max_length"] = json!(VALUE_BYTES_MAX);
        text
    };
    [
        suggested(
            SANDBOX_OPTION,
            "A sandbox that has a name; leave it out for one of the thread's own",
        ),
        choice(Kind::Provider),
        choice(Kind::Runtime),
        text(SNAPSHOT, "Snapshot that a new sandbox begins with"),
        shared,
    ]
}

fn suggested(name: &str, about: &str) -> Value {
    let mut option = option(3, name, about);
    option["max_length"] = json!(VALUE_BYTES_MAX);
    option["autocomplete"] = json!(true);
    option
}

fn channel(about: &str) -> Value {
    let mut channel = option(7, CHANNEL, about);
    channel["channel_types"] = json!(TASK_CHANNELS);
    channel
}

fn settings() -> Value {
    let mut what = option(3, WHAT, "What the default is of");
    what["required"] = json!(true);
    what["choices"] = json!([
        {"name": "Repository", "value": word(Kind::Repo)},
        {"name": "Model", "value": word(Kind::Model)},
        {"name": "Agent", "value": word(Kind::Agent)},
        {"name": "Sandbox provider", "value": word(Kind::Provider)},
        {"name": "Runtime", "value": word(Kind::Runtime)},
    ]);
    let default = vec![
        what,
        suggested(VALUE, "The new default; leave it out to clear the present one"),
        channel("For this channel only; leave it out for the whole server"),
    ];
    let listed = |verb: &str| {
        vec![
            channel(&format!("The channel to {verb}")),
            option(8, ROLE, &format!("The role to {verb}")),
            option(6, PERSON, &format!("The person to {verb}")),
        ]
    };
    let subcommand = |name: &str, about: &str, options: Vec<Value>| json!({"type": 1, "name": name, "description": about, "options": options});
    let mut settings = slash(
        CONFIG,
        "See and change who may use Bobbin in this server, and its defaults",
        vec![
            subcommand(
                SHOW,
                "Who may use it where, the defaults, and the last changes",
                Vec::new(),
            ),
            subcommand(
                DEFAULT,
                "Set or clear the default repository, model, agent, sandbox provider or runtime",
                default,
            ),
            subcommand(
                ALLOW,
                "Let a channel, role or person use it; the first one closes it to all others",
                listed("let in"),
            ),
            subcommand(
                DISALLOW,
                "Take that back; the last one taken back opens it again",
                listed("take off the list"),
            ),
        ],
    );
    settings["default_member_permissions"] = json!(MANAGE_SERVER);
    settings
}

fn setup() -> Value {
    let mut provider = option(3, PROVIDER, "Whose key; leave it out to see which there are");
    let choices = Key::OF_TENANTS.into_iter();
    provider["choices"] =
        choices.map(|key| json!({"name": key.brand(), "value": key.provider()})).collect();
    let remove = option(5, REMOVE, "Take the key away instead of storing one");
    let sandboxes = suggested(
        SANDBOXES,
        "Provider at which new sandboxes are made; none leaves it to the operator",
    );
    let mut setup = slash(
        SETUP,
        "See and change where new sandboxes are made, and keys of this server's own",
        vec![provider, remove, sandboxes, channel("With sandboxes: for this channel only")],
    );
    setup["default_member_permissions"] = json!(MANAGE_SERVER);
    setup
}

/// The same set for one guild, whose commands have no contexts.
#[must_use]
pub fn guild_commands() -> Value {
    let mut set = commands();
    for command in set.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        command.remove("contexts");
        command.remove("integration_types");
    }
    set
}

/// What writing the wanted set would do to one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// A command of ours that Discord does not know yet.
    Added(String),
    /// It becomes another one.
    Changed(String),
    /// A command that Discord has and we have not: registering removes it.
    Removed(String),
}

/// What writing the wanted set would change of what Discord lists, whatever else it says about each command. What is no
/// list counts as an empty one.
#[must_use]
pub fn differences(listed: &Value, wanted: &Value) -> Vec<Difference> {
    let list = |set: &Value| set.as_array().cloned().unwrap_or_default();
    let (listed, wanted) = (list(listed), list(wanted));
    let kind = |one: &Value| one["type"].as_u64().unwrap_or(1);
    let same = |a: &Value, b: &Value| a["name"] == b["name"] && kind(a) == kind(b);
    let name = |one: &Value| {
        let slash = if kind(one) == 1 { "/" } else { "" };
        format!("{slash}{}", one["name"].as_str().unwrap_or_default())
    };
    let written =
        wanted.iter().filter_map(|want| match listed.iter().find(|have| same(have, want)) {
            None => Some(Difference::Added(name(want))),
            Some(have) if covers(have, want) => None,
            Some(_) => Some(Difference::Changed(name(want))),
        });
    let gone = listed
        .iter()
        .filter(|have| !wanted.iter().any(|want| same(have, want)))
        .map(|have| Difference::Removed(name(have)));
    written.chain(gone).collect()
}

fn covers(have: &Value, want: &Value) -> bool {
    match (have, want) {
        (Value::Object(have), Value::Object(want)) => {
            want.iter().all(|(name, want)| covers(have.get(name).unwrap_or(&Value::Null), want))
        }
        (Value::Array(have), Value::Array(want)) => {
            have.len() == want.len() && have.iter().zip(want).all(|(have, want)| covers(have, want))
        }
        // Discord leaves out what has its default.
        (Value::Null, want) => {
            matches!(want, Value::Bool(false)) || want.as_array().is_some_and(Vec::is_empty)
        }
        (have, want) => have == want,
    }
}

/// The word that the command's choices and options use.
pub(super) const fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Repo => "repo",
        Kind::Model => "model",
        Kind::Agent => "agent",
        Kind::Provider => PROVIDER,
        Kind::Runtime => RUNTIME,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_sentences_name_are_registered() {
        let tenant = bobbin_core::base::ids::Tenant::discord("1");
        let (all, of_guilds) = (commands(), guild_commands());
        let sets = [&all, &of_guilds].map(|set| set.as_array().cloned().unwrap_or_default());
        for named in bobbin_core::shown::commands::Command::ALL {
            let text = tenant.command(named);
            let is_there =
                sets.iter().flatten().any(|one| one["name"].as_str() == text.strip_prefix('/'));
            assert!(is_there, "{text}");
        }
    }

    #[test]
    fn the_registered_set_obeys_discords_rules_for_commands() {
        super::super::check::assert_fits(
            "/applications/{application_id}/commands",
            "put",
            &commands(),
        );
        super::super::check::assert_fits(
            "/applications/{application_id}/guilds/{guild_id}/commands",
            "put",
            &guild_commands(),
        );
        let set = commands();
        for command in set.as_array().expect("list") {
            let slash = command["type"] == 1;
            assert_eq!(
                slash,
                command["description"].is_string(),
                "a menu command has no description"
            );
        }
    }

    #[test]
    fn a_listed_set_counts_as_registered_until_something_differs() {
        let mut listed = commands();
        for command in listed.as_array_mut().expect("list") {
            command["id"] = json!("1");
            command["nsfw"] = json!(false);
            if command["options"] == json!([]) {
                command.as_object_mut().expect("object").remove("options");
            }
        }
        listed.as_array_mut().expect("list").reverse();
        assert_eq!(differences(&listed, &commands()), []);
        let mut other = listed.clone();
        other[0]["name"] = json!("Send elsewhere");
        assert_eq!(
            differences(&other, &commands()),
            [
                Difference::Added("Send to sandbox".to_owned()),
                Difference::Removed("Send elsewhere".to_owned())
            ]
        );
        let mut more = listed.clone();
        let all = more.as_array_mut().expect("list");
        all.push(json!({"name": "old", "type": 1}));
        let help = all.iter_mut().find(|one| one["name"] == HELP);
        help.expect("it is listed")["description"] = json!("Something else");
        assert_eq!(
            differences(&more, &commands()),
            [Difference::Changed("/help".to_owned()), Difference::Removed("/old".to_owned())]
        );
        let nothing = differences(&json!({"message": "401"}), &commands());
        assert_eq!(nothing.len(), commands().as_array().map_or(0, Vec::len));
    }
}
