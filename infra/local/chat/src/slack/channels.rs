//! Finds channels, and notifies the pages of changes.

use super::failure::{MethodError, fail};
use crate::hub::Hub;
use crate::json::JsonFields;
use crate::store::{ChatStore, ChatStoreError};
use serde_json::{Value, json};

/// The channel of an argument, by id or name.
pub fn channel(store: &ChatStore, args: &Value, field: &str) -> Result<Value, MethodError> {
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

/// Target of a message: a channel, or the direct messages of a person whose id is given instead.
pub fn destination(store: &ChatStore, args: &Value) -> Result<Value, MethodError> {
    match store.get("s.user", "", args.str("channel"))? {
        Some(user) => match direct_messages(store, user.str("id"))? {
            Some(found) => Ok(found),
            None => fail("channel_not_found"),
        },
        None => channel(store, args, "channel"),
    }
}

/// A person's direct messages with the app.
pub fn direct_messages(store: &ChatStore, user: &str) -> Result<Option<Value>, ChatStoreError> {
    let all = store.all("s.channel", "")?;
    Ok(all.into_iter().find(|one| one.flag("is_im") && one.str("user") == user))
}

/// Tells the pages that a channel or thread changed.
pub fn changed(hub: &Hub, kind: &str, channel: &str, thread: &str) {
    hub.notify(json!({"kind": kind, "platform": "slack", "channel": channel, "thread": thread}));
}
