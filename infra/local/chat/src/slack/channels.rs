//! Finding a channel, and telling the pages that one has changed.

use super::failure::{MethodError, fail};
use crate::hub::Hub;
use crate::json::Read;
use crate::store::Store;
use serde_json::{Value, json};

/// The channel of an argument: by id or by name.
pub fn channel(store: &Store, args: &Value, field: &str) -> Result<Value, MethodError> {
    let wanted = args.str(field);
    if let Some(found) = store.get("s.channel", "", wanted)? {
        return Ok(found);
    }
    let name = wanted.trim_start_matches('#');
    let all = store.all("s.channel", "")?;
    let named = |one: &Value| !name.is_empty() && one.str("name") == name;
    match all.into_iter().find(named) {
        Some(found) => Ok(found),
        None => fail("channel_not_found"),
    }
}

/// Tells the pages that a channel or thread has changed.
pub fn changed(hub: &Hub, kind: &str, channel: &str, thread: &str) {
    hub.notify(json!({"kind": kind, "platform": "slack", "channel": channel, "thread": thread}));
}
