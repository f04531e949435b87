//! Messages that people type and delete, and Slack's events for them.

use super::actor::{SlackActor, actor};
use super::channels::changed;
use super::deliver::deliver;
use super::files;
use super::messages::{root_of, save_new};
use crate::action::{ActionError, ActionResult, refused};
use crate::hub::Hub;
use crate::ids::{random_text, slack_id};
use crate::json::JsonFields;
use crate::store::{ChatStore, ChatStoreError};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Typed text in Slack's wire format: entities escaped, `@bobbin` replaced by the mention.
fn wire_text(hub: &Hub, act: &Value) -> String {
    let text = act.str("text");
    if !act.flag("typed") {
        return text.to_owned();
    }
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let (mention, mut out, mut rest) =
        (format!("<@{}>", hub.slack.bot_user_id), String::new(), escaped.as_str());
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

/// The rich text that Slack's composer creates: text and user elements.
fn rich_text(text: &str) -> Value {
    let mut elements = Vec::new();
    let mut rest = text;
    while let Some((before, (user, after))) =
        rest.split_once("<@").and_then(|(before, tail)| Some((before, tail.split_once('>')?)))
    {
        if !before.is_empty() {
            elements.push(json!({"type": "text", "text": unescaped(before)}));
        }
        elements
            .push(json!({"type": "user", "user_id": user.split('|').next().unwrap_or_default()}));
        rest = after;
    }
    if !rest.is_empty() {
        elements.push(json!({"type": "text", "text": unescaped(rest)}));
    }
    json!([{"type": "rich_text", "block_id": random_text(5), "elements": [{"type": "rich_text_section", "elements": elements}]}])
}

/// Unescapes text.
fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// The person writes; a mention in a channel reaches the app twice.
pub async fn say(hub: &Arc<Hub>, act: &Value) -> ActionResult {
    let (kept, channel) = {
        let store = hub.store();
        store.atomically(|store| {
            let SlackActor { user, channel } = actor(hub, store, act)?;
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
            save_new(hub, store, channel.str("id"), &mut message)?;
            Ok::<_, ActionError>((message, channel))
        })?
    };
    let mut event = kept.clone();
    event["channel"] = channel["id"].clone();
    event["event_ts"] = kept["ts"].clone();
    let mut plain = event.clone();
    plain["channel_type"] = if channel.flag("is_im") { "im" } else { "channel" }.into();
    let mut events = vec![plain];
    let mention = format!("<@{}", hub.slack.bot_user_id);
    if !channel.flag("is_im") && kept.str("text").contains(&mention) {
        event["type"] = "app_mention".into();
        event.as_object_mut().map(|fields| fields.remove("subtype"));
        events.push(event);
        // Slack delivers the twins in either order.
        if hub.mentions.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
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

fn uploads(
    hub: &Hub,
    store: &ChatStore,
    act: &Value,
    user: &str,
) -> Result<Vec<Value>, ChatStoreError> {
    let mut list = Vec::new();
    for id in act.list("uploads") {
        if let Some(blob) = store.blob(id.as_str().unwrap_or_default())? {
            let file = slack_id('F');
            let mut kept = files::store_file(hub, store, &file, &blob.name, blob.bytes)?;
            kept["user"] = user.into();
            store.put("s.file", "", &file, &kept)?;
            list.push(kept);
        }
    }
    Ok(list)
}

fn uuid() -> String {
    let hex = hex::encode(random_text(16));
    format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}

/// The person deletes a message of their own.
pub async fn delete(hub: &Arc<Hub>, act: &Value) -> ActionResult {
    let event = {
        let store = hub.store();
        store.atomically(|store| {
            let SlackActor { user, channel } = actor(hub, store, act)?;
            let (id, ts) = (channel.str("id"), act.str("message_ts"));
            let Some(message) = store.get("s.message", id, ts)? else {
                return refused("there is no such message (message_ts)");
            };
            if message["user"] != user["id"] {
                return refused("this message is somebody else's");
            }
            store.delete("s.message", id, ts)?;
            let thread = message.str_or("thread_ts", ts);
            changed(hub, "message", id, thread);
            let kind = if channel.flag("is_im") { "im" } else { "channel" };
            Ok::<_, ActionError>(json!({"type": "message", "subtype": "message_deleted", "hidden": true, "channel": id, "channel_type": kind,
                "deleted_ts": ts, "previous_message": message, "ts": hub.ids.ts(), "event_ts": hub.ids.ts()}))
        })?
    };
    Ok(json!({"deliveries": [deliver(hub, event).await]}))
}
