//! Application commands: registration per scope, and Discord's checks.

use super::refusal::{DiscordRefusal, FormErrors, RouteResult};
use super::users::known_guild;
use crate::http::{ApiRequest, ApiResponse};
use crate::hub::Hub;
use crate::json::{JsonFields, units};
use crate::store::{ChatStore, ChatStoreError};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The commands of a scope: `global` or a guild.
pub fn serve(
    hub: &Hub,
    store: &ChatStore,
    call: &ApiRequest,
    method: &str,
    app: &str,
    scope: &str,
) -> RouteResult {
    if app != hub.discord.application_id {
        return Err(DiscordRefusal::new(
            403,
            20_012,
            "You are not authorized to perform this action on this application",
        ));
    }
    if scope != "global" {
        known_guild(store, scope)?;
    }
    let before = registered(store, scope)?;
    let sent: Vec<Value> = match method {
        "GET" => return Ok(ApiResponse::json(Value::Array(before))),
        "PUT" => call
            .body
            .as_array()
            .cloned()
            .ok_or_else(|| DiscordRefusal::new(400, 50_035, "Invalid Form Body"))?,
        _ => return Err(DiscordRefusal::new(405, 0, "405: Method Not Allowed")),
    };
    check_commands(&sent)?;
    let same = |a: &Value, b: &Value| a.str("name") == b.str("name") && kind(a) == kind(b);
    let settled: Vec<Value> = sent
        .into_iter()
        .map(|command| {
            let known =
                before.iter().find(|one| same(one, &command)).map(|one| one.str("id").to_owned());
            completed(hub, command, known, scope)
        })
        .collect();
    store.put("d.commands", "", scope, &json!(settled))?;
    hub.notify(json!({"kind": "channels", "platform": "discord"}));
    Ok(ApiResponse::json(Value::Array(settled)))
}

pub fn registered(store: &ChatStore, scope: &str) -> Result<Vec<Value>, ChatStoreError> {
    Ok(store
        .get("d.commands", "", scope)?
        .and_then(|list| list.as_array().cloned())
        .unwrap_or_default())
}

pub fn kind(command: &Value) -> u64 {
    command["type"].as_u64().unwrap_or(1)
}

/// A command with Discord's own fields; a known one keeps its id.
fn completed(hub: &Hub, mut command: Value, known: Option<String>, scope: &str) -> Value {
    command["id"] = known.unwrap_or_else(|| hub.ids.snowflake()).into();
    command["application_id"] = hub.discord.application_id.as_str().into();
    command["version"] = hub.ids.snowflake().into();
    command["type"] = kind(&command).into();
    if scope != "global" {
        command["guild_id"] = scope.into();
    }
    for (field, value) in [
        ("description", json!("")),
        ("default_member_permissions", Value::Null),
        ("nsfw", json!(false)),
    ] {
        if command.get(field).is_none() {
            command[field] = value;
        }
    }
    command
}

fn check_commands(commands: &[Value]) -> Result<(), DiscordRefusal> {
    let mut wrong = FormErrors::default();
    let mut seen = BTreeSet::new();
    for kind_of in 1..=3 {
        let max = if kind_of == 1 { 100 } else { 15 };
        if commands.iter().filter(|one| kind(one) == kind_of).count() > max {
            wrong.at("_", "APPLICATION_COMMAND_TOO_MANY", "Too many commands of one type.");
        }
    }
    for (at, command) in commands.iter().enumerate() {
        let name = command.str("name");
        if !seen.insert((kind(command), name.to_owned())) {
            wrong.at(
                &format!("{at}.name"),
                "APPLICATION_COMMANDS_DUPLICATE_NAME",
                "Application command names must be unique",
            );
        }
        if kind(command) == 1 {
            check_name(name, &format!("{at}.name"), &mut wrong);
            check_description(command, &at.to_string(), &mut wrong);
            check_options(command, &at.to_string(), &mut wrong);
        } else {
            if !(1..=32).contains(&units(name)) {
                wrong.at(
                    &format!("{at}.name"),
                    "BASE_TYPE_BAD_LENGTH",
                    "Must be between 1 and 32 in length.",
                );
            }
            if !command.str("description").is_empty() || !command.list("options").is_empty() {
                wrong.at(
                    &format!("{at}.description"),
                    "APPLICATION_COMMAND_INVALID",
                    "Context menu commands cannot have description or options",
                );
            }
        }
    }
    wrong.done()
}

fn check_name(name: &str, path: &str, wrong: &mut FormErrors) {
    let fits = |c: char| c.is_alphanumeric() || "-_'".contains(c);
    if !(1..=32).contains(&name.chars().count())
        || !name.chars().all(fits)
        || name.to_lowercase() != name
    {
        wrong.at(path, "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid");
    }
}

fn check_description(one: &Value, path: &str, wrong: &mut FormErrors) {
    if !(1..=100).contains(&units(one.str("description"))) {
        wrong.at(
            &format!("{path}.description"),
            "BASE_TYPE_BAD_LENGTH",
            "Must be between 1 and 100 in length.",
        );
    }
}

fn check_options(command: &Value, path: &str, wrong: &mut FormErrors) {
    let options = command.list("options");
    if options.len() > 25 {
        wrong.at(
            &format!("{path}.options"),
            "BASE_TYPE_MAX_LENGTH",
            "Must be 25 or fewer in length.",
        );
    }
    let mut optional_seen = false;
    for (at, option) in options.iter().enumerate() {
        let here = format!("{path}.options.{at}");
        check_name(option.str("name"), &format!("{here}.name"), wrong);
        check_description(option, &here, wrong);
        if !(1..=11).contains(&option.int("type")) {
            wrong.at(
                &format!("{here}.type"),
                "BASE_TYPE_CHOICES",
                "Value must be one of {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}.",
            );
        }
        if optional_seen && option.flag("required") {
            wrong.at(
                &format!("{here}.required"),
                "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID",
                "Required options must be placed before non-required options",
            );
        }
        optional_seen |= option.int("type") > 2 && !option.flag("required");
        if option.list("choices").len() > 25
            || (option.flag("autocomplete") && !option.list("choices").is_empty())
        {
            wrong.at(
                &format!("{here}.choices"),
                "APPLICATION_COMMAND_OPTIONS_INVALID",
                "At most 25 choices, and none with autocomplete",
            );
        }
        if option.int("max_length") > 6000 {
            wrong.at(
                &format!("{here}.max_length"),
                "NUMBER_TYPE_MAX",
                "int value should be less than or equal to 6000.",
            );
        }
        check_options(option, &here, wrong);
    }
}
