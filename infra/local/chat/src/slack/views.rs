//! Modals and the Home tab. A trigger id lives 3 s and works once.

use super::{Fail, Outcome, blocks, fail};
use crate::hub::Hub;
use crate::ids::{alive, now_ms, random_text, slack_id};
use crate::json::Read;
use crate::limits::{TRIGGER_MS, VIEW_STACK_MAX};
use crate::store::{Store, StoreError};
use serde_json::{Value, json};

/// Makes a trigger for what a person just did; `view` is the view that it was done in.
pub fn trigger(store: &Store, user: &str, view: &str) -> Result<String, StoreError> {
    let id = format!(
        "{}.{}.{}",
        now_ms(),
        random_text(12),
        hex::encode(random_text(16))
    );
    known_trigger(store, &id, user, view)?;
    Ok(id)
}

/// Keeps a trigger under its id, good from now on.
pub fn known_trigger(store: &Store, id: &str, user: &str, view: &str) -> Result<(), StoreError> {
    store.put(
        "s.trigger",
        "",
        id,
        &json!({"user": user, "view": view, "created_ms": now_ms(), "used": false}),
    )
}

fn spend(store: &Store, id: &str) -> Result<Value, Fail> {
    let Some(mut trigger) = store.get("s.trigger", "", id)? else {
        return fail("invalid_trigger_id");
    };
    if trigger.flag("used") {
        return fail("exchanged_trigger_id");
    }
    if !alive(trigger.int("created_ms"), TRIGGER_MS) {
        return fail("expired_trigger_id");
    }
    trigger["used"] = true.into();
    store.put("s.trigger", "", id, &trigger)?;
    Ok(trigger)
}

fn check(view: &Value, kind: &str) -> Result<(), Fail> {
    if view.str("type") != kind {
        return Err(Fail {
            error: "invalid_arguments",
            messages: vec![format!(
                "[ERROR] must be a {kind} [json-pointer:/view/type]"
            )],
        });
    }
    if view.to_string().len() > 250_000 {
        return fail("view_too_large");
    }
    let mut messages = Vec::new();
    let mut short = |field: &str, text: &str, max: usize| {
        if text.chars().count() > max {
            messages.push(format!(
                "[ERROR] must be less than {} characters [json-pointer:/view/{field}]",
                max + 1
            ));
        }
    };
    for field in ["title", "submit", "close"] {
        short(field, view[field].str("text"), 24);
    }
    short("private_metadata", view.str("private_metadata"), 3000);
    short("callback_id", view.str("callback_id"), 255);
    if kind == "modal" && view["title"].str("text").is_empty() {
        messages.push("[ERROR] missing required field: title [json-pointer:/view]".to_owned());
    }
    let has_input = view
        .list("blocks")
        .iter()
        .any(|block| block.str("type") == "input");
    if kind == "modal" && has_input && !view.has("submit") {
        messages.push(
            "[ERROR] a view with inputs needs a submit button [json-pointer:/view/submit]"
                .to_owned(),
        );
    }
    if !messages.is_empty() {
        return Err(Fail {
            error: "invalid_arguments",
            messages,
        });
    }
    blocks::check(&view["blocks"], true)
}

/// Fills in what Slack adds to a view.
fn complete(hub: &Hub, mut view: Value, id: &str, root: &str, previous: Option<&str>) -> Value {
    for block in view["blocks"]
        .as_array_mut()
        .into_iter()
        .flatten()
        .filter(|one| !one.has("block_id"))
    {
        block["block_id"] = random_text(5).into();
    }
    for (field, value) in [
        ("id", json!(id)),
        ("team_id", json!(hub.seeds.team_id)),
        ("app_id", json!(hub.slack.app_id)),
        ("app_installed_team_id", json!(hub.seeds.team_id)),
        ("bot_id", json!(hub.seeds.slack_bot_id)),
        (
            "hash",
            json!(format!("{}.{}", now_ms() / 1_000, random_text(8))),
        ),
        ("root_view_id", json!(root)),
        ("previous_view_id", json!(previous)),
        ("state", json!({"values": {}})),
    ] {
        view[field] = value;
    }
    for field in ["private_metadata", "callback_id", "external_id"] {
        view[field] = view.str(field).into();
    }
    view
}

