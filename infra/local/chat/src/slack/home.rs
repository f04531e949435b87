//! The app's Home, published per person.

use super::blocks;
use super::failure::{MethodError, MethodResult, fail};
use crate::hub::Hub;
use crate::ids::{now_ms, random_text, slack_id};
use crate::json::JsonFields;
use crate::store::ChatStore;
use serde_json::{Value, json};

/// Slack's checks of a Home.
fn check(view: &Value) -> Result<(), MethodError> {
    let wrong =
        |message: String| MethodError { error: "invalid_arguments", messages: vec![message] };
    if view.str("type") != "home" {
        let message = "[ERROR] must be a home [json-pointer:/view/type]";
        return Err(wrong(message.to_owned()));
    }
    if view.to_string().len() > 250_000 {
        return fail("view_too_large");
    }
    for (field, max) in [("private_metadata", 3000), ("callback_id", 255)] {
        if view.str(field).chars().count() > max {
            let max = max + 1;
            return Err(wrong(format!(
                "[ERROR] must be less than {max} characters [json-pointer:/view/{field}]"
            )));
        }
    }
    blocks::check(&view["blocks"], 100)
}

/// Adds Slack's own fields to a view.
fn complete(hub: &Hub, mut view: Value, id: &str) -> Value {
    view["blocks"] = blocks::with_ids(view["blocks"].take());
    for (field, value) in [
        ("id", json!(id)),
        ("team_id", json!(hub.seeds.team_id)),
        ("app_id", json!(hub.slack.app_id)),
        ("app_installed_team_id", json!(hub.seeds.team_id)),
        ("bot_id", json!(hub.seeds.slack_bot_id)),
        ("hash", json!(format!("{}.{}", now_ms() / 1_000, random_text(8)))),
        ("root_view_id", json!(id)),
        ("previous_view_id", Value::Null),
        ("state", json!({"values": {}})),
    ] {
        view[field] = value;
    }
    for field in ["private_metadata", "callback_id", "external_id"] {
        view[field] = view.str(field).into();
    }
    view
}

pub fn publish(hub: &Hub, store: &ChatStore, args: &Value) -> MethodResult {
    check(&args["view"])?;
    let user = args.str("user_id");
    if store.get("s.user", "", user)?.is_none() {
        return fail("user_not_found");
    }
    let old = store.get("s.home", "", user)?;
    if let Some(old) = old.as_ref().filter(|old| args.has("hash") && args["hash"] != old["hash"]) {
        tracing::debug!(view = old.str("id"), "a Home view was published on an old hash");
        return fail("hash_conflict");
    }
    let id = old.map_or_else(|| slack_id('V'), |old| old.str("id").to_owned());
    let view = complete(hub, args["view"].clone(), &id);
    store.put("s.home", "", user, &view)?;
    hub.notify(json!({"kind": "view", "platform": "slack", "user": user}));
    Ok(json!({"view": view}))
}
