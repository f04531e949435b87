//! The bot's own user, and people as guild members.

use super::permissions::{ADMIN_PERMISSIONS, MEMBER_PERMISSIONS, bot_permissions};
use super::refusal::{DiscordRefusal, RouteResult};
use crate::http::{ApiRequest, ApiResponse};
use crate::hub::Hub;
use crate::json::JsonFields;
use crate::store::{ChatStore, ChatStoreError};
use serde_json::{Value, json};

/// The bot's user object.
pub fn bot(hub: &Hub, store: &ChatStore) -> Result<Value, ChatStoreError> {
    let entry = store.get("d.user", "", &hub.discord.application_id)?;
    Ok(entry.map(|entry| entry["user"].clone()).unwrap_or_default())
}

pub fn me(hub: &Hub, store: &ChatStore) -> RouteResult {
    Ok(ApiResponse::json(bot(hub, store)?))
}

/// The bot's guild, if it comes after the page's start.
pub fn guilds(hub: &Hub, store: &ChatStore, call: &ApiRequest) -> RouteResult {
    let id = hub.seeds.guild_id.as_str();
    let number = |id: &str| id.parse::<u64>().unwrap_or_default();
    let after = number(call.asked("after"));
    let guild = store.get("d.guild", "", id)?.filter(|_| number(id) > after);
    let page = guild.map(|guild| {
        json!({"id": id, "name": guild["name"], "icon": null, "banner": null, "owner": false,
            "permissions": bot_permissions(store).unwrap_or_default(), "features": []})
    });
    Ok(ApiResponse::json(json!(page.into_iter().collect::<Vec<_>>())))
}

/// Refuses an unknown guild.
pub fn known_guild(store: &ChatStore, id: &str) -> Result<(), DiscordRefusal> {
    match store.get("d.guild", "", id)? {
        Some(_) => Ok(()),
        None => Err(DiscordRefusal::new(404, 10_004, "Unknown Guild")),
    }
}

/// A user as a guild member, with the effective permissions that interactions carry.
pub fn membership(entry: &Value) -> Value {
    json!({"user": entry["user"], "nick": null, "avatar": null, "banner": null, "roles": entry["roles"].as_array().cloned().unwrap_or_default(), "joined_at": "2026-01-04T20:21:10.139000+00:00",
        "premium_since": null, "deaf": false, "mute": false, "pending": false, "flags": 0, "communication_disabled_until": null,
        "permissions": if entry.flag("admin") { ADMIN_PERMISSIONS } else { MEMBER_PERMISSIONS }})
}
