//! Interactivity: the payload of a press, a shortcut or a command, and what its answer shows.

use super::act::{Done, Impossible, Scene, refused, scene};
use super::chat::{self, keep_ephemeral};
use super::deliver::{interact, post_form, reason_of, status};
use super::views;
use crate::hub::{Answer, Hub, NoAnswer};
use crate::ids::now_ms;
use crate::json::{Read, fields};
use crate::store::{Store, StoreError};
use serde_json::{Value, json};

/// What all interactivity payloads share.
pub fn base(
    hub: &Hub,
    store: &Store,
    kind: &str,
    user: &Value,
    view: &str,
) -> Result<Value, StoreError> {
    Ok(
        json!({"type": kind, "user": {"id": user["id"], "username": user["name"], "name": user["name"], "team_id": hub.seeds.team_id},
        "api_app_id": hub.slack.app_id, "token": "local", "trigger_id": views::trigger(store, user.str("id"), view)?,
        "team": {"id": hub.seeds.team_id, "domain": "bobbin-workshop"}, "enterprise": null, "is_enterprise_install": false}),
    )
}

fn channel_of(channel: &Value) -> Value {
    json!({"id": channel["id"], "name": if channel.flag("is_im") { "directmessage" } else { channel.str("name") }})
}

pub async fn block_action(hub: &Hub, act: &Value) -> Done {
    let (payload, place) = {
        let store = hub.store();
        store.atomically(|store| {
            let Scene { user, channel } = scene(hub, store, act)?;
            let me = user.str("id");
            let mut payload = base(hub, store, "block_actions", &user, act.str("view_id"))?;
            let (id, ts) = (channel.str("id"), act.str("message_ts"));
            let mut place = json!({"channel": id, "user": me, "thread_ts": "", "message_ts": ts});
            let blocks = if act.has("view_id") {
                let home = store.get("s.home", "", me)?;
                let open = views::stack(store, me)?.into_iter().chain(home).find(|one| one.str("id") == act.str("view_id"));
                let Some(view) = open else { return refused("this view is not open (view_id)") };
                payload["container"] = json!({"type": "view", "view_id": view["id"]});
                payload["view"] = view.clone();
                view["blocks"].clone()
            } else {
                let ephemeral = store.get("s.ephemeral", id, ts)?.filter(|kept| kept.str("to") == me).map(|kept| kept["message"].clone());
                let is_ephemeral = ephemeral.is_some();
                let Some(message) = ephemeral.or(store.get("s.message", id, ts)?) else { return refused("there is no such message (message_ts)") };
                payload["container"] = json!({"type": "message", "message_ts": ts, "channel_id": id, "is_ephemeral": is_ephemeral});
                payload["channel"] = channel_of(&channel);
                if message.has("thread_ts") {
                    payload["container"]["thread_ts"] = message["thread_ts"].clone();
                    place["thread_ts"] = message["thread_ts"].clone();
                }
                if !is_ephemeral {
                    payload["message"] = chat::shown(&message, false);
                }
                payload["state"] = json!({"values": stated(&message["blocks"], &act["values"])?});
                payload["response_url"] = chat::response_url(hub, store, id, me, place.str("thread_ts"), ts)?.into();
                message["blocks"].clone()
            };
            let Some((block_id, element)) = element(&blocks, act.str("action_id"), act.str("block_id")) else {
                return refused("there is no such element (action_id)");
            };
            payload["actions"] = json!([acted(&element, &block_id, act)?]);
            Ok::<_, Impossible>((payload, place))
        })?
    };
    let answer = interact(hub, &payload).await;
    finish(hub, &answer, &place, None)
}

/// Somebody types into a select whose options come from the app, on their Home; the answer has the options.
pub async fn block_suggestion(hub: &Hub, act: &Value) -> Done {
    let payload = {
        let store = hub.store();
        store.atomically(|store| {
            let Scene { user, .. } = scene(hub, store, act)?;
            let me = user.str("id");
            let Some(view) = store.get("s.home", "", me)? else {
                return refused("this person has no Home yet");
            };
            let Some((block_id, element)) = element(&view["blocks"], act.str("action_id"), "")
            else {
                return refused("there is no such element (action_id)");
            };
            if element.str("type") != "external_select" {
                return refused("this element has its own options");
            }
            let mut payload = base(hub, store, "block_suggestion", &user, "")?;
            payload["container"] = json!({"type": "view", "view_id": view["id"]});
            payload["view"] = view;
            payload["action_id"] = act["action_id"].clone();
            payload["block_id"] = block_id.into();
            payload["value"] = act.str("value").into();
            Ok::<_, Impossible>(payload)
        })?
    };
    let answer = interact(hub, &payload).await;
    let options = answer
        .as_ref()
        .ok()
        .and_then(|answer| serde_json::from_slice::<Value>(&answer.body).ok())
        .map(|body| body["options"].clone());
    Ok(json!({"status": status(&answer), "options": options}))
}

