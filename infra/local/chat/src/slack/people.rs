//! The users: the bot and people.

use super::channels::direct_messages;
use super::failure::{MethodResult, fail};
use crate::hub::Hub;
use crate::ids::slack_id;
use crate::json::JsonFields;
use crate::seeds::{direct_message, slack_user};
use crate::store::{ChatStore, ChatStoreError};
use serde_json::{Value, json};

pub fn auth(hub: &Hub, store: &ChatStore) -> MethodResult {
    let team = store.get("s.team", "", &hub.seeds.team_id)?.unwrap_or_default();
    Ok(
        json!({"url": format!("{}/", hub.base), "team": team["name"], "team_id": hub.seeds.team_id, "user": "bobbin",
        "user_id": hub.slack.bot_user_id, "bot_id": hub.seeds.slack_bot_id, "is_enterprise_install": false}),
    )
}

pub fn user(store: &ChatStore, args: &Value) -> MethodResult {
    match store.get("s.user", "", args.str("user"))? {
        Some(user) => Ok(json!({"user": user})),
        None => fail("user_not_found"),
    }
}

/// Sets a person's flags, creating the person if needed; the answer names their direct messages with the app.
pub fn set(hub: &Hub, flags: &Value) -> Result<Value, ChatStoreError> {
    let id = flags.str("id");
    let store = hub.store();
    let mut user = match store.get("s.user", "", id)? {
        Some(user) => user,
        None => slack_user(&hub.seeds.team_id, id, "guest", "Guest", false, false),
    };
    for (name, value) in flags.as_object().into_iter().flatten() {
        user[name] = value.clone();
    }
    store.put("s.user", "", id, &user)?;
    let direct = match direct_messages(&store, id)? {
        Some(channel) => channel,
        None => {
            let opened = direct_message(&slack_id('D'), id, &hub.seeds.team_id);
            store.put("s.channel", "", opened.str("id"), &opened)?;
            opened
        }
    };
    Ok(json!({"user": user, "dm_id": direct["id"]}))
}
