//! An agent's status in a thread.

use super::channels::{changed, channel};
use super::failure::{MethodError, MethodResult, fail};
use super::messages::root_of;
use crate::hub::Hub;
use crate::ids::now_ms;
use crate::json::JsonFields;
use crate::store::ChatStore;
use serde_json::{Value, json};

/// The thread in the arguments of a status method.
fn thread(store: &ChatStore, args: &Value) -> Result<(String, String), MethodError> {
    let id = channel(store, args, "channel_id")?.str("id").to_owned();
    if !args.has("thread_ts") {
        return fail("missing_thread_ts");
    }
    let root = root_of(store, &id, args.str("thread_ts"))?;
    Ok((id, root))
}

fn update_session(
    hub: &Hub,
    store: &ChatStore,
    args: &Value,
    change: impl FnOnce(&mut Value),
) -> MethodResult {
    let (channel, root) = thread(store, args)?;
    let mut session = store
        .get("s.session", &channel, &root)?
        .unwrap_or_else(|| json!({"channel_id": channel, "thread_ts": root}));
    change(&mut session);
    session["at_ms"] = now_ms().into();
    store.put("s.session", &channel, &root, &session)?;
    changed(hub, "status", &channel, &root);
    Ok(json!({}))
}

pub fn thread_status(hub: &Hub, store: &ChatStore, args: &Value) -> MethodResult {
    if !args["status"].is_string() {
        return fail("invalid_arguments");
    }
    update_session(hub, store, args, |session| session["text"] = args["status"].clone())
}

pub fn session_status(hub: &Hub, store: &ChatStore, args: &Value) -> MethodResult {
    if !["processing", "active", "suspended", "closed"].contains(&args.str("status")) {
        return fail("invalid_status");
    }
    if args.str("title").chars().count() > 200 {
        return fail("invalid_title");
    }
    update_session(hub, store, args, |session| {
        // Title and initiator count only on creation.
        if !session.has("status") {
            session["title"] = args["title"].clone();
            session["initiator_user_id"] = args["initiator_user_id"].clone();
        }
        session["status"] = args["status"].clone();
    })
}
