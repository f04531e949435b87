//! Messages as they are stored: `{message, to, token}` is Discord's object, the only person who sees it (ephemeral), and the
//! interaction token that made it. Ephemeral messages lie apart, so that no listing of the bot can find them.

use crate::hub::Hub;
use crate::json::Read;
use crate::store::{Store, StoreError};
use serde_json::{Value, json};

/// Reads a stored message, ephemeral or not.
pub fn find(store: &Store, channel: &str, id: &str) -> Result<Option<Value>, StoreError> {
    Ok(match store.get("d.message", channel, id)? {
        Some(kept) => Some(kept),
        None => store.get("d.ephemeral", channel, id)?,
    })
}

/// Writes a stored message and tells the pages.
pub fn save(hub: &Hub, store: &Store, kept: &Value) -> Result<(), StoreError> {
    let message = &kept["message"];
    let kind = if kept.has("to") { "d.ephemeral" } else { "d.message" };
    store.put_message(kind, message.str("channel_id"), message.str("id"), kept)?;
    hub.notify(json!({"kind": "message", "platform": "discord", "channel": message["channel_id"]}));
    Ok(())
}

/// Takes a message away.
pub fn remove(hub: &Hub, store: &Store, channel: &str, id: &str) -> Result<(), StoreError> {
    store.delete("d.message", channel, id)?;
    store.delete("d.ephemeral", channel, id)?;
    hub.notify(json!({"kind": "message", "platform": "discord", "channel": channel}));
    Ok(())
}
