//! Discord's payload: the full interaction for a person's action in the page.
//!
//! It checks what Discord's own client checks (required options, lengths, disabled buttons); options given as a raw
//! list are passed on unchecked, as a modified client could send them.

use super::options::ActionContext;
use super::permissions::bot_permissions;
use super::users::membership;
use super::{inputs, options};
use crate::action::{ActionError, refused};
use crate::hub::Hub;
use crate::ids::{now_ms, random_text};
use crate::json::JsonFields;
use crate::limits::FILE_BYTES_MAX;
use crate::store::ChatStore;
use serde_json::{Value, json};

/// An interaction's record and the body to deliver.
pub struct PreparedInteraction {
    pub record: Value,
    pub payload: Value,
}

pub fn build(
    hub: &Hub,
    store: &ChatStore,
    act: &Value,
) -> Result<PreparedInteraction, ActionError> {
    let user_id = act.str_or("user_id", &hub.seeds.user_id);
    let channel_id = act.str_or("channel_id", &hub.seeds.channel_id);
    let Some(member) = store.get("d.user", "", user_id)?.filter(|one| !one["user"].flag("bot"))
    else {
        return refused("there is no such person (user_id)");
    };
    let Some(channel) = store.get("d.channel", &hub.seeds.guild_id, channel_id)? else {
        return refused("there is no such channel or thread (channel_id)");
    };
    if channel["thread_metadata"].flag("archived") {
        return refused("this thread is archived; write a message to wake it, then try again");
    }
    let context = ActionContext { hub, store, act, user_id, channel_id };
    let (kind, data, source) = match act.str("type") {
        "command" => (2, options::command(&context, 2)?, None),
        "autocomplete" => (4, options::command(&context, 4)?, None),
        "message_command" => (2, options::message_command(&context)?, None),
        "component" => inputs::component(&context)?,
        "modal" => inputs::modal(&context)?,
        other => {
            return refused(format!(
                "unknown type {other:?}: command, autocomplete, message_command, component, modal or message"
            ));
        }
    };
    let (id, token) = (hub.ids.snowflake(), random_text(64));
    let mut shown_channel = channel;
    shown_channel["permissions"] = membership(&member)["permissions"].clone();
    let guild = &hub.seeds.guild_id;
    let mut payload = json!({"id": id, "application_id": hub.discord.application_id, "type": kind, "token": token, "version": 1,
        "guild_id": guild, "guild": {"id": guild, "features": [], "locale": "en-US"}, "channel_id": channel_id, "channel": shown_channel,
        "member": membership(&member), "app_permissions": bot_permissions(store)?, "locale": "en-US", "guild_locale": "en-US",
        "entitlements": [], "entitlement_sku_ids": [], "authorizing_integration_owners": {"0": guild}, "context": 0,
        "attachment_size_limit": FILE_BYTES_MAX, "data": data});
    let source_id = source.as_ref().map(|message: &Value| message["id"].clone());
    if let Some(message) = source {
        payload["message"] = message;
    }
    let record =
        record(&id, &token, kind, channel_id, user_id, source_id, payload["data"].str("name"));
    Ok(PreparedInteraction { record, payload })
}

/// The stored record of an interaction, under its token.
pub fn record(
    id: &str,
    token: &str,
    kind: u64,
    channel: &str,
    user: &str,
    source: Option<Value>,
    name: &str,
) -> Value {
    json!({"id": id, "token": token, "type": kind, "channel_id": channel, "user_id": user, "created_ms": now_ms(), "state": "new",
        "original": null, "source_message": source, "name": name, "expired": false})
}

/// The actor's user object.
pub fn person(hub: &Hub, store: &ChatStore, act: &Value) -> Result<Value, ActionError> {
    let id = act.str_or("user_id", &hub.seeds.user_id);
    match store.get("d.user", "", id)? {
        Some(entry) => Ok(entry["user"].clone()),
        None => refused("there is no such person (user_id)"),
    }
}