/// What stands in a message's inputs, by block and action: what the person entered, else nothing. Unlike a view's they
/// are sent with every click, and none is required.
fn stated(blocks: &Value, values: &Value) -> Done {
    let mut out = json!({});
    let inputs = blocks.as_array().into_iter().flatten();
    for block in inputs.filter(|block| block.str("type") == "input") {
        let (id, element) = (block.str("block_id"), &block["element"]);
        let action = element.str("action_id");
        let entered = match &values[id][action] {
            Value::String(text) if text.is_empty() => &Value::Null,
            entered => entered,
        };
        out[id] = json!({ (action): chosen(element, entered)? });
    }
    Ok(out)
}

/// The element with this action id, and its block's id.
fn element(blocks: &Value, action_id: &str, block_id: &str) -> Option<(String, Value)> {
    for block in blocks.as_array()? {
        let found = find(block, action_id)
            .filter(|_| block_id.is_empty() || block.str("block_id") == block_id);
        if let Some(found) = found {
            return Some((block.str("block_id").to_owned(), found.clone()));
        }
    }
    None
}

fn find<'a>(node: &'a Value, action_id: &str) -> Option<&'a Value> {
    if let Some(list) = node.as_array() {
        return list.iter().find_map(|one| find(one, action_id));
    }
    if node.str("action_id") == action_id && !action_id.is_empty() {
        return Some(node);
    }
    [
        "elements",
        "accessory",
        "element",
        "child_blocks",
        "actions",
    ]
    .iter()
    .find_map(|field| node.get(field).and_then(|inner| find(inner, action_id)))
}

fn acted(element: &Value, block_id: &str, act: &Value) -> Done {
    let kind = element.str("type");
    let mut action = json!({"type": kind, "action_id": element["action_id"], "block_id": block_id,
        "action_ts": format!("{}.{:06}", now_ms() / 1_000, now_ms() % 1_000)});
    match kind {
        "button" => {
            for field in ["text", "value", "style", "url"] {
                if element.has(field) {
                    action[field] = element[field].clone();
                }
            }
        }
        "feedback_buttons" => action["value"] = act["value"].clone(),
        _ => {
            for (field, value) in fields(&chosen(element, &act["value"])?) {
                action[field] = value;
            }
        }
    }
    Ok(action)
}

/// An element's value in the form of `view.state.values`.
pub fn chosen(element: &Value, value: &Value) -> Done {
    let kind = element.str("type");
    let option = |wanted: &Value| {
        let options = element.list("options");
        options.iter().find(|one| one["value"] == *wanted).cloned()
    };
    let option = |wanted: &Value| match option(wanted) {
        None if !wanted.is_null() && element.has("options") => {
            refused(format!("there is no option {wanted}"))
        }
        found => Ok(found.unwrap_or_default()),
    };
    let all = || -> Vec<Value> { value.as_array().cloned().unwrap_or_default() };
    let named = match kind {
        "static_select" | "radio_buttons" | "overflow" => {
            json!({"selected_option": option(value)?})
        }
        // Its options came from the app; the page sends the one that was picked.
        "external_select" => json!({"selected_option": value.as_str().map(|value| {
            json!({"text": {"type": "plain_text", "text": value, "emoji": false}, "value": value})
        })}),
        "multi_static_select" | "checkboxes" => {
            json!({"selected_options": all().iter().map(option).collect::<Result<Vec<_>, _>>()?})
        }
        "users_select" => json!({"selected_user": value}),
        "channels_select" => json!({"selected_channel": value}),
        "conversations_select" => json!({"selected_conversation": value}),
        "multi_users_select" => json!({"selected_users": all()}),
        "datepicker" => json!({"selected_date": value}),
        "timepicker" => json!({"selected_time": value}),
        "file_input" => json!({"files": all()}),
        _ => json!({"value": value}),
    };
    let mut out = json!({"type": kind});
    for (field, value) in fields(&named) {
        out[field] = value;
    }
    Ok(out)
}

