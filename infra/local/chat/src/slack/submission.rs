//! Views that a person submits or closes.

use super::act::{Done, Impossible, Scene, refused, scene};
use super::deliver::{interact, status};
use super::interactivity::{base, chosen};
use super::views;
use crate::hub::{Answer, Hub, NoAnswer};
use crate::json::Read;
use crate::store::Store;
use serde_json::{Map, Value, json};

pub async fn view_submission(hub: &Hub, act: &Value) -> Done {
    let (payload, user, view_id) = {
        let store = hub.store();
        store.atomically(|store| {
            let Scene { user, .. } = scene(hub, store, act)?;
            let open = views::stack(store, user.str("id"))?;
            let wanted = |one: &&Value| !act.has("view_id") || one.str("id") == act.str("view_id");
            let Some(mut view) = open.iter().rev().find(wanted).cloned() else {
                return refused("this view is not open (view_id)");
            };
            view["state"]["values"] = Value::Object(state(&view, &act["values"])?);
            let id = view.str("id").to_owned();
            let mut payload = base(hub, store, "view_submission", &user, &id)?;
            payload["view"] = view;
            payload["response_urls"] = json!([]);
            Ok::<_, Impossible>((payload, user.str("id").to_owned(), id))
        })?
    };
    let answer = interact(hub, &payload).await;
    let store = hub.store();
    store.atomically(|store| after_submission(hub, store, &answer, &user, &view_id))
}

/// The entered values by block and action, with required ones checked as the client does.
fn state(view: &Value, values: &Value) -> Result<Map<String, Value>, Impossible> {
    let mut state = Map::new();
    for block in view
        .list("blocks")
        .iter()
        .filter(|block| block.str("type") == "input")
    {
        let (id, element) = (block.str("block_id"), &block["element"]);
        let value = match &values[id][element.str("action_id")] {
            Value::Null => element
                .get("initial_value")
                .or_else(|| element["initial_option"].get("value"))
                .cloned()
                .unwrap_or_default(),
            value => value.clone(),
        };
        let empty = value.is_null() || value == "" || value.as_array().is_some_and(Vec::is_empty);
        if empty && !block.flag("optional") {
            return refused(format!("{:?} is required", block["label"].str("text")));
        }
        let value = if value == "" { Value::Null } else { value };
        state.insert(
            id.to_owned(),
            json!({(element.str("action_id")): chosen(element, &value)?}),
        );
    }
    Ok(state)
}

fn after_submission(
    hub: &Hub,
    store: &Store,
    answer: &Result<Answer, NoAnswer>,
    user: &str,
    view: &str,
) -> Done {
    let Some(answer) = answer
        .as_ref()
        .ok()
        .filter(|answer| (200..300).contains(&answer.status))
    else {
        return Ok(
            json!({"status": status(answer), "outcome": {"kind": "failed", "reason": "We had some trouble connecting. Try again?"}}),
        );
    };
    let body = serde_json::from_slice::<Value>(&answer.body).unwrap_or_default();
    let outcome = match body.str("response_action") {
        "errors" => json!({"kind": "errors", "errors": body["errors"]}),
        "update" => {
            views::replace(hub, store, user, view, &body["view"])?;
            json!({"kind": "updated"})
        }
        "push" => {
            views::show(hub, store, user, &body["view"], true)?;
            json!({"kind": "pushed"})
        }
        "clear" => {
            views::keep_stack(hub, store, user, &[])?;
            json!({"kind": "closed"})
        }
        _ => {
            let mut open = views::stack(store, user)?;
            open.retain(|one| one.str("id") != view);
            views::keep_stack(hub, store, user, &open)?;
            json!({"kind": "closed"})
        }
    };
    Ok(json!({"status": answer.status, "outcome": outcome}))
}

/// Closes the topmost view; the app hears of it only where it asked to.
pub async fn view_closed(hub: &Hub, act: &Value) -> Done {
    let payload = {
        let store = hub.store();
        store.atomically(|store| {
            let Scene { user, .. } = scene(hub, store, act)?;
            let mut open = views::stack(store, user.str("id"))?;
            let Some(view) = open.pop() else {
                return refused("no view is open");
            };
            views::keep_stack(hub, store, user.str("id"), &open)?;
            let mut payload = base(hub, store, "view_closed", &user, "")?;
            payload
                .as_object_mut()
                .map(|fields| fields.remove("trigger_id"));
            payload["view"] = view;
            payload["is_cleared"] = false.into();
            Ok::<_, Impossible>(payload)
        })?
    };
    let told = payload["view"].flag("notify_on_close");
    let status = if told {
        status(&interact(hub, &payload).await)
    } else {
        0
    };
    Ok(json!({"told": told, "status": status}))
}
