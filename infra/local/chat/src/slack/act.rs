//! What a person does on Slack: the payload that Slack would send for it, signed and delivered, and what comes of the answer.

use super::chat::{keep_new, root_of};
use super::deliver::{deliver, post_event, retry, status};
use super::interactivity::{block_action, block_suggestion, shortcut, slash};
use super::submission::{view_closed, view_submission};
use super::{Fail, changed, files, views};
use crate::hub::Hub;
use crate::ids::{random_text, slack_id, ts_micros};
use crate::json::Read;
use crate::store::{Store, StoreError};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;

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

pub type Done = Result<Value, Impossible>;

pub fn refused<T>(why: impl Into<String>) -> Result<T, Impossible> {
    Err(Impossible::Refused(why.into()))
}

/// Does what a person asks for; the answer tells the deliveries or the outcome.
pub async fn act(hub: &Arc<Hub>, act: &Value) -> Done {
    match act.str("type") {
        "message" => message(hub, act).await,
        "delete" => delete(hub, act).await,
        "block_suggestion" => block_suggestion(hub, act).await,
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
            "unknown type {other:?}: message, delete, block_action, block_suggestion, view_submission, view_closed, slash, shortcut, stop_session, home_opened, retry, url_verification"
        )),
    }
}

/// Who acts, and where.
pub struct Scene {
    pub user: Value,
    pub channel: Value,
}

pub fn scene(hub: &Hub, store: &Store, act: &Value) -> Result<Scene, Impossible> {
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

/// The person deletes a message of theirs.
async fn delete(hub: &Arc<Hub>, act: &Value) -> Done {
    let event = {
        let store = hub.store();
        store.atomically(|store| {
            let Scene { user, channel } = scene(hub, store, act)?;
            let (id, ts) = (channel.str("id"), act.str("message_ts"));
            let Some(message) = store.get("s.message", id, ts)? else {
                return refused("there is no such message (message_ts)");
            };
            if message["user"] != user["id"] {
                return refused("this message is somebody else's");
            }
            store.delete("s.message", id, ts)?;
            let thread = if message.has("thread_ts") { message.str("thread_ts") } else { ts };
            changed(hub, "message", id, thread);
            let kind = if channel.flag("is_im") { "im" } else { "channel" };
            Ok::<_, Impossible>(json!({"type": "message", "subtype": "message_deleted", "hidden": true, "channel": id, "channel_type": kind,
                "deleted_ts": ts, "previous_message": message, "ts": hub.ids.ts(), "event_ts": hub.ids.ts()}))
        })?
    };
    Ok(json!({"deliveries": [deliver(hub, event).await]}))
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
