//! The commands as registered with Discord and described in its help.

use bobbin_core::records::publication::{BODY_CHARS_MAX, SUBJECT_CHARS_MAX};
use bobbin_core::tenant::commands::argument::{BODY, SUBJECT};
use bobbin_core::tenant::commands::{
    Argument, ArgumentKind, CommandRow, TABLE, Topic, WhoMay, Writing, help as help_of,
};
use bobbin_core::tenant::keys::Key;
use bobbin_core::tenant::settings::VALUE_BYTES_MAX;
use bobbin_core::tenant::setup_link::OWNERS;
use serde_json::{Value, json};

use super::bounds::OPTION_TEXT_UNITS_MAX;

/// The menu command on a message.
pub const SEND: &str = "Send to sandbox";

/// Manage Server, in Discord's notation for permissions. Server administrators can change who sees the command;
/// permission is checked when it is carried out.
const MANAGE_SERVER: &str = "32";
/// Maximum characters of a typed name; the format is checked when it is parsed.
const NAME_CHARS_MAX: u64 = 100;

/// Channel types in which tasks can be started: text and announcements.
const TASK_CHANNELS: [u64; 2] = [0, 5];

/// The answer to `/help`, in Discord's Markdown.
#[must_use]
pub fn help() -> String {
    let topics = Topic::ALL.map(|topic| help_of(Writing::Slash, &[topic]));
    let lines: Vec<String> =
        topics.iter().filter(|said| !said.is_empty()).map(|said| format!("- {said}\n")).collect();
    format!(
        "Every thread gets its own sandbox with a coding agent in it.\n{}An unused sandbox is paused, and wakes with \
the next prompt.",
        lines.concat()
    )
}

/// The whole set, as `PUT /applications/{id}/commands` takes it: for guilds only, never direct messages or user
/// installs.
#[must_use]
pub fn commands() -> Value {
    let menu = json!({"type": 3, "name": SEND});
    let mut set: Vec<Value> = TABLE.iter().map(slash).chain([menu]).collect();
    for command in &mut set {
        command["contexts"] = json!([0]);
        command["integration_types"] = json!([0]);
    }
    Value::Array(set)
}

fn slash(row: &CommandRow) -> Value {
    let options = options(row.arguments);
    let mut command =
        json!({"type": 1, "name": row.name, "description": row.about, "options": options});
    if row.who == WhoMay::Managers {
        command["default_member_permissions"] = json!(MANAGE_SERVER);
    }
    command
}

fn options(arguments: &[Argument]) -> Vec<Value> {
    arguments.iter().map(option).collect()
}

fn option(argument: &Argument) -> Value {
    let kind = match argument.takes {
        ArgumentKind::Subcommand(_) => 1,
        ArgumentKind::Flag => 5,
        ArgumentKind::Person => 6,
        ArgumentKind::Channel => 7,
        ArgumentKind::Role => 8,
        ArgumentKind::File => 11,
        _ => 3,
    };
    let mut option = json!({"type": kind, "name": argument.name, "description": argument.about});
    let bounds = match argument.takes {
        ArgumentKind::Subcommand(arguments) => {
            option["options"] = json!(options(arguments));
            return option;
        }
        ArgumentKind::Task => json!({"min_length": 1, "max_length": OPTION_TEXT_UNITS_MAX}),
        ArgumentKind::NewName => json!({"min_length": 1, "max_length": NAME_CHARS_MAX}),
        ArgumentKind::Sandbox | ArgumentKind::Kind(_) | ArgumentKind::Default => {
            json!({"max_length": VALUE_BYTES_MAX, "autocomplete": true})
        }
        ArgumentKind::Text => json!({"max_length": match argument.name {
            SUBJECT => SUBJECT_CHARS_MAX,
            BODY => BODY_CHARS_MAX,
            _ => VALUE_BYTES_MAX,
        }}),
        ArgumentKind::OneOf(values) => json!({"choices": choices(values.iter().copied())}),
        ArgumentKind::KeyOwner => {
            let keys = Key::OF_TENANTS.into_iter();
            let values = keys.filter_map(|key| Some((key.brand(), key.provider()?)));
            json!({"choices": choices(values.chain([("GitHub", OWNERS)]))})
        }
        ArgumentKind::Channel => json!({"channel_types": TASK_CHANNELS}),
        ArgumentKind::File | ArgumentKind::Flag | ArgumentKind::Role | ArgumentKind::Person => {
            json!({})
        }
    };
    option["required"] = json!(argument.required);
    for (name, bound) in bounds.as_object().into_iter().flatten() {
        option[name] = bound.clone();
    }
    option
}

fn choices(values: impl Iterator<Item = (&'static str, &'static str)>) -> Vec<Value> {
    values.map(|(shown, value)| json!({"name": shown, "value": value})).collect()
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

/// How writing the wanted set would change one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// A command of ours that Discord does not know yet.
    Added(String),
    /// A command whose definition changes.
    Changed(String),
    /// A command that Discord has and we do not: registering removes it.
    Removed(String),
}

/// How writing the wanted set would change Discord's list; other fields that Discord returns are ignored. Anything but
/// a list counts as an empty one.
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
        // Discord omits defaults.
        (Value::Null, want) => {
            matches!(want, Value::Bool(false)) || want.as_array().is_some_and(Vec::is_empty)
        }
        (have, want) => have == want,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exact registered commands: a change shows up here, and is recorded with `BOBBIN_SNAPSHOTS=write`.
    #[test]
    fn the_registered_set_is_the_recorded_one() {
        crate::recorded::assert_recorded("discord.json", &format!("{:#}\n", commands()));
        crate::recorded::assert_recorded("discord-help.md", &format!("{}\n", help()));
    }

    #[test]
    fn command_set_fits_discord_schema() {
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
    fn only_real_command_changes_count() {
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
        let help = all.iter_mut().find(|one| one["name"] == "help");
        help.expect("it is listed")["description"] = json!("Something else");
        assert_eq!(
            differences(&more, &commands()),
            [Difference::Changed("/help".to_owned()), Difference::Removed("/old".to_owned())]
        );
        let nothing = differences(&json!({"message": "401"}), &commands());
        assert_eq!(nothing.len(), commands().as_array().map_or(0, Vec::len));
    }
}
