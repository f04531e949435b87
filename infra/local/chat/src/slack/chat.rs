//! The methods that post and update messages.

use super::channels::{changed, channel, destination};
use super::failure::{MethodResult, fail};
use super::messages::{from_bot, own, root_of, save_ephemeral, save_new, shown};
use crate::hub::Hub;
use crate::json::JsonFields;
use crate::limits::SLACK_UPDATE_CHARS_MAX;
use crate::store::ChatStore;
use serde_json::{Value, json};

pub fn post(hub: &Hub, store: &ChatStore, args: &Value) -> MethodResult {
    let to = destination(store, args)?;
    if to.flag("is_archived") {
        return fail("is_archived");
    }
    let mut message = from_bot(hub, args)?;
    if args.has("thread_ts") {
        message["thread_ts"] = root_of(store, to.str("id"), args.str("thread_ts"))?.into();
    }
    let ts = save_new(hub, store, to.str("id"), &mut message)?;
    Ok(json!({"channel": to["id"], "ts": ts, "message": shown(&message, false)}))
}

pub fn update(hub: &Hub, store: &ChatStore, args: &Value) -> MethodResult {
    let (channel, mut message) = own(hub, store, args, "cant_update_message")?;
    if args.str("text").chars().count() > SLACK_UPDATE_CHARS_MAX {
        return fail("msg_too_long");
    }
    let fresh = from_bot(hub, args)?;
    message["text"] = fresh["text"].clone();
    // Text without blocks removes the old blocks; an update with blocks shows no "edited" mark.
    message["blocks"] = fresh["blocks"].clone();
    if fresh.has("metadata") {
        message["metadata"] = fresh["metadata"].clone();
    }
    if !fresh.has("blocks") {
        message["edited"] = json!({"user": hub.slack.bot_user_id, "ts": hub.ids.ts()});
        message.as_object_mut().map(|fields| fields.remove("blocks"));
    }
    store.put("s.message", &channel, args.str("ts"), &message)?;
    let thread = message.str_or("thread_ts", args.str("ts"));
    changed(hub, "message", &channel, thread);
    Ok(
        json!({"channel": channel, "ts": args["ts"], "text": message["text"], "message": shown(&message, false)}),
    )
}

pub fn post_ephemeral(hub: &Hub, store: &ChatStore, args: &Value) -> MethodResult {
    let to = channel(store, args, "channel")?;
    if store.get("s.user", "", args.str("user"))?.is_none() {
        return fail("user_not_in_channel");
    }
    let mut message = from_bot(hub, args)?;
    if args.has("thread_ts") {
        message["thread_ts"] = root_of(store, to.str("id"), args.str("thread_ts"))?.into();
    }
    let ts = save_ephemeral(hub, store, to.str("id"), args.str("user"), &mut message)?;
    Ok(json!({"message_ts": ts}))
}
