//! What a person does on Slack: the payload that Slack would send for it, signed and delivered, and what comes of the answer.

use super::chat::{self, keep_ephemeral, keep_new, root_of};
use super::{Fail, changed, files, views};
use crate::gate::percent_encoded;
use crate::hub::{Answer, Hub, NoAnswer, held};
use crate::ids::{now_ms, random_text, slack_id, ts_micros};
use crate::json::{Read, fields};
use crate::sign;
use crate::store::{Store, StoreError};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Why a person could not do this.
#[derive(Debug, thiserror::Error)]
pub enum Impossible {
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<Fail> for Impossible {
    fn from(refusal: Fail) -> Impossible {
        Impossible::Refused(
            format!("{} {}", refusal.error, refusal.messages.join("; "))
                .trim()
                .to_owned(),
        )
    }
}

type Done = Result<Value, Impossible>;

fn refused<T>(why: impl Into<String>) -> Result<T, Impossible> {
    Err(Impossible::Refused(why.into()))
}

/// Does what a person asks for; the answer tells the deliveries or the outcome.
pub async fn act(hub: &Arc<Hub>, act: &Value) -> Done {
    match act.str("type") {
        "message" => message(hub, act).await,
        "block_action" => block_action(hub, act).await,
        "view_submission" => view_submission(hub, act).await,
        "view_closed" => view_closed(hub, act).await,
        "slash" => slash(hub, act).await,
        "shortcut" => shortcut(hub, act).await,
        "stop_session" => stop_session(hub, act).await,
        "home_opened" => home_opened(hub, act).await,
        "retry" => retry(hub, act).await,
        "url_verification" => {
            let challenge = random_text(40);
            let answer = post_event(
                hub,
                &json!({"type": "url_verification", "challenge": challenge, "token": "local"}),
                None,
            )
            .await;
            let right = answer
                .as_ref()
                .is_ok_and(|answer| String::from_utf8_lossy(&answer.body).contains(&challenge));
            Ok(json!({"status": status(&answer), "challenge_returned": right}))
        }
        other => refused(format!(
            "unknown type {other:?}: message, block_action, view_submission, view_closed, slash, shortcut, stop_session, home_opened, retry, url_verification"
        )),
    }
}

fn status(answer: &Result<Answer, NoAnswer>) -> u16 {
    answer.as_ref().map_or(0, |answer| answer.status)
}

/// Who acts, and where.
struct Scene {
    user: Value,
    channel: Value,
}

fn scene(hub: &Hub, store: &Store, act: &Value) -> Result<Scene, Impossible> {
    let user_id = if act.has("user_id") {
        act.str("user_id")
    } else {
        &hub.seeds.slack_user_id
    };
    let channel_id = if act.has("channel_id") {
        act.str("channel_id")
    } else {
        &hub.seeds.slack_channel_id
    };
    let Some(user) = store
        .get("s.user", "", user_id)?
        .filter(|one| !one.flag("is_bot"))
    else {
        return refused("there is no such person (user_id)");
    };
    let Some(channel) = store.get("s.channel", "", channel_id)? else {
        return refused("there is no such channel (channel_id)");
    };
    if channel.flag("is_im") && channel.str("user") != user_id {
        return refused("this direct message belongs to somebody else");
    }
    Ok(Scene { user, channel })
}

/// Typed text in Slack's wire form: entities escaped, `@bobbin` turned into the mention.
fn wire_text(hub: &Hub, act: &Value) -> String {
    let text = act.str("text");
    if !act.flag("typed") {
        return text.to_owned();
    }
    let escaped = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let (mention, mut out, mut rest) = (
        format!("<@{}>", hub.slack.bot_user_id),
        String::new(),
        escaped.as_str(),
    );
    while let Some(at) = rest.find("@bobbin") {
        let (before, after) = (&rest[..at], &rest[at + "@bobbin".len()..]);
        let ends = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
        out.push_str(before);
        let whole_word = ends(before.chars().last()) && ends(after.chars().next());
        out.push_str(if whole_word { &mention } else { "@bobbin" });
        rest = after;
    }
    out + rest
}

/// The exact wording as Slack's composer makes it: text and user elements.
fn rich_text(text: &str) -> Value {
    let mut elements = Vec::new();
    let mut rest = text;
    while let Some((before, (user, after))) = rest
        .split_once("<@")
        .and_then(|(before, tail)| Some((before, tail.split_once('>')?)))
    {
        if !before.is_empty() {
            elements.push(json!({"type": "text", "text": plain(before)}));
        }
        elements
            .push(json!({"type": "user", "user_id": user.split('|').next().unwrap_or_default()}));
        rest = after;
    }
    if !rest.is_empty() {
        elements.push(json!({"type": "text", "text": plain(rest)}));
    }
    json!([{"type": "rich_text", "block_id": random_text(5), "elements": [{"type": "rich_text_section", "elements": elements}]}])
}

fn plain(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

async fn message(hub: &Arc<Hub>, act: &Value) -> Done {
    let (kept, channel) = {
        let store = hub.store();
        store.atomically(|store| {
            let Scene { user, channel } = scene(hub, store, act)?;
            let text = wire_text(hub, act);
            let mut message = json!({"type": "message", "user": user["id"], "text": text, "team": hub.seeds.team_id,
                "client_msg_id": uuid(), "blocks": rich_text(&text)});
            let files = uploads(hub, store, act, user.str("id"))?;
            if text.trim().is_empty() && files.is_empty() {
                return refused("the message is empty");
            }
            if !files.is_empty() {
                message["files"] = Value::Array(files);
                message["subtype"] = "file_share".into();
            }
            if act.has("thread_ts") {
                message["thread_ts"] = root_of(store, channel.str("id"), act.str("thread_ts"))?.into();
            }
            keep_new(hub, store, channel.str("id"), &mut message)?;
            Ok::<_, Impossible>((message, channel))
        })?
    };
    let mut event = kept.clone();
    event["channel"] = channel["id"].clone();
    event["event_ts"] = kept["ts"].clone();
    let mut plain = event.clone();
    plain["channel_type"] = if channel.flag("is_im") {
        "im"
    } else {
        "channel"
    }
    .into();
    let mut events = vec![plain];
    let mention = format!("<@{}", hub.slack.bot_user_id);
    if !channel.flag("is_im") && kept.str("text").contains(&mention) {
        event["type"] = "app_mention".into();
        event.as_object_mut().map(|fields| fields.remove("subtype"));
        events.push(event);
        // Slack delivers the twins in either order.
        if hub
            .mentions
            .fetch_add(1, Ordering::Relaxed)
            .is_multiple_of(2)
        {
            events.reverse();
        }
    }
    let mut deliveries = Vec::new();
    for event in events {
        deliveries.push(deliver(hub, event).await);
    }
    Ok(
        json!({"ts": kept["ts"], "thread_ts": kept["thread_ts"], "channel": channel["id"], "deliveries": deliveries}),
    )
}

fn uploads(hub: &Hub, store: &Store, act: &Value, user: &str) -> Result<Vec<Value>, StoreError> {
    let mut list = Vec::new();
    for id in act.list("uploads") {
        if let Some(blob) = store.blob(id.as_str().unwrap_or_default())? {
            let file = slack_id('F');
            let mut kept = files::keep(
                hub,
                store,
                &file,
                &blob.name,
                files::content_type(&blob.name),
                blob.bytes,
            )?;
            kept["user"] = user.into();
            store.put("s.file", "", &file, &kept)?;
            list.push(kept);
        }
    }
    Ok(list)
}

fn uuid() -> String {
    let hex = hex::encode(random_text(16));
    format!(
        "{}-{}-4{}-8{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[13..16],
        &hex[17..20],
        &hex[20..32]
    )
}

/// Wraps an event, delivers it, and leaves the retries to the background.
async fn deliver(hub: &Arc<Hub>, event: Value) -> Value {
    let id = format!("Ev0{}", random_text(10).to_ascii_uppercase());
    let team = &hub.seeds.team_id;
    let envelope = json!({"token": "local", "team_id": team, "context_team_id": team, "context_enterprise_id": null, "api_app_id": hub.slack.app_id,
        "event": event, "type": "event_callback", "event_id": id, "event_time": now_ms() / 1_000,
        "authorizations": [{"enterprise_id": null, "team_id": team, "user_id": hub.slack.bot_user_id, "is_bot": true, "is_enterprise_install": false}],
        "is_ext_shared_channel": false, "event_context": format!("4-{}", random_text(24))});
    hub.remember_event(&id, &envelope);
    let first = post_event(hub, &envelope, None).await;
    if retry_reason(&first).is_some() {
        let (retrying, last) = (
            Arc::clone(hub),
            first.as_ref().map_or_else(reason_of, |_| "http_error"),
        );
        hub.tasks.spawn(async move {
            tokio::select! {
                () = retrying.stop.cancelled() => {}
                () = retries(&retrying, &envelope, last) => {}
            }
        });
    }
    json!({"event_id": id, "type": event["type"], "status": status(&first)})
}

fn reason_of(error: &NoAnswer) -> &'static str {
    match error {
        NoAnswer::TooLate => "http_timeout",
        NoAnswer::NoIngress | NoAnswer::Unreachable => "connection_failed",
    }
}

/// Why Slack would try again, if it would.
fn retry_reason(answer: &Result<Answer, NoAnswer>) -> Option<&'static str> {
    match answer {
        Ok(answer) if (200..300).contains(&answer.status) || answer.no_retry => None,
        Ok(_) => Some("http_error"),
        Err(error) => Some(reason_of(error)),
    }
}

