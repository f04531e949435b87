//! What a person types in a channel or thread: a message, a reply, a forward.

use super::compose::{self, Draft};
use super::flags::HAS_SNAPSHOT;
use super::payload;
use super::refusal::DiscordRefusal;
use super::validation::Origin;
use super::{channel, stored_message};
use crate::action::ActionError;
use crate::hub::Hub;
use crate::json::JsonFields;
use crate::store::{ChatStore, ChatStoreError};
use serde_json::{Value, json};

/// Posts it, and returns the message.
pub fn say(hub: &Hub, act: &Value) -> Result<Value, ActionError> {
    let store = hub.store();
    store.atomically(|store| {
        let person = payload::person(hub, store, act)?;
        let body = body_of(store, act)?;
        let channel_id = act.str_or("channel_id", &hub.seeds.channel_id);
        post(hub, store, channel_id, &person, &body)
            .map_err(|refusal| ActionError::Refused(refusal.body.str("message").to_owned()))
    })
}

/// Posts what a person typed. Plain text reaches no HTTP-only app; people read it, and message commands use it.
fn post(
    hub: &Hub,
    store: &ChatStore,
    channel_id: &str,
    user: &Value,
    body: &Value,
) -> Result<Value, DiscordRefusal> {
    let channel = store
        .get("d.channel", &hub.seeds.guild_id, channel_id)?
        .ok_or_else(DiscordRefusal::channel)?;
    if channel::archived(&channel) {
        let mut awake = channel;
        channel::set_archived(&mut awake, false);
        channel::save(hub, store, &awake)?;
    }
    let named = |channel: &str, id: &str| {
        let kept = store.get("d.message", channel, id)?;
        kept.map(|kept| kept["message"].clone()).ok_or_else(DiscordRefusal::message)
    };
    let mut own = body.clone();
    if body.has("forward") {
        // A forward has no text of its own; its snapshot counts.
        own["content"] = "forwarded".into();
    }
    let draft = Draft {
        channel_id,
        author: user.clone(),
        body: &own,
        files: &[],
        origin: Origin::Bot,
        kind: 0,
        to: None,
        token: None,
    };
    let mut kept = compose::compose(hub, store, &draft)?;
    if body.has("reply_to") {
        let answered = named(channel_id, body.str("reply_to"))?;
        compose::reply(hub, &mut kept, answered);
    }
    if body.has("forward") {
        let from = &body["forward"];
        let original = named(from.str("channel_id"), from.str("message_id"))?;
        let mut snapshot = json!({});
        // Discord's fields of a snapshot; the author is not one of them.
        for field in [
            "type",
            "content",
            "embeds",
            "attachments",
            "timestamp",
            "edited_timestamp",
            "flags",
            "mentions",
            "mention_roles",
            "components",
        ] {
            snapshot[field] = original[field].clone();
        }
        kept["message"]["content"] = "".into();
        kept["message"]["flags"] = HAS_SNAPSHOT.into();
        kept["message"]["message_reference"] = compose::refers(hub, &original, 1);
        kept["message"]["message_snapshots"] = json!([{"message": snapshot}]);
    }
    if body.has("uploads") {
        kept["message"]["attachments"] = body["uploads"].clone();
    }
    stored_message::save(hub, store, &kept)?;
    Ok(kept["message"].clone())
}

/// Text and uploads of a typed message.
fn body_of(store: &ChatStore, act: &Value) -> Result<Value, ChatStoreError> {
    let mut uploads = Vec::new();
    for id in act.list("uploads") {
        uploads.extend(store.get("d.upload", "", id.as_str().unwrap_or_default())?);
    }
    let mut body = json!({"content": act["text"], "attachments": uploads});
    for field in ["reply_to", "forward"] {
        if act.has(field) {
            body[field] = act[field].clone();
        }
    }
    if !uploads.is_empty() {
        body["uploads"] = Value::Array(uploads);
    }
    Ok(body)
}
