//! Stored messages: the bot's, people's in their threads, and ephemeral ones.

use super::blocks;
use super::channels::{changed, channel};
use super::failure::{MethodError, MethodResult, fail};
use crate::hub::Hub;
use crate::ids::ts_micros;
use crate::json::{JsonFields, push};
use crate::limits::SLACK_TEXT_CHARS_MAX;
use crate::store::{ChatStore, ChatStoreError};
use serde_json::{Value, json};

/// A message's `text` and `blocks`, checked.
fn content(args: &Value) -> Result<(String, Option<Value>), MethodError> {
    if args.has("blocks") {
        blocks::check(&args["blocks"], 50)?;
    }
    let blocks = (!args.list("blocks").is_empty()).then(|| args["blocks"].clone());
    if args.str("text").is_empty() && blocks.is_none() && args.list("attachments").is_empty() {
        return fail("no_text");
    }
    let text = args.str("text").chars().take(SLACK_TEXT_CHARS_MAX).collect();
    Ok((text, blocks))
}

/// A new message of the bot, not yet stored.
pub fn from_bot(hub: &Hub, args: &Value) -> MethodResult {
    let (text, blocks) = content(args)?;
    let mut message = json!({"type": "message", "user": hub.slack.bot_user_id, "bot_id": hub.seeds.slack_bot_id, "app_id": hub.slack.app_id,
        "team": hub.seeds.team_id, "text": text, "bot_profile": {"id": hub.seeds.slack_bot_id, "app_id": hub.slack.app_id, "name": "Bobbin",
        "deleted": false, "team_id": hub.seeds.team_id}});
    if let Some(blocks) = blocks {
        message["blocks"] = blocks::with_ids(blocks);
    }
    if args.has("metadata") {
        if args["metadata"].str("event_type").is_empty()
            || !args["metadata"]["event_payload"].is_object()
        {
            return fail("invalid_metadata_format");
        }
        message["metadata"] = args["metadata"].clone();
    }
    Ok(message)
}

/// The root of a `ts`'s thread; a reply's `ts` is mapped to its root.
pub fn root_of(store: &ChatStore, channel: &str, ts: &str) -> Result<String, MethodError> {
    if ts_micros(ts).is_none() {
        return fail("invalid_thread_ts");
    }
    // A root that is not stored may still be answered: it may be too old.
    Ok(match store.get("s.message", channel, ts)? {
        Some(message) if message.has("thread_ts") => message.str("thread_ts").to_owned(),
        _ => ts.to_owned(),
    })
}

/// Stores a message and counts it in its thread's root.
pub fn save_new(
    hub: &Hub,
    store: &ChatStore,
    channel: &str,
    message: &mut Value,
) -> Result<String, ChatStoreError> {
    let ts = hub.ids.ts();
    message["ts"] = ts.as_str().into();
    store.put_message("s.message", channel, &ts, message)?;
    let thread = message.str("thread_ts").to_owned();
    if !thread.is_empty()
        && thread != ts
        && let Some(mut root) = store.get("s.message", channel, &thread)?
    {
        root["thread_ts"] = thread.as_str().into();
        root["reply_count"] = (root.int("reply_count") + 1).into();
        root["latest_reply"] = ts.as_str().into();
        if !root.list("reply_users").contains(&message["user"]) {
            push(&mut root, "reply_users", message["user"].clone());
        }
        root["reply_users_count"] = root.list("reply_users").len().into();
        store.put("s.message", channel, &thread, &root)?;
        message["parent_user_id"] = root["user"].clone();
        store.put("s.message", channel, &ts, message)?;
    }
    changed(hub, "message", channel, if thread.is_empty() { &ts } else { &thread });
    Ok(ts)
}

/// A message as the API returns it: metadata only on request.
pub fn shown(message: &Value, with_metadata: bool) -> Value {
    let mut message = message.clone();
    if !with_metadata && let Some(fields) = message.as_object_mut() {
        fields.remove("metadata");
    }
    message
}

/// A message of the bot itself, or Slack's refusal.
pub fn own(
    hub: &Hub,
    store: &ChatStore,
    args: &Value,
    refusal: &'static str,
) -> Result<(String, Value), MethodError> {
    let channel = channel(store, args, "channel")?.str("id").to_owned();
    let Some(message) = store.get("s.message", &channel, args.str("ts"))? else {
        return fail("message_not_found");
    };
    if message.str("bot_id") != hub.seeds.slack_bot_id {
        return fail(refusal);
    }
    Ok((channel, message))
}

/// Stores an ephemeral message.
pub fn save_ephemeral(
    hub: &Hub,
    store: &ChatStore,
    channel: &str,
    to: &str,
    message: &mut Value,
) -> Result<String, ChatStoreError> {
    let ts = hub.ids.ts();
    message["ts"] = ts.as_str().into();
    message["is_ephemeral"] = true.into();
    store.put_message("s.ephemeral", channel, &ts, &json!({"message": message, "to": to}))?;
    changed(hub, "message", channel, message.str("thread_ts"));
    Ok(ts)
}