async fn retries(hub: &Hub, envelope: &Value, first_reason: &'static str) {
    let delays = held(&hub.retry_delays_ms).clone();
    let mut reason = first_reason;
    for (at, delay_ms) in delays.into_iter().enumerate() {
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        let answer = post_event(hub, envelope, Some((at + 1, reason))).await;
        match retry_reason(&answer) {
            Some(next) => reason = next,
            None => return,
        }
    }
    tracing::warn!(
        slack.event_id = envelope.str("event_id"),
        reason,
        "an event was given up after its retries"
    );
}

async fn post_event(
    hub: &Hub,
    envelope: &Value,
    retry: Option<(usize, &str)>,
) -> Result<Answer, NoAnswer> {
    let mut headers = vec![("content-type", "application/json".to_owned())];
    if let Some((number, reason)) = retry {
        headers.push(("x-slack-retry-num", number.to_string()));
        headers.push(("x-slack-retry-reason", reason.to_owned()));
    }
    post(
        hub,
        "/slack/events",
        headers,
        envelope.to_string().into_bytes(),
    )
    .await
}

async fn post(
    hub: &Hub,
    path: &str,
    mut headers: Vec<(&str, String)>,
    body: Vec<u8>,
) -> Result<Answer, NoAnswer> {
    let timestamp = (now_ms() / 1_000).to_string();
    headers.push((
        "x-slack-signature",
        sign::slack(&hub.slack.signing_secret, &timestamp, &body),
    ));
    headers.push(("x-slack-request-timestamp", timestamp));
    headers.push((
        "user-agent",
        "Slackbot 1.0 (+https://api.slack.com/robots)".to_owned(),
    ));
    hub.deliver(path, &headers, body).await
}

