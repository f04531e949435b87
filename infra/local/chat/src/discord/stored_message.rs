//! Stored messages: `{message, to, token}` is Discord's object, the only person who sees it (ephemeral), and the
//! interaction token that created it. Ephemeral messages are stored separately, so that no listing of the bot finds
//! them.

use crate::hub::Hub;
use crate::json::JsonFields;
use crate::store::{ChatStore, ChatStoreError};
use serde_json::{Value, json};

/// Reads a stored message, ephemeral or not.
pub fn find(store: &ChatStore, channel: &str, id: &str) -> Result<Option<Value>, ChatStoreError> {
    Ok(match store.get("d.message", channel, id)? {
        Some(kept) => Some(kept),
        None => store.get("d.ephemeral", channel, id)?,
    })
}

/// Stores a message and notifies the pages.
pub fn save(hub: &Hub, store: &ChatStore, kept: &Value) -> Result<(), ChatStoreError> {
    let message = &kept["message"];
    let kind = if kept.has("to") { "d.ephemeral" } else { "d.message" };
    store.put_message(kind, message.str("channel_id"), message.str("id"), kept)?;
    hub.notify(json!({"kind": "message", "platform": "discord", "channel": message["channel_id"]}));
    Ok(())
}

/// Deletes a message.
pub fn remove(hub: &Hub, store: &ChatStore, channel: &str, id: &str) -> Result<(), ChatStoreError> {
    store.delete("d.message", channel, id)?;
    store.delete("d.ephemeral", channel, id)?;
    hub.notify(json!({"kind": "message", "platform": "discord", "channel": channel}));
    Ok(())
}
