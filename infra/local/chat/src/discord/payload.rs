//! What Discord would send: the full interaction for what a person did in the page.
//!
//! It checks what Discord's own client checks (required options, lengths, disabled buttons); options given as a raw list are
//! passed on unchecked, as a modified client could.

use super::app::{self, membership};
use super::channel::bot_permissions;
use super::message;
use crate::gate::loose_text;
use crate::hub::Hub;
use crate::ids::{now_ms, random_text};
use crate::json::{Read, fields, units};
use crate::limits::FILE_BYTES_MAX;
use crate::store::{Store, StoreError};
use serde_json::{Map, Value, json};

/// Why a person could not do this.
#[derive(Debug, thiserror::Error)]
pub enum Impossible {
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn refused<T>(why: impl Into<String>) -> Result<T, Impossible> {
    Err(Impossible::Refused(why.into()))
}

/// The record of an interaction and the body to deliver.
pub struct Built {
    pub record: Value,
    pub payload: Value,
}

pub fn build(hub: &Hub, store: &Store, act: &Value) -> Result<Built, Impossible> {
    let user_id = if act.has("user_id") {
        act.str("user_id")
    } else {
        &hub.seeds.user_id
    };
    let channel_id = if act.has("channel_id") {
        act.str("channel_id")
    } else {
        &hub.seeds.channel_id
    };
    let Some(person) = store
        .get("d.user", "", user_id)?
        .filter(|one| !one["user"].flag("bot"))
    else {
        return refused("there is no such person (user_id)");
    };
    let Some(channel) = store.get("d.channel", &hub.seeds.guild_id, channel_id)? else {
        return refused("there is no such channel or thread (channel_id)");
    };
    if channel["thread_metadata"].flag("archived") {
        return refused("this thread is archived; write a message to wake it, then try again");
    }
    let scene = Scene {
        hub,
        store,
        act,
        user_id,
        channel_id,
    };
    let (kind, data, source) = match act.str("type") {
        "command" => (2, scene.command(2)?, None),
        "autocomplete" => (4, scene.command(4)?, None),
        "message_command" => (2, scene.message_command()?, None),
        "component" => scene.component()?,
        "modal" => scene.modal()?,
        other => {
            return refused(format!(
                "unknown type {other:?}: command, autocomplete, message_command, component, modal or message"
            ));
        }
    };
    let (id, token) = (hub.ids.snowflake(), random_text(64));
    let mut shown_channel = channel;
    shown_channel["permissions"] = membership(&person)["permissions"].clone();
    let guild = &hub.seeds.guild_id;
    let mut payload = json!({"id": id, "application_id": hub.discord.application_id, "type": kind, "token": token, "version": 1,
        "guild_id": guild, "guild": {"id": guild, "features": [], "locale": "en-US"}, "channel_id": channel_id, "channel": shown_channel,
        "member": membership(&person), "app_permissions": bot_permissions(store)?, "locale": "en-US", "guild_locale": "en-US",
        "entitlements": [], "entitlement_sku_ids": [], "authorizing_integration_owners": {"0": guild}, "context": 0,
        "attachment_size_limit": FILE_BYTES_MAX, "data": data});
    let source_id = source.as_ref().map(|message: &Value| message["id"].clone());
    if let Some(message) = source {
        payload["message"] = message;
    }
    let record = record(
        &id,
        &token,
        kind,
        channel_id,
        user_id,
        source_id,
        payload["data"].str("name"),
    );
    Ok(Built { record, payload })
}

/// What is remembered of an interaction under its token.
pub fn record(
    id: &str,
    token: &str,
    kind: u64,
    channel: &str,
    user: &str,
    source: Option<Value>,
    name: &str,
) -> Value {
    json!({"id": id, "token": token, "type": kind, "channel_id": channel, "user_id": user, "created_ms": now_ms(), "state": "new",
        "original": null, "source_message": source, "name": name, "expired": false})
}

struct Scene<'a> {
    hub: &'a Hub,
    store: &'a Store,
    act: &'a Value,
    user_id: &'a str,
    channel_id: &'a str,
}