async fn post_form(hub: &Hub, path: &str, form: &[(&str, String)]) -> Result<Answer, NoAnswer> {
    let pairs: Vec<String> = form
        .iter()
        .map(|(name, value)| format!("{name}={}", percent_encoded(value)))
        .collect();
    let headers = vec![(
        "content-type",
        "application/x-www-form-urlencoded".to_owned(),
    )];
    post(hub, path, headers, pairs.join("&").into_bytes()).await
}

async fn interact(hub: &Hub, payload: &Value) -> Result<Answer, NoAnswer> {
    post_form(
        hub,
        "/slack/interactivity",
        &[("payload", payload.to_string())],
    )
    .await
}

/// Delivers an event of the past again, with the headers of a retry.
async fn retry(hub: &Arc<Hub>, act: &Value) -> Done {
    let wanted = act.str("event_id");
    let found = held(&hub.events)
        .iter()
        .find(|(id, _)| id == wanted)
        .map(|(_, envelope)| envelope.clone());
    let Some(envelope) = found else {
        return refused("no such event was delivered lately (event_id)");
    };
    let reason = if act.has("reason") {
        act.str("reason")
    } else {
        "http_timeout"
    };
    let number = usize::try_from(act.int("num").max(1)).unwrap_or(1);
    let answer = post_event(hub, &envelope, Some((number, reason))).await;
    Ok(json!({"event_id": wanted, "status": status(&answer)}))
}

