//! The data of a command: its registered shape, a person's values, and the resolved objects.

use super::permissions::{MEMBER_PERMISSIONS, bot_permissions};
use super::users::membership;
use super::{commands, stored_message};
use crate::action::{ActionError, refused};
use crate::hub::Hub;
use crate::json::{JsonFields, fields, loose_text, units};
use crate::store::ChatStore;
use serde_json::{Map, Value, json};

/// Who acts, where, and with which values.
pub struct ActionContext<'a> {
    pub hub: &'a Hub,
    pub store: &'a ChatStore,
    pub act: &'a Value,
    pub user_id: &'a str,
    pub channel_id: &'a str,
}

fn registered(context: &ActionContext<'_>, name: &str, kind: u64) -> Result<Value, ActionError> {
    for scope in [context.hub.seeds.guild_id.as_str(), "global"] {
        let commands = commands::registered(context.store, scope)?;
        if let Some(found) =
            commands.into_iter().find(|one| one.str("name") == name && commands::kind(one) == kind)
        {
            return Ok(found);
        }
    }
    refused(format!("no command {name:?} is registered (PUT /applications/{{id}}/commands)"))
}

pub fn command(context: &ActionContext<'_>, kind: u64) -> Result<Value, ActionError> {
    let mut words = context.act.str("name").split_whitespace();
    let command = registered(context, words.next().unwrap_or_default(), 1)?;
    let mut resolved = Map::new();
    let mut data = json!({"id": command["id"], "name": command["name"], "type": 1});
    if command.has("guild_id") {
        data["guild_id"] = command["guild_id"].clone();
    }
    if let Some(raw) = context.act["options"].as_array() {
        data["options"] = json!(raw);
    } else {
        // Each subcommand word goes one level deeper.
        let (mut level, mut names) = (command.clone(), Vec::new());
        for word in words {
            let Some(next) = level
                .list("options")
                .iter()
                .find(|one| one.str("name") == word && one.int("type") <= 2)
                .cloned()
            else {
                return refused(format!("{word:?} is not a subcommand"));
            };
            names.push((next["name"].clone(), next["type"].clone()));
            level = next;
        }
        let mut options = Value::Array(options(context, &level, kind == 4, &mut resolved)?);
        for (name, of) in names.into_iter().rev() {
            options = json!([{"name": name, "type": of, "options": options}]);
        }
        data["options"] = options;
    }
    if !resolved.is_empty() {
        data["resolved"] = Value::Object(resolved);
    }
    Ok(data)
}

/// The values in the command's order and types.
fn options(
    context: &ActionContext<'_>,
    level: &Value,
    partial: bool,
    resolved: &mut Map<String, Value>,
) -> Result<Vec<Value>, ActionError> {
    let mut options = Vec::new();
    let given = fields(&context.act["options"]);
    if let Some(stranger) =
        given.keys().find(|name| !level.list("options").iter().any(|one| one.str("name") == **name))
    {
        return refused(format!("the command has no option {stranger:?}"));
    }
    for option in level.list("options").iter().filter(|one| one.int("type") > 2) {
        let name = option.str("name");
        let focused = partial && context.act.str("focused") == name;
        let value = given.get(name).filter(|value| !value.is_null() && *value != "");
        let Some(value) = value else {
            if focused {
                options.push(
                    json!({"name": name, "type": option["type"], "value": "", "focused": true}),
                );
            } else if option.flag("required") && !partial {
                return refused(format!("the option {name:?} is required"));
            }
            continue;
        };
        let text = loose_text(&context.act["options"], name);
        let max = option["max_length"].as_u64().unwrap_or(6000);
        if option.int("type") == 3 && units(&text) as u64 > max {
            return refused(format!("{name:?} takes at most {max} characters"));
        }
        let value = match option.int("type") {
            5 => json!(text == "true"),
            6..=8 | 11 => {
                resolve(context, option.int("type"), &text, resolved)?;
                json!(text)
            }
            _ => value.clone(),
        };
        let mut entry = json!({"name": name, "type": option["type"], "value": value});
        if focused {
            entry["focused"] = true.into();
        }
        options.push(entry);
    }
    Ok(options)
}

/// Adds the object for an id: user 6, channel 7, role 8, attachment 11.
pub fn resolve(
    context: &ActionContext<'_>,
    kind: u64,
    id: &str,
    resolved: &mut Map<String, Value>,
) -> Result<(), ActionError> {
    let mut add = |group: &str, object: Value| {
        let entry = resolved.entry(group).or_insert_with(|| json!({}));
        entry[id] = object;
    };
    if let (6, Some(person)) = (kind, context.store.get("d.user", "", id)?) {
        let mut member = membership(&person);
        member.as_object_mut().map(|one| one.remove("user"));
        add("users", person["user"].clone());
        add("members", member);
    } else if let (7, Some(mut channel)) =
        (kind, context.store.get("d.channel", &context.hub.seeds.guild_id, id)?)
    {
        channel["permissions"] = MEMBER_PERMISSIONS.into();
        channel["app_permissions"] = bot_permissions(context.store)?.into();
        add("channels", channel);
    } else if let (8, Some(guild)) =
        (kind, context.store.get("d.guild", "", &context.hub.seeds.guild_id)?)
    {
        let role = guild.list("roles").iter().find(|one| one.str("id") == id);
        let Some(role) = role.cloned() else {
            return refused(format!("there is no role {id:?}"));
        };
        add("roles", role);
    } else if let (11, Some(mut attachment)) = (kind, context.store.get("d.upload", "", id)?) {
        attachment["ephemeral"] = true.into();
        add("attachments", attachment);
    } else {
        return refused(format!("there is nothing with the id {id:?}"));
    }
    Ok(())
}

/// A message that this person can see.
pub fn visible_message(context: &ActionContext<'_>) -> Result<Value, ActionError> {
    let kept =
        stored_message::find(context.store, context.channel_id, context.act.str("message_id"))?;
    match kept.filter(|kept| !kept.has("to") || kept.str("to") == context.user_id) {
        Some(kept) => Ok(kept["message"].clone()),
        None => refused("this person cannot see such a message here (message_id)"),
    }
}

pub fn message_command(context: &ActionContext<'_>) -> Result<Value, ActionError> {
    let command = registered(context, context.act.str("name"), 3)?;
    let target = visible_message(context)?;
    let id = target.str("id").to_owned();
    Ok(
        json!({"id": command["id"], "name": command["name"], "type": 3, "target_id": id, "resolved": {"messages": {(id): target}}}),
    )
}