impl Scene<'_> {
    fn registered(&self, name: &str, kind: u64) -> Result<Value, Impossible> {
        for scope in [self.hub.seeds.guild_id.as_str(), "global"] {
            let commands = app::registered(self.store, scope)?;
            if let Some(found) = commands
                .into_iter()
                .find(|one| one.str("name") == name && app::kind(one) == kind)
            {
                return Ok(found);
            }
        }
        refused(format!(
            "no command {name:?} is registered (PUT /applications/{{id}}/commands)"
        ))
    }

    fn command(&self, kind: u64) -> Result<Value, Impossible> {
        let mut words = self.act.str("name").split_whitespace();
        let command = self.registered(words.next().unwrap_or_default(), 1)?;
        let mut resolved = Map::new();
        let mut data = json!({"id": command["id"], "name": command["name"], "type": 1});
        if command.has("guild_id") {
            data["guild_id"] = command["guild_id"].clone();
        }
        if let Some(raw) = self.act["options"].as_array() {
            data["options"] = json!(raw);
        } else {
            // Subcommands nest: each word goes one level deeper.
            let (mut level, mut names) = (command.clone(), Vec::new());
            for word in words {
                let Some(next) = level
                    .list("options")
                    .iter()
                    .find(|one| one.str("name") == word && one.int("type") <= 2)
                    .cloned()
                else {
                    return refused(format!("{word:?} is no subcommand"));
                };
                names.push((next["name"].clone(), next["type"].clone()));
                level = next;
            }
            let mut options = Value::Array(self.options(&level, kind == 4, &mut resolved)?);
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

    /// The given values in the command's order and types.
    fn options(
        &self,
        level: &Value,
        partial: bool,
        resolved: &mut Map<String, Value>,
    ) -> Result<Vec<Value>, Impossible> {
        let mut options = Vec::new();
        let given = fields(&self.act["options"]);
        if let Some(stranger) = given.keys().find(|name| {
            !level
                .list("options")
                .iter()
                .any(|one| one.str("name") == **name)
        }) {
            return refused(format!("the command has no option {stranger:?}"));
        }
        for option in level
            .list("options")
            .iter()
            .filter(|one| one.int("type") > 2)
        {
            let name = option.str("name");
            let focused = partial && self.act.str("focused") == name;
            let value = given
                .get(name)
                .filter(|value| !value.is_null() && *value != "");
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
            let text = loose_text(&self.act["options"], name);
            let max = option["max_length"].as_u64().unwrap_or(6000);
            if option.int("type") == 3 && units(&text) as u64 > max {
                return refused(format!("{name:?} takes at most {max} characters"));
            }
            let value = match option.int("type") {
                4 => json!(
                    text.parse::<i64>()
                        .map_err(|_| Impossible::Refused(format!(
                            "{name:?} must be a whole number"
                        )))?
                ),
                5 => json!(text == "true"),
                10 => json!(
                    text.parse::<f64>()
                        .map_err(|_| Impossible::Refused(format!("{name:?} must be a number")))?
                ),
                6..=9 | 11 => {
                    self.resolve(option.int("type"), &text, resolved)?;
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

    /// Adds the object that an id names: user 6, channel 7, role 8, mentionable 9, attachment 11.
    fn resolve(
        &self,
        kind: u64,
        id: &str,
        resolved: &mut Map<String, Value>,
    ) -> Result<(), Impossible> {
        let mut add = |group: &str, object: Value| {
            let entry = resolved.entry(group).or_insert_with(|| json!({}));
            entry[id] = object;
        };
        if let (6 | 9, Some(person)) = (kind, self.store.get("d.user", "", id)?) {
            let mut member = membership(&person);
            member.as_object_mut().map(|one| one.remove("user"));
            add("users", person["user"].clone());
            add("members", member);
        } else if let (7, Some(mut channel)) = (
            kind,
            self.store.get("d.channel", &self.hub.seeds.guild_id, id)?,
        ) {
            channel["permissions"] = super::MEMBER_PERMISSIONS.into();
            channel["app_permissions"] = bot_permissions(self.store)?.into();
            add("channels", channel);
        } else if let (8 | 9, Some(guild)) = (
            kind,
            self.store.get("d.guild", "", &self.hub.seeds.guild_id)?,
        ) {
            let role = guild.list("roles").iter().find(|one| one.str("id") == id);
            let Some(role) = role.cloned() else {
                return refused(format!("there is no role {id:?}"));
            };
            add("roles", role);
        } else if let (11, Some(mut attachment)) = (kind, self.store.get("d.upload", "", id)?) {
            attachment["ephemeral"] = true.into();
            add("attachments", attachment);
        } else {
            return refused(format!("there is nothing with the id {id:?}"));
        }
        Ok(())
    }

    /// A message that this person can see.
    fn seen_message(&self) -> Result<Value, Impossible> {
        let kept = message::find(self.store, self.channel_id, self.act.str("message_id"))?;
        match kept.filter(|kept| !kept.has("to") || kept.str("to") == self.user_id) {
            Some(kept) => Ok(kept["message"].clone()),
            None => refused("this person sees no such message here (message_id)"),
        }
    }

    fn message_command(&self) -> Result<Value, Impossible> {
        let command = self.registered(self.act.str("name"), 3)?;
        let target = self.seen_message()?;
        let id = target.str("id").to_owned();
        Ok(
            json!({"id": command["id"], "name": command["name"], "type": 3, "target_id": id, "resolved": {"messages": {(id): target}}}),
        )
    }

    fn component(&self) -> Result<(u64, Value, Option<Value>), Impossible> {
        let message = self.seen_message()?;
        let custom_id = self.act.str("custom_id");
        let Some(component) = named(&message["components"], custom_id) else {
            return refused(format!("the message has no component {custom_id:?}"));
        };
        if component.flag("disabled") {
            return refused("this component is disabled");
        }
        let kind = component.int("type");
        let mut data =
            json!({"custom_id": custom_id, "component_type": kind, "id": component["id"]});
        if kind != 2 {
            let values = self.act.list("values");
            offered(component, values)?;
            data["values"] = json!(values);
            let mut resolved = Map::new();
            for value in values.iter().filter(|_| kind >= 5) {
                // Select kinds 5..8 and option kinds 6..9 name the same objects in another order.
                let of = [6, 8, 9, 7][usize::try_from(kind - 5).unwrap_or_default().min(3)];
                self.resolve(of, value.as_str().unwrap_or_default(), &mut resolved)?;
            }
            if !resolved.is_empty() {
                data["resolved"] = Value::Object(resolved);
            }
        }
        Ok((3, data, Some(message)))
    }

    fn modal(&self) -> Result<(u64, Value, Option<Value>), Impossible> {
        let custom_id = self.act.str("custom_id");
        let Some(shown) = self.store.get("d.modal", self.user_id, custom_id)? else {
            return refused(format!("no form {custom_id:?} is open for this person"));
        };
        let mut resolved = Map::new();
        let mut components = Vec::new();
        for (at, part) in shown["data"].list("components").iter().enumerate() {
            let id = part["id"].as_u64().unwrap_or(at as u64 * 2 + 1);
            components.push(match part.int("type") {
                18 => json!({"type": 18, "id": id, "component": self.filled(&part["component"], id + 1, &mut resolved)?}),
                1 => json!({"type": 1, "id": id, "components": [self.filled(&part["components"][0], id + 1, &mut resolved)?]}),
                _ => json!({"type": 10, "id": id}),
            });
        }
        let mut data = json!({"custom_id": custom_id, "components": components});
        if !resolved.is_empty() {
            data["resolved"] = Value::Object(resolved);
        }
        let source = message::find(self.store, self.channel_id, shown.str("message_id"))?
            .map(|kept| kept["message"].clone());
        Ok((5, data, source))
    }

    /// One input with what the person entered, checked as the client does.
    fn filled(
        &self,
        input: &Value,
        number: u64,
        resolved: &mut Map<String, Value>,
    ) -> Result<Value, Impossible> {
        let custom_id = input.str("custom_id");
        let kind = input.int("type");
        let entered = &self.act["fields"][custom_id];
        let mut out = json!({"type": kind, "id": number, "custom_id": custom_id});
        let required = input["required"].as_bool().unwrap_or(kind != 23);
        let values: Vec<Value> = match entered {
            Value::Array(list) => list.clone(),
            Value::Null => Vec::new(),
            one => vec![one.clone()],
        };
        match kind {
            4 => {
                let text = entered.as_str().unwrap_or_else(|| input.str("value"));
                let max = input["max_length"].as_u64().unwrap_or(4000);
                if (required && text.is_empty())
                    || units(text) as u64 > max
                    || (!text.is_empty() && (units(text) as u64) < input.int("min_length"))
                {
                    return refused(format!(
                        "{custom_id:?} needs between {} and {max} characters",
                        input.int("min_length").max(u64::from(required))
                    ));
                }
                out["value"] = text.into();
            }
            21 => out["value"] = values.first().cloned().unwrap_or_default(),
            23 => {
                out["value"] = entered
                    .as_bool()
                    .unwrap_or_else(|| input.flag("default"))
                    .into()
            }
            _ => {
                let least = input["min_values"].as_u64().unwrap_or(u64::from(required));
                if (values.len() as u64) < least && required {
                    return refused(format!("{custom_id:?} needs at least {least}"));
                }
                if !values.is_empty() {
                    offered(input, &values)?;
                }
                let of = match kind {
                    5 => 6,
                    6 => 8,
                    7 => 9,
                    8 => 7,
                    19 => 11,
                    _ => 0,
                };
                for value in values.iter().filter(|_| of > 0) {
                    self.resolve(of, value.as_str().unwrap_or_default(), resolved)?;
                }
                out["values"] = Value::Array(values);
            }
        }
        if kind == 21 && required && out["value"].is_null() {
            return refused(format!("{custom_id:?} needs a choice"));
        }
        Ok(out)
    }
}

/// A string select gives only values that it offers, as many as it takes.
fn offered(select: &Value, values: &[Value]) -> Result<(), Impossible> {
    if select.int("type") != 3 {
        return Ok(());
    }
    let known = |value: &Value| {
        select
            .list("options")
            .iter()
            .any(|one| one["value"] == *value)
    };
    let least = select["min_values"].as_u64().unwrap_or(1);
    let most = select["max_values"].as_u64().unwrap_or(1);
    match values.iter().find(|value| !known(value)) {
        Some(stranger) => refused(format!("the select offers no {stranger}")),
        None if !(least..=most).contains(&(values.len() as u64)) => {
            refused(format!("the select takes {least} to {most} values"))
        }
        None => Ok(()),
    }
}

/// The component with this custom id, however deep.
fn named<'a>(node: &'a Value, custom_id: &str) -> Option<&'a Value> {
    if let Some(list) = node.as_array() {
        return list.iter().find_map(|one| named(one, custom_id));
    }
    if node.str("custom_id") == custom_id && !custom_id.is_empty() {
        return Some(node);
    }
    ["components", "accessory"]
        .iter()
        .find_map(|field| node.get(field).and_then(|inner| named(inner, custom_id)))
}

/// A person writes: plain text in a channel or thread.
pub fn person(hub: &Hub, store: &Store, act: &Value) -> Result<Value, Impossible> {
    let id = if act.has("user_id") {
        act.str("user_id")
    } else {
        &hub.seeds.user_id
    };
    match store.get("d.user", "", id)? {
        Some(entry) => Ok(entry["user"].clone()),
        None => refused("there is no such person (user_id)"),
    }
}

/// What a typed message carries: its text and uploads.
pub fn typed(store: &Store, act: &Value) -> Result<Value, Impossible> {
    let mut uploads = Vec::new();
    for id in act.list("uploads") {
        uploads.extend(store.get("d.upload", "", id.as_str().unwrap_or_default())?);
    }
    let mut body = json!({"content": act["text"], "attachments": uploads});
    for field in ["reply_to", "forward"] {
        if act.has(field) {
            body[field] = act[field].clone();
        }
    }
    if !uploads.is_empty() {
        body["uploads"] = Value::Array(uploads);
    }
    Ok(body)
}
