//! Who the bot is: its user, its application, its commands, its guild.

use super::check::Faulty;
use super::interaction;
use super::{ADMIN_PERMISSIONS, MEMBER_PERMISSIONS, Outcome, Refusal};
use crate::gate::{Call, Reply};
use crate::hub::Hub;
use crate::json::{Read, fields, units};
use crate::store::{Store, StoreError};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The bot's user object.
pub fn bot(hub: &Hub, store: &Store) -> Result<Value, StoreError> {
    let entry = store.get("d.user", "", &hub.discord.application_id)?;
    Ok(entry.map(|entry| entry["user"].clone()).unwrap_or_default())
}

pub fn me(hub: &Hub, store: &Store) -> Outcome {
    Ok(Reply::json(bot(hub, store)?))
}

pub fn user(store: &Store, id: &str) -> Outcome {
    let entry = store
        .get("d.user", "", id)?
        .ok_or_else(|| Refusal::new(404, 10_013, "Unknown User"))?;
    Ok(Reply::json(entry["user"].clone()))
}

pub fn guild(store: &Store, id: &str) -> Outcome {
    store
        .get("d.guild", "", id)?
        .map(Reply::json)
        .ok_or_else(|| Refusal::new(404, 10_004, "Unknown Guild"))
}

pub fn member(store: &Store, guild_id: &str, user: &str) -> Outcome {
    guild(store, guild_id)?;
    let entry = store
        .get("d.user", "", user)?
        .ok_or_else(|| Refusal::new(404, 10_007, "Unknown Member"))?;
    let mut member = membership(&entry);
    // The REST object has no computed permissions; only interactions carry them.
    member
        .as_object_mut()
        .map(|fields| fields.remove("permissions"));
    Ok(Reply::json(member))
}

/// A user as a member of the guild, with the effective permissions that interactions carry.
pub fn membership(entry: &Value) -> Value {
    json!({"user": entry["user"], "nick": null, "avatar": null, "banner": null, "roles": entry["roles"].as_array().cloned().unwrap_or_default(), "joined_at": "2026-01-04T20:21:10.139000+00:00",
        "premium_since": null, "deaf": false, "mute": false, "pending": false, "flags": 0, "communication_disabled_until": null,
        "permissions": if entry.flag("admin") { ADMIN_PERMISSIONS } else { MEMBER_PERMISSIONS }})
}

pub fn get(hub: &Hub, store: &Store) -> Outcome {
    let mut app = json!({"id": hub.discord.application_id, "name": "Bobbin", "icon": null, "description": "", "summary": "", "bot_public": true,
        "bot_require_code_grant": false, "verify_key": hub.discord_public_key(), "flags": 1 << 19, "tags": [], "hook": true,
        "interactions_endpoint_url": null, "integration_types_config": {"0": {}}, "bot": bot(hub, store)?});
    for (name, value) in fields(&store.get("d.app", "", "settings")?.unwrap_or_default()) {
        app[name] = value;
    }
    Ok(Reply::json(app))
}

/// Discord looks at an endpoint before it keeps its address: a PING must be answered, and one that is signed badly refused.
/// The refusal, where one of the two is not so.
pub async fn unfit_endpoint(hub: &Hub, call: &Call) -> Option<Reply> {
    let is_ours = call.token("Bot") == Some(hub.discord.bot_token.as_str());
    let url = call.body.str("interactions_endpoint_url");
    let segments = call.segments();
    if !is_ours
        || call.method != "PATCH"
        || !segments.ends_with(&["applications", "@me"])
        || url.is_empty()
    {
        return None;
    }
    let probed = interaction::probe(hub, Some(url)).await;
    let fits = probed["good"]["status"] == 200
        && probed["good"]["body"]["type"] == 1
        && probed["bad"]["status"] == 401;
    if fits {
        return None;
    }
    let mut wrong = Faulty::default();
    wrong.at(
        "interactions_endpoint_url",
        "APPLICATION_INTERACTIONS_ENDPOINT_URL_INVALID",
        "Validation failed. The specified interactions endpoint url could not be verified.",
    );
    wrong.done().err().map(|refusal| Reply {
        status: refusal.status,
        ..Reply::json(refusal.body)
    })
}