/// Makes known what somebody else signed and delivers: the message of an event, the trigger of an interaction. What is known
/// already is left alone.
pub fn announce(hub: &Hub, payload: &Value) -> Result<(), StoreError> {
    let store = hub.store();
    let trigger = payload.str("trigger_id");
    if !trigger.is_empty() && store.get("s.trigger", "", trigger)?.is_none() {
        views::known_trigger(
            &store,
            trigger,
            payload["user"].str("id"),
            payload["view"].str("id"),
        )?;
    }
    let event = &payload["event"];
    let (channel, ts) = (event.str("channel"), event.str("ts"));
    let spoken = ["message", "app_mention"].contains(&event.str("type"))
        && ["", "file_share"].contains(&event.str("subtype"));
    if !spoken
        || ts_micros(ts).is_none()
        || store.get("s.channel", "", channel)?.is_none()
        || store.get("s.message", channel, ts)?.is_some()
    {
        return Ok(());
    }
    let mut message = event.clone();
    message["type"] = "message".into();
    if let Some(fields) = message.as_object_mut() {
        fields.retain(|name, _| !["channel", "event_ts", "channel_type"].contains(&name.as_str()));
    }
    store.put_message("s.message", channel, ts, &message)?;
    let thread = if event.has("thread_ts") {
        event.str("thread_ts")
    } else {
        ts
    };
    changed(hub, "message", channel, thread);
    Ok(())
}