/// What the answer to an interactivity or command request shows to the person.
fn finish(
    hub: &Hub,
    answer: &Result<Answer, NoAnswer>,
    place: &Value,
    command: Option<&str>,
) -> Done {
    let store = hub.store();
    store.atomically(|store| match answer {
        Ok(answer) if (200..300).contains(&answer.status) => {
            let text = String::from_utf8_lossy(&answer.body);
            let body = serde_json::from_str::<Value>(&text)
                .ok()
                .filter(Value::is_object);
            match (body, command) {
                (Some(body), Some(_)) if body.has("text") || body.has("blocks") => {
                    chat::say_to(hub, store, place, &body)?;
                }
                (None, Some(_)) if !text.trim().is_empty() => {
                    chat::say_to(hub, store, place, &json!({"text": text}))?;
                }
                _ => {}
            }
            Ok(json!({"status": answer.status, "outcome": {"kind": "acknowledged"}}))
        }
        other => {
            let reason = other.as_ref().map_or_else(reason_of, |_| "http_error");
            let text = match (command, other) {
                (Some(command), Err(NoAnswer::TooLate)) => {
                    format!("{command} failed with the error \"operation_timeout\"")
                }
                (Some(command), _) => {
                    format!("{command} failed with the error \"dispatch_failed\"")
                }
                (None, _) => "This app did not respond. Try again in a moment.".to_owned(),
            };
            let mut notice = json!({"type": "message", "user": "USLACKBOT", "text": text});
            if !place.str("thread_ts").is_empty() {
                notice["thread_ts"] = place["thread_ts"].clone();
            }
            keep_ephemeral(
                hub,
                store,
                place.str("channel"),
                place.str("user"),
                &mut notice,
            )?;
            Ok(json!({"status": status(answer), "outcome": {"kind": "failed", "reason": reason}}))
        }
    })
}

pub async fn slash(hub: &Hub, act: &Value) -> Done {
    let (form, place) = {
        let store = hub.store();
        store.atomically(|store| {
            let Scene { user, channel } = scene(hub, store, act)?;
            let (id, me) = (channel.str("id"), user.str("id"));
            let url = chat::response_url(hub, store, id, me, "", "")?;
            let name = channel_of(&channel).str("name").to_owned();
            let form: Vec<(&str, String)> = vec![
                ("token", "local".to_owned()),
                ("team_id", hub.seeds.team_id.clone()),
                ("team_domain", "bobbin-workshop".to_owned()),
                ("channel_id", id.to_owned()),
                ("channel_name", name),
                ("user_id", me.to_owned()),
                ("user_name", user.str("name").to_owned()),
                ("command", act.str("command").to_owned()),
                ("text", act.str("text").to_owned()),
                ("api_app_id", hub.slack.app_id.clone()),
                ("is_enterprise_install", "false".to_owned()),
                ("response_url", url),
                ("trigger_id", views::trigger(store, me, "")?),
            ];
            Ok::<_, Impossible>((
                form,
                json!({"channel": id, "user": me, "thread_ts": "", "message_ts": ""}),
            ))
        })?
    };
    let answer = post_form(hub, "/slack/commands", &form).await;
    finish(hub, &answer, &place, Some(act.str("command")))
}

/// A message shortcut; without `message_ts` a global one.
pub async fn shortcut(hub: &Hub, act: &Value) -> Done {
    let (payload, place) = {
        let store = hub.store();
        store.atomically(|store| {
            let Scene { user, channel } = scene(hub, store, act)?;
            let on_message = act.has("message_ts");
            let mut payload = base(hub, store, if on_message { "message_action" } else { "shortcut" }, &user, "")?;
            payload["callback_id"] = act["callback_id"].clone();
            payload["action_ts"] = hub.ids.ts().into();
            let mut thread = String::new();
            if on_message {
                let ts = act.str("message_ts");
                let Some(message) = store.get("s.message", channel.str("id"), ts)? else { return refused("there is no such message (message_ts)") };
                thread = message.str("thread_ts").to_owned();
                payload["channel"] = channel_of(&channel);
                payload["message_ts"] = ts.into();
                payload["message"] = chat::shown(&message, false);
                payload["response_url"] = chat::response_url(hub, store, channel.str("id"), user.str("id"), &thread, ts)?.into();
            }
            let place = json!({"channel": channel["id"], "user": user["id"], "thread_ts": thread, "message_ts": act.str("message_ts")});
            Ok::<_, Impossible>((payload, place))
        })?
    };
    let answer = interact(hub, &payload).await;
    finish(hub, &answer, &place, None)
}
