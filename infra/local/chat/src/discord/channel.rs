//! Channels and threads: access, archiving, deletion.

use super::flags::HAS_THREAD;
use super::permissions::{MANAGE_THREADS, SEND_IN_THREADS, SEND_MESSAGES, VIEW_CHANNEL, require};
use super::refusal::{DiscordRefusal, RouteResult};
use super::stored_message;
use crate::http::{ApiRequest, ApiResponse};
use crate::hub::Hub;
use crate::ids::{iso, now_ms};
use crate::json::JsonFields;
use crate::store::{ChatStore, ChatStoreError};
use serde_json::{Value, json};

/// The channel, if it exists and the bot can see it.
pub fn visible(hub: &Hub, store: &ChatStore, id: &str) -> Result<Value, DiscordRefusal> {
    let channel =
        store.get("d.channel", &hub.seeds.guild_id, id)?.ok_or_else(DiscordRefusal::channel)?;
    require(store, VIEW_CHANNEL).map_err(|_| DiscordRefusal::new(403, 50_001, "Missing Access"))?;
    Ok(channel)
}

pub fn is_thread(channel: &Value) -> bool {
    (10..=12).contains(&channel.int("type"))
}

/// Whether a thread is archived; never true for a channel.
pub fn archived(channel: &Value) -> bool {
    channel["thread_metadata"].flag("archived")
}

/// Refuses edits, reactions and deletions in an archived thread.
pub fn not_archived(channel: &Value) -> Result<(), DiscordRefusal> {
    if archived(channel) {
        return Err(DiscordRefusal::new(400, 50_083, "Thread is archived"));
    }
    Ok(())
}

/// The channel, ready for the bot's message: sending unarchives a thread unless it is locked.
pub fn writable(hub: &Hub, store: &ChatStore, id: &str) -> Result<Value, DiscordRefusal> {
    let mut channel = visible(hub, store, id)?;
    require(store, if is_thread(&channel) { SEND_IN_THREADS } else { SEND_MESSAGES })?;
    if channel["thread_metadata"].flag("locked") {
        return Err(DiscordRefusal::new(403, 160_005, "Thread is locked"));
    }
    if archived(&channel) {
        set_archived(&mut channel, false);
        save(hub, store, &channel)?;
    }
    Ok(channel)
}

pub fn set_archived(channel: &mut Value, archived: bool) {
    channel["thread_metadata"]["archived"] = archived.into();
    channel["thread_metadata"]["archive_timestamp"] = iso(now_ms()).into();
}

pub fn save(hub: &Hub, store: &ChatStore, channel: &Value) -> Result<(), ChatStoreError> {
    store.put("d.channel", &hub.seeds.guild_id, channel.str("id"), channel)?;
    hub.notify(json!({"kind": "channels", "platform": "discord", "channel": channel["id"]}));
    Ok(())
}

/// Updates the last message id, and a thread's message count.
pub fn touched(
    hub: &Hub,
    store: &ChatStore,
    id: &str,
    message: &str,
) -> Result<(), ChatStoreError> {
    let Some(mut channel) = store.get("d.channel", &hub.seeds.guild_id, id)? else {
        return Ok(());
    };
    channel["last_message_id"] = message.into();
    if is_thread(&channel) {
        for field in ["message_count", "total_message_sent"] {
            channel[field] = (channel.int(field) + 1).into();
        }
    }
    save(hub, store, &channel)
}

pub fn get(hub: &Hub, store: &ChatStore, id: &str) -> RouteResult {
    Ok(ApiResponse::json(visible(hub, store, id)?))
}

/// Archives, unarchives, locks or unlocks a thread; the bot may edit no channel.
pub fn patch(hub: &Hub, store: &ChatStore, call: &ApiRequest, id: &str) -> RouteResult {
    let mut channel = visible(hub, store, id)?;
    if !is_thread(&channel) {
        return Err(DiscordRefusal::permission());
    }
    let metadata = channel["thread_metadata"].clone();
    if call.body.has("locked") && call.body.flag("locked") != metadata.flag("locked") {
        require(store, MANAGE_THREADS)?;
        channel["thread_metadata"]["locked"] = call.body["locked"].clone();
    }
    if metadata.flag("locked") && metadata.flag("archived") {
        // Only moderators may reopen what moderators closed.
        require(store, MANAGE_THREADS)?;
    }
    if call.body.has("archived") {
        set_archived(&mut channel, call.body.flag("archived"));
    }
    save(hub, store, &channel)?;
    Ok(ApiResponse::json(channel))
}

/// Deletes a channel or thread with its messages, and a channel's threads.
pub fn remove(hub: &Hub, store: &ChatStore, channel: &Value) -> Result<(), ChatStoreError> {
    let id = channel.str("id");
    let guild = &hub.seeds.guild_id;
    let below = store.all("d.channel", guild)?.into_iter().filter(|one| one.str("parent_id") == id);
    for one in below.chain([channel.clone()]) {
        for kind in ["d.message", "d.ephemeral"] {
            store.delete_scope(kind, one.str("id"))?;
        }
        store.delete("d.channel", guild, one.str("id"))?;
    }
    if let Some(mut kept) = store.get("d.message", channel.str("parent_id"), id)? {
        kept["message"]["flags"] = (kept["message"].int("flags") & !HAS_THREAD).into();
        kept["message"]["thread"] = Value::Null;
        stored_message::save(hub, store, &kept)?;
    }
    hub.notify(json!({"kind": "channels", "platform": "discord", "channel": id}));
    Ok(())
}
