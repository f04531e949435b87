//! The commands that are registered with Discord.

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

/// Name of the option that holds the words.
pub const PROMPT: &str = "prompt";
/// Name of the option that holds a file.
pub const FILE: &str = "file";

/// What `/help` says.
pub const HELP_TEXT: &str = "Every thread gets its own sandbox with a coding agent in it.\n\
- `/sandbox` in a channel starts a thread for a task; in a thread it goes on there.\n\
- `/say`, the Reply button, or **Apps > Send to sandbox** on a message go on in the thread's sandbox.\n\
- `/status` says what the thread's sandbox is doing, `/stop` ends what is running, `/reset` gives the thread a fresh sandbox.\n\
A sandbox that is not used is paused, and wakes with the next prompt.";

/// The whole set, as `PUT /applications/{id}/commands` takes it: for guilds only, never direct messages or user installs.
#[must_use]
pub fn commands() -> Value {
    let prompt = |about: &str| {
        json!([
            {"type": 3, "name": PROMPT, "description": about, "required": true, "min_length": 1, "max_length": OPTION_TEXT_UNITS_MAX},
            {"type": 11, "name": FILE, "description": "A file that the agent can read", "required": false},
        ])
    };
    let slash = |name: &str, about: &str, options: Value| json!({"type": 1, "name": name, "description": about, "options": options, "contexts": [0], "integration_types": [0]});
    json!([
        slash(SANDBOX, "Give a task to a coding agent in its own sandbox", prompt("What shall be done")),
        slash(SAY, "Go on in this thread's sandbox", prompt("What shall happen next")),
        slash(STATUS, "What this thread's sandbox is doing", json!([])),
        slash(STOP, "End what is running in this thread", json!([])),
        slash(RESET, "Give this thread a fresh sandbox", json!([])),
        slash(HELP, "How to use it", json!([])),
        {"type": 3, "name": SEND, "contexts": [0], "integration_types": [0]},
    ])
}

/// The same set for one guild, whose commands have no contexts.
#[must_use]
pub fn guild_commands() -> Value {
    let mut set = commands();
    for command in set
        .as_array_mut()
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        command.remove("contexts");
        command.remove("integration_types");
    }
    set
}

/// Whether what Discord lists already is the wanted set, whatever else it says about each command.
#[must_use]
pub fn registered(listed: &Value, wanted: &Value) -> bool {
    let (Some(listed), Some(wanted)) = (listed.as_array(), wanted.as_array()) else {
        return false;
    };
    let same = |a: &Value, b: &Value| {
        a["name"] == b["name"] && a["type"].as_u64().unwrap_or(1) == b["type"].as_u64().unwrap_or(1)
    };
    listed.len() == wanted.len()
        && wanted.iter().all(|want| {
            listed
                .iter()
                .any(|have| same(have, want) && covers(have, want))
        })
}

fn covers(have: &Value, want: &Value) -> bool {
    match (have, want) {
        (Value::Object(have), Value::Object(want)) => want
            .iter()
            .all(|(name, want)| covers(have.get(name).unwrap_or(&Value::Null), want)),
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

#[cfg(test)]
mod tests {
    use super::*;

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
            let required: Vec<bool> = command["options"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|o| o["required"] == true)
                .collect();
            assert!(
                required.is_sorted_by(|a, b| a >= b),
                "required options come first"
            );
            assert!(
                !slash
                    || command["name"]
                        .as_str()
                        .expect("name")
                        .bytes()
                        .all(|b| b.is_ascii_lowercase())
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
        assert!(registered(&listed, &commands()));
        let mut other = listed.clone();
        other[0]["name"] = json!("Send elsewhere");
        assert!(!registered(&other, &commands()));
        let mut more = listed.clone();
        more.as_array_mut()
            .expect("list")
            .push(json!({"name": "old", "type": 1}));
        assert!(!registered(&more, &commands()));
        assert!(!registered(&json!({"message": "401"}), &commands()));
    }
}
