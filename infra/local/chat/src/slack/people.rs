//! Who is there: the bot itself, the team, people.

use super::{Outcome, fail};
use crate::hub::Hub;
use crate::json::Read;
use crate::seeds::slack_user;
use crate::store::{Store, StoreError};
use serde_json::{Value, json};

pub fn auth(hub: &Hub, store: &Store) -> Outcome {
    let team = store
        .get("s.team", "", &hub.seeds.team_id)?
        .unwrap_or_default();
    Ok(
        json!({"url": format!("{}/", hub.base), "team": team["name"], "team_id": hub.seeds.team_id, "user": "bobbin",
        "user_id": hub.slack.bot_user_id, "bot_id": hub.seeds.slack_bot_id, "is_enterprise_install": false}),
    )
}

pub fn team(hub: &Hub, store: &Store) -> Outcome {
    Ok(json!({"team": store.get("s.team", "", &hub.seeds.team_id)?}))
}

pub fn bot(hub: &Hub, args: &Value) -> Outcome {
    if args.has("bot") && args.str("bot") != hub.seeds.slack_bot_id {
        return fail("bot_not_found");
    }
    Ok(
        json!({"bot": {"id": hub.seeds.slack_bot_id, "deleted": false, "name": "Bobbin", "app_id": hub.slack.app_id,
        "user_id": hub.slack.bot_user_id}}),
    )
}

pub fn user(store: &Store, args: &Value) -> Outcome {
    match store.get("s.user", "", args.str("user"))? {
        Some(user) => Ok(json!({"user": user})),
        None => fail("user_not_found"),
    }
}

/// Sets flags of a person, who comes into being with them.
pub fn set(hub: &Hub, flags: &Value) -> Result<Value, StoreError> {
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
    Ok(json!({"user": user}))
}

pub fn users(store: &Store) -> Outcome {
    Ok(json!({"members": store.all("s.user", "")?, "response_metadata": {"next_cursor": ""}}))
}