/// What all interactivity payloads share.
fn base(
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

async fn block_action(hub: &Hub, act: &Value) -> Done {
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
                payload["state"] = json!({"values": {}});
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
fn chosen(element: &Value, value: &Value) -> Done {
    let kind = element.str("type");
    let option = |wanted: &Value| {
        element
            .list("options")
            .iter()
            .find(|one| one["value"] == *wanted)
            .cloned()
            .unwrap_or_default()
    };
    let all = || -> Vec<Value> { value.as_array().cloned().unwrap_or_default() };
    let named = match kind {
        "static_select" | "radio_buttons" | "overflow" | "external_select" => {
            json!({"selected_option": option(value)})
        }
        "multi_static_select" | "checkboxes" => {
            json!({"selected_options": all().iter().map(option).collect::<Vec<_>>()})
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

async fn slash(hub: &Hub, act: &Value) -> Done {
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
async fn shortcut(hub: &Hub, act: &Value) -> Done {
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

async fn view_submission(hub: &Hub, act: &Value) -> Done {
    let (payload, user, view_id) = {
        let store = hub.store();
        store.atomically(|store| {
            let Scene { user, .. } = scene(hub, store, act)?;
            let open = views::stack(store, user.str("id"))?;
            let wanted = |one: &&Value| !act.has("view_id") || one.str("id") == act.str("view_id");
            let Some(mut view) = open.iter().rev().find(wanted).cloned() else {
                return refused("this view is not open (view_id)");
            };
            view["state"]["values"] = Value::Object(state(&view, &act["values"])?);
            let id = view.str("id").to_owned();
            let mut payload = base(hub, store, "view_submission", &user, &id)?;
            payload["view"] = view;
            payload["response_urls"] = json!([]);
            Ok::<_, Impossible>((payload, user.str("id").to_owned(), id))
        })?
    };
    let answer = interact(hub, &payload).await;
    let store = hub.store();
    store.atomically(|store| after_submission(hub, store, &answer, &user, &view_id))
}

/// The entered values by block and action, with required ones checked as the client does.
fn state(view: &Value, values: &Value) -> Result<Map<String, Value>, Impossible> {
    let mut state = Map::new();
    for block in view
        .list("blocks")
        .iter()
        .filter(|block| block.str("type") == "input")
    {
        let (id, element) = (block.str("block_id"), &block["element"]);
        let value = match &values[id][element.str("action_id")] {
            Value::Null => element
                .get("initial_value")
                .or_else(|| element["initial_option"].get("value"))
                .cloned()
                .unwrap_or_default(),
            value => value.clone(),
        };
        let empty = value.is_null() || value == "" || value.as_array().is_some_and(Vec::is_empty);
        if empty && !block.flag("optional") {
            return refused(format!("{:?} is required", block["label"].str("text")));
        }
        let value = if value == "" { Value::Null } else { value };
        state.insert(
            id.to_owned(),
            json!({(element.str("action_id")): chosen(element, &value)?}),
        );
    }
    Ok(state)
}

fn after_submission(
    hub: &Hub,
    store: &Store,
    answer: &Result<Answer, NoAnswer>,
    user: &str,
    view: &str,
) -> Done {
    let Some(answer) = answer
        .as_ref()
        .ok()
        .filter(|answer| (200..300).contains(&answer.status))
    else {
        return Ok(
            json!({"status": status(answer), "outcome": {"kind": "failed", "reason": "We had some trouble connecting. Try again?"}}),
        );
    };
    let body = serde_json::from_slice::<Value>(&answer.body).unwrap_or_default();
    let outcome = match body.str("response_action") {
        "errors" => json!({"kind": "errors", "errors": body["errors"]}),
        "update" => {
            views::replace(hub, store, user, view, &body["view"])?;
            json!({"kind": "updated"})
        }
        "push" => {
            views::show(hub, store, user, &body["view"], true)?;
            json!({"kind": "pushed"})
        }
        "clear" => {
            views::keep_stack(hub, store, user, &[])?;
            json!({"kind": "closed"})
        }
        _ => {
            let mut open = views::stack(store, user)?;
            open.retain(|one| one.str("id") != view);
            views::keep_stack(hub, store, user, &open)?;
            json!({"kind": "closed"})
        }
    };
    Ok(json!({"status": answer.status, "outcome": outcome}))
}

/// Closes the topmost view; the app hears of it only where it asked to.
async fn view_closed(hub: &Hub, act: &Value) -> Done {
    let payload = {
        let store = hub.store();
        store.atomically(|store| {
            let Scene { user, .. } = scene(hub, store, act)?;
            let mut open = views::stack(store, user.str("id"))?;
            let Some(view) = open.pop() else {
                return refused("no view is open");
            };
            views::keep_stack(hub, store, user.str("id"), &open)?;
            let mut payload = base(hub, store, "view_closed", &user, "")?;
            payload
                .as_object_mut()
                .map(|fields| fields.remove("trigger_id"));
            payload["view"] = view;
            payload["is_cleared"] = false.into();
            Ok::<_, Impossible>(payload)
        })?
    };
    let told = payload["view"].flag("notify_on_close");
    let status = if told {
        status(&interact(hub, &payload).await)
    } else {
        0
    };
    Ok(json!({"told": told, "status": status}))
}

/// The person presses Slack's own Stop button of an agent session.
async fn stop_session(hub: &Arc<Hub>, act: &Value) -> Done {
    let event = {
        let store = hub.store();
        let Scene { user, channel } = scene(hub, &store, act)?;
        let thread = root_of(&store, channel.str("id"), act.str("thread_ts"))?;
        if store
            .get("s.session", channel.str("id"), &thread)?
            .is_none()
        {
            return refused("this thread has no agent session");
        }
        changed(hub, "status", channel.str("id"), &thread);
        json!({"type": "agent_session_stopped", "channel": channel["id"], "thread_ts": thread, "user": user["id"],
            "streaming_message_ts": [], "event_ts": hub.ids.ts()})
    };
    Ok(json!({"deliveries": [deliver(hub, event).await]}))
}

async fn home_opened(hub: &Arc<Hub>, act: &Value) -> Done {
    let event = {
        let store = hub.store();
        let Scene { user, channel } = scene(hub, &store, act)?;
        let tab = if act.has("tab") {
            act.str("tab")
        } else {
            "home"
        };
        json!({"type": "app_home_opened", "user": user["id"], "channel": channel["id"], "tab": tab, "event_ts": hub.ids.ts(),
            "view": store.get("s.home", "", user.str("id"))?})
    };
    Ok(json!({"deliveries": [deliver(hub, event).await]}))
}
