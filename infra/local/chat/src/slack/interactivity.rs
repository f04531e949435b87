//! Interactivity: the payloads of a press, a shortcut or a command, and the effect of the answer.

use super::actor::{SlackActor, actor};
use super::deliver::{interact, post_form, reason_of, status};
use super::elements::{acted, element, input_values};
use super::messages::{self, from_bot, save_ephemeral};
use crate::action::{ActionError, ActionResult, refused};
use crate::hub::Hub;
use crate::ids::{now_ms, random_text};
use crate::ingress::{IngressAnswer, NoAnswer};
use crate::json::JsonFields;
use serde_json::{Value, json};

/// Fields of all interactivity payloads.
fn base(hub: &Hub, kind: &str, user: &Value) -> Value {
    json!({"type": kind, "user": {"id": user["id"], "username": user["name"], "name": user["name"], "team_id": hub.seeds.team_id},
        "api_app_id": hub.slack.app_id, "token": "local", "trigger_id": trigger_id(),
        "team": {"id": hub.seeds.team_id, "domain": "bobbin-workshop"}, "enterprise": null, "is_enterprise_install": false})
}

/// A trigger id; opening a modal with it is not emulated. Also distinguishes commands.
fn trigger_id() -> String {
    let (middle, end) = (random_text(12), hex::encode(random_text(16)));
    format!("{}.{middle}.{end}", now_ms())
}

fn channel_of(channel: &Value) -> Value {
    json!({"id": channel["id"], "name": if channel.flag("is_im") { "directmessage" } else { channel.str("name") }})
}

/// A press or choice, in a message or on the Home.
pub async fn block_action(hub: &Hub, act: &Value) -> ActionResult {
    let (payload, target) = {
        let store = hub.store();
        store.atomically(|store| {
            let SlackActor { user, channel } = actor(hub, store, act)?;
            let me = user.str("id");
            let mut payload = base(hub, "block_actions", &user);
            let (id, ts) = (channel.str("id"), act.str("message_ts"));
            let mut target = json!({"channel": id, "user": me, "thread_ts": ""});
            let blocks = if act.has("view_id") {
                let home = store.get("s.home", "", me)?;
                let shown = home.filter(|one| one.str("id") == act.str("view_id"));
                let Some(view) = shown else { return refused("this view is not shown (view_id)") };
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
                    target["thread_ts"] = message["thread_ts"].clone();
                }
                if !is_ephemeral {
                    payload["message"] = messages::shown(&message, false);
                }
                payload["state"] = json!({"values": input_values(&message["blocks"], &act["values"])?});
                message["blocks"].clone()
            };
            let Some((block_id, element)) = element(&blocks, act.str("action_id"), act.str("block_id")) else {
                return refused("there is no such element (action_id)");
            };
            payload["actions"] = json!([acted(&element, &block_id, act)?]);
            Ok::<_, ActionError>((payload, target))
        })?
    };
    let answer = interact(hub, &payload).await;
    finish(hub, &answer, &target, None)
}

/// Somebody types in a select on their Home whose options come from the app; the answer has the options.
pub async fn block_suggestion(hub: &Hub, act: &Value) -> ActionResult {
    let payload = {
        let store = hub.store();
        store.atomically(|store| {
            let SlackActor { user, .. } = actor(hub, store, act)?;
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
            let mut payload = base(hub, "block_suggestion", &user);
            payload["container"] = json!({"type": "view", "view_id": view["id"]});
            payload["view"] = view;
            payload["action_id"] = act["action_id"].clone();
            payload["block_id"] = block_id.into();
            payload["value"] = act.str("value").into();
            Ok::<_, ActionError>(payload)
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

/// Shows the person the answer to an interactivity or command request.
fn finish(
    hub: &Hub,
    answer: &Result<IngressAnswer, NoAnswer>,
    target: &Value,
    command: Option<&str>,
) -> ActionResult {
    let (channel, user) = (target.str("channel"), target.str("user"));
    let store = hub.store();
    store.atomically(|store| match answer {
        Ok(answer) if (200..300).contains(&answer.status) => {
            let text = String::from_utf8_lossy(&answer.body);
            let said = match serde_json::from_str::<Value>(&text) {
                Ok(body) if body.is_object() => body,
                _ => json!({"text": text.trim()}),
            };
            let speaks = !said.str("text").is_empty() || said.has("blocks");
            if command.is_some() && speaks {
                let mut message = from_bot(hub, &said)?;
                save_ephemeral(hub, store, channel, user, &mut message)?;
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
            if !target.str("thread_ts").is_empty() {
                notice["thread_ts"] = target["thread_ts"].clone();
            }
            save_ephemeral(hub, store, channel, user, &mut notice)?;
            Ok(json!({"status": status(answer), "outcome": {"kind": "failed", "reason": reason}}))
        }
    })
}

/// A slash command, which Slack sends as a form.
pub async fn slash(hub: &Hub, act: &Value) -> ActionResult {
    let (form, target) = {
        let store = hub.store();
        let SlackActor { user, channel } = actor(hub, &store, act)?;
        let (id, me) = (channel.str("id"), user.str("id"));
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
            ("trigger_id", trigger_id()),
        ];
        (form, json!({"channel": id, "user": me, "thread_ts": ""}))
    };
    let answer = post_form(hub, "/slack/commands", &form).await;
    finish(hub, &answer, &target, Some(act.str("command")))
}

/// A message shortcut.
pub async fn shortcut(hub: &Hub, act: &Value) -> ActionResult {
    let (payload, target) = {
        let store = hub.store();
        let SlackActor { user, channel } = actor(hub, &store, act)?;
        let (id, ts) = (channel.str("id"), act.str("message_ts"));
        let Some(message) = store.get("s.message", id, ts)? else {
            return refused("there is no such message (message_ts)");
        };
        let mut payload = base(hub, "message_action", &user);
        payload["callback_id"] = act["callback_id"].clone();
        payload["action_ts"] = hub.ids.ts().into();
        payload["channel"] = channel_of(&channel);
        payload["message_ts"] = ts.into();
        payload["message"] = messages::shown(&message, false);
        let thread = message.str("thread_ts");
        let target = json!({"channel": id, "user": user["id"], "thread_ts": thread});
        (payload, target)
    };
    let answer = interact(hub, &payload).await;
    finish(hub, &answer, &target, None)
}
