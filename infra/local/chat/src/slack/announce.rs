//! Events that are signed and delivered by others, bypassing this server.

use super::channels::changed;
use crate::hub::Hub;
use crate::ids::ts_micros;
use crate::json::JsonFields;
use crate::store::ChatStoreError;
use serde_json::Value;

/// Registers the message of an event. A known one is left alone.
pub fn announce(hub: &Hub, payload: &Value) -> Result<(), ChatStoreError> {
    let store = hub.store();
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
    let thread = event.str_or("thread_ts", ts);
    changed(hub, "message", channel, thread);
    Ok(())
}
