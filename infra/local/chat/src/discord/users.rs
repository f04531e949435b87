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

/// The guild, to which its roles belong.
pub fn guild(store: &ChatStore, id: &str) -> RouteResult {
    known_guild(store, id)?;
    let mut guild = store.get("d.guild", "", id)?.unwrap_or_default();
    for name in [
        "home_header",
        "splash",
        "discovery_splash",
        "banner",
        "application_id",
        "afk_channel_id",
        "system_channel_id",
        "widget_channel_id",
        "vanity_url_code",
        "rules_channel_id",
        "safety_alerts_channel_id",
        "public_updates_channel_id",
        "incidents_data",
        "max_presences",
    ] {
        guild[name] = Value::Null;
    }
    for name in [
        "system_channel_flags",
        "verification_level",
        "default_message_notifications",
        "mfa_level",
        "explicit_content_filter",
        "premium_tier",
        "premium_subscription_count",
        "nsfw_level",
    ] {
        guild[name] = 0.into();
    }
    for (name, value) in [
        ("afk_timeout", 300),
        ("max_members", 500_000),
        ("max_stage_video_channel_users", 50),
        ("max_video_channel_users", 25),
    ] {
        guild[name] = value.into();
    }
    for name in ["widget_enabled", "premium_progress_bar_enabled", "nsfw"] {
        guild[name] = false.into();
    }
    guild["region"] = "deprecated".into();
    for role in guild["roles"].as_array_mut().into_iter().flatten() {
        role["colors"] =
            json!({"primary_color": 0, "secondary_color": null, "tertiary_color": null});
        (role["icon"], role["unicode_emoji"]) = (Value::Null, Value::Null);
    }
    Ok(ApiResponse::json(guild))
}

/// A person in the guild: their roles, and not what these allow.
pub fn member(store: &ChatStore, guild: &str, user: &str) -> RouteResult {
    known_guild(store, guild)?;
    let Some(entry) = store.get("d.user", "", user)? else {
        return Err(DiscordRefusal::new(404, 10_013, "Unknown User"));
    };
    if entry.flag("left") {
        return Err(DiscordRefusal::new(404, 10_007, "Unknown Member"));
    }
    let mut member = membership(&entry);
    if let Some(member) = member.as_object_mut() {
        member.remove("permissions");
    }
    Ok(ApiResponse::json(member))
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
