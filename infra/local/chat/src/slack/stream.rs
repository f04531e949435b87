//! Streams: a message that is written piece by piece. It accepts appends for about five minutes in total, and only
//! until it is stopped; outside of direct messages its recipient must be named.

use super::blocks;
use super::channels::{changed, channel};
use super::failure::{MethodError, MethodResult, fail};
use super::messages::{from_bot, own, root_of, save_new, shown};
use crate::hub::Hub;
use crate::ids::{alive, now_ms};
use crate::json::JsonFields;
use crate::limits::STREAM_MS;
use crate::store::{ChatStore, ChatStoreError};
use serde_json::{Value, json};

/// Most characters per call.
const PIECE_CHARS_MAX: usize = 12_000;

pub fn start(hub: &Hub, store: &ChatStore, args: &Value) -> MethodResult {
    let to = channel(store, args, "channel")?;
    if !args.has("thread_ts") {
        return fail("invalid_thread_ts");
    }
    if !to.flag("is_im") {
        for (field, error) in [
            ("recipient_user_id", "missing_recipient_user_id"),
            ("recipient_team_id", "missing_recipient_team_id"),
        ] {
            if args.str(field).is_empty() {
                return fail(error);
            }
        }
        if store.get("s.user", "", args.str("recipient_user_id"))?.is_none() {
            return fail("user_not_found");
        }
    }
    let piece = piece(args)?;
    let mut message =
        from_bot(hub, &json!({ "text": if piece.is_empty() { " " } else { piece } }))?;
    message["text"] = piece.into();
    message["blocks"] = as_blocks(piece);
    message["thread_ts"] = root_of(store, to.str("id"), args.str("thread_ts"))?.into();
    message["streaming_state"] = "in_progress".into();
    let ts = save_new(hub, store, to.str("id"), &mut message)?;
    store.put("s.stream", to.str("id"), &ts, &json!({"began_ms": now_ms()}))?;
    Ok(json!({"channel": to["id"], "ts": ts}))
}

pub fn append(hub: &Hub, store: &ChatStore, args: &Value) -> MethodResult {
    let (channel, mut message) = streaming(hub, store, args)?;
    let text = format!("{}{}", message.str("text"), piece(args)?);
    message["blocks"] = as_blocks(&text);
    message["text"] = text.into();
    save(hub, store, &channel, args, &message)?;
    Ok(json!({"channel": channel, "ts": args["ts"]}))
}

pub fn stop(hub: &Hub, store: &ChatStore, args: &Value) -> MethodResult {
    let (channel, mut message) = streaming(hub, store, args)?;
    let text = format!("{}{}", message.str("text"), piece(args)?);
    message["blocks"] = as_blocks(&text);
    message["text"] = text.into();
    if args.has("blocks") {
        blocks::check(&args["blocks"], 50)?;
        let more = args.list("blocks").to_vec();
        if let Some(all) = message["blocks"].as_array_mut() {
            all.extend(more);
        }
    }
    if args.has("metadata") {
        message["metadata"] = args["metadata"].clone();
    }
    if let Some(fields) = message.as_object_mut() {
        fields.remove("streaming_state");
    }
    store.delete("s.stream", &channel, args.str("ts"))?;
    save(hub, store, &channel, args, &message)?;
    Ok(json!({"channel": channel, "ts": args["ts"], "message": shown(&message, false)}))
}

fn piece(args: &Value) -> Result<&str, MethodError> {
    let piece = args.str("markdown_text");
    if piece.chars().count() > PIECE_CHARS_MAX {
        return fail("msg_too_long");
    }
    Ok(piece)
}

fn as_blocks(text: &str) -> Value {
    if text.is_empty() { json!([]) } else { json!([{"type": "markdown", "text": text}]) }
}

/// A message of the bot that is still streaming.
fn streaming(hub: &Hub, store: &ChatStore, args: &Value) -> Result<(String, Value), MethodError> {
    let (channel, message) = own(hub, store, args, "message_not_owned_by_app")?;
    let begun = store.get("s.stream", &channel, args.str("ts"))?;
    if !begun.is_some_and(|one| alive(one.int("began_ms"), STREAM_MS)) {
        return fail("message_not_in_streaming_state");
    }
    Ok((channel, message))
}

fn save(
    hub: &Hub,
    store: &ChatStore,
    channel: &str,
    args: &Value,
    message: &Value,
) -> Result<(), ChatStoreError> {
    store.put("s.message", channel, args.str("ts"), message)?;
    changed(hub, "message", channel, message.str("thread_ts"));
    Ok(())
}