/// The views that a person has open, the topmost last.
pub fn stack(store: &Store, user: &str) -> Result<Vec<Value>, StoreError> {
    Ok(store
        .get("s.views", "", user)?
        .and_then(|list| list.as_array().cloned())
        .unwrap_or_default())
}

pub fn keep_stack(hub: &Hub, store: &Store, user: &str, stack: &[Value]) -> Result<(), StoreError> {
    store.put("s.views", "", user, &json!(stack))?;
    hub.notify(json!({"kind": "view", "platform": "slack", "user": user}));
    Ok(())
}

/// Opens a modal, or pushes one onto the open stack.
pub fn open(hub: &Hub, store: &Store, args: &Value, push: bool) -> Outcome {
    check(&args["view"], "modal")?;
    let trigger = spend(store, args.str("trigger_id"))?;
    let view = show(hub, store, trigger.str("user"), &args["view"], push)?;
    Ok(json!({"view": view}))
}

/// Shows a view to a person: on top of what is open, or in its place.
pub fn show(hub: &Hub, store: &Store, user: &str, view: &Value, push: bool) -> Result<Value, Fail> {
    check(view, "modal")?;
    let mut open = if push {
        stack(store, user)?
    } else {
        Vec::new()
    };
    if open.len() >= VIEW_STACK_MAX {
        return fail("push_limit_reached");
    }
    let id = slack_id('V');
    let root = open
        .first()
        .map_or(id.clone(), |one| one.str("id").to_owned());
    let previous = open.last().map(|one| one.str("id").to_owned());
    let view = complete(hub, view.clone(), &id, &root, previous.as_deref());
    open.push(view.clone());
    keep_stack(hub, store, user, &open)?;
    Ok(view)
}

pub fn update(hub: &Hub, store: &Store, args: &Value) -> Outcome {
    check(&args["view"], args["view"].str("type"))?;
    for user in store.all("s.user", "")? {
        let mut open = stack(store, user.str("id"))?;
        let by_external = |one: &Value| {
            args.has("external_id") && one.str("external_id") == args.str("external_id")
        };
        let Some(at) = open
            .iter()
            .position(|one| one.str("id") == args.str("view_id") || by_external(one))
        else {
            continue;
        };
        open[at] = replaced(hub, &open[at], args)?;
        keep_stack(hub, store, user.str("id"), &open)?;
        return Ok(json!({"view": open[at]}));
    }
    fail("not_found")
}

fn replaced(hub: &Hub, old: &Value, args: &Value) -> Result<Value, Fail> {
    if args.has("hash") && args["hash"] != old["hash"] {
        return fail("hash_conflict");
    }
    let previous = old["previous_view_id"].as_str();
    Ok(complete(
        hub,
        args["view"].clone(),
        old.str("id"),
        old.str("root_view_id"),
        previous,
    ))
}

/// Replaces a view as `response_action: update` does.
pub fn replace(hub: &Hub, store: &Store, user: &str, id: &str, view: &Value) -> Result<(), Fail> {
    check(view, "modal")?;
    let mut open = stack(store, user)?;
    if let Some(at) = open.iter().position(|one| one.str("id") == id) {
        open[at] = replaced(hub, &open[at], &json!({"view": view}))?;
        keep_stack(hub, store, user, &open)?;
    }
    Ok(())
}

pub fn publish(hub: &Hub, store: &Store, args: &Value) -> Outcome {
    check(&args["view"], "home")?;
    let user = args.str("user_id");
    if store.get("s.user", "", user)?.is_none() {
        return fail("user_not_found");
    }
    let old = store.get("s.home", "", user)?;
    if let Some(old) = old
        .as_ref()
        .filter(|old| args.has("hash") && args["hash"] != old["hash"])
    {
        tracing::debug!(
            view = old.str("id"),
            "a Home view was published on an old hash"
        );
        return fail("hash_conflict");
    }
    let id = old.map_or_else(|| slack_id('V'), |old| old.str("id").to_owned());
    let view = complete(hub, args["view"].clone(), &id, &id, None);
    store.put("s.home", "", user, &view)?;
    hub.notify(json!({"kind": "view", "platform": "slack", "user": user}));
    Ok(json!({"view": view}))
}