pub fn patch(hub: &Hub, store: &Store, call: &Call) -> Outcome {
    let mut wrong = Faulty::default();
    let url = call.body.str("interactions_endpoint_url");
    if !url.is_empty() && !url.starts_with("https://") && !url.starts_with("http://127.0.0.1:") {
        wrong.at(
            "interactions_endpoint_url",
            "URL_TYPE_INVALID_SCHEME",
            "Scheme must be one of ('https',).",
        );
    }
    let tags = call.body.list("tags");
    if tags.len() > 5
        || tags
            .iter()
            .any(|tag| units(tag.as_str().unwrap_or_default()) > 20)
    {
        wrong.at(
            "tags",
            "BASE_TYPE_MAX_LENGTH",
            "Must be 5 or fewer tags of 20 or fewer in length.",
        );
    }
    wrong.done()?;
    let mut settings = store
        .get("d.app", "", "settings")?
        .unwrap_or_else(|| json!({}));
    let settable = [
        "description",
        "tags",
        "install_params",
        "integration_types_config",
        "interactions_endpoint_url",
        "event_webhooks_url",
        "event_webhooks_status",
        "event_webhooks_types",
        "flags",
    ];
    for (name, value) in fields(&call.body)
        .into_iter()
        .filter(|(name, _)| settable.contains(&name.as_str()))
    {
        settings[name] = value;
    }
    store.put("d.app", "", "settings", &settings)?;
    get(hub, store)
}

/// The commands of a scope: `global` or a guild.
pub fn commands(
    hub: &Hub,
    store: &Store,
    call: &Call,
    method: &str,
    app: &str,
    scope: &str,
) -> Outcome {
    if app != hub.discord.application_id {
        return Err(Refusal::new(
            403,
            20_012,
            "You are not authorized to perform this action on this application",
        ));
    }
    if scope != "global" {
        guild(store, scope)?;
    }
    let before = registered(store, scope)?;
    let sent: Vec<Value> = match method {
        "GET" => return Ok(Reply::json(Value::Array(before))),
        "PUT" => call
            .body
            .as_array()
            .cloned()
            .ok_or_else(|| Refusal::new(400, 50_035, "Invalid Form Body"))?,
        "POST" => vec![call.body.clone()],
        _ => return Err(Refusal::new(405, 0, "405: Method Not Allowed")),
    };
    check_commands(&sent)?;
    let same = |a: &Value, b: &Value| a.str("name") == b.str("name") && kind(a) == kind(b);
    let settled: Vec<Value> = sent
        .into_iter()
        .map(|command| {
            let known = before
                .iter()
                .find(|one| same(one, &command))
                .map(|one| one.str("id").to_owned());
            settle(hub, command, known, scope)
        })
        .collect();
    let mut all = settled.clone();
    if method == "POST" {
        all.extend(
            before
                .into_iter()
                .filter(|one| !settled.iter().any(|new| same(new, one))),
        );
    }
    store.put("d.commands", "", scope, &Value::Array(all.clone()))?;
    hub.notify(json!({"kind": "channels", "platform": "discord"}));
    Ok(Reply::json(if method == "POST" {
        settled[0].clone()
    } else {
        Value::Array(all)
    }))
}

pub fn registered(store: &Store, scope: &str) -> Result<Vec<Value>, StoreError> {
    Ok(store
        .get("d.commands", "", scope)?
        .and_then(|list| list.as_array().cloned())
        .unwrap_or_default())
}

pub fn kind(command: &Value) -> u64 {
    command["type"].as_u64().unwrap_or(1)
}

fn settle(hub: &Hub, mut command: Value, known: Option<String>, scope: &str) -> Value {
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

fn check_commands(commands: &[Value]) -> Result<(), Refusal> {
    let mut wrong = Faulty::default();
    let mut seen = BTreeSet::new();
    for kind_of in 1..=3 {
        let max = if kind_of == 1 { 100 } else { 15 };
        if commands.iter().filter(|one| kind(one) == kind_of).count() > max {
            wrong.at(
                "_",
                "APPLICATION_COMMAND_TOO_MANY",
                "Too many commands of one type.",
            );
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

fn check_name(name: &str, path: &str, wrong: &mut Faulty) {
    let fits = |c: char| c.is_alphanumeric() || "-_'".contains(c);
    if !(1..=32).contains(&name.chars().count())
        || !name.chars().all(fits)
        || name.to_lowercase() != name
    {
        wrong.at(
            path,
            "APPLICATION_COMMAND_INVALID_NAME",
            "Command name is invalid",
        );
    }
}

fn check_description(one: &Value, path: &str, wrong: &mut Faulty) {
    if !(1..=100).contains(&units(one.str("description"))) {
        wrong.at(
            &format!("{path}.description"),
            "BASE_TYPE_BAD_LENGTH",
            "Must be between 1 and 100 in length.",
        );
    }
}

fn check_options(command: &Value, path: &str, wrong: &mut Faulty) {
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
