//! `/_control`: what a test or the page does as a person, injects, and reads back.

use crate::action::ActionError;
use crate::fault::{ChatFault, ChatFaults};
use crate::http::{self, ApiResponse};
use crate::hub::{Hub, broken, lock};
use crate::json::JsonFields;
use crate::limits::RETRY_DELAY_MS_MAX;
use crate::store::ChatStoreError;
use crate::{discord, slack};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

/// Serves one control call.
pub async fn serve(State(hub): State<Arc<Hub>>, request: Request) -> Response {
    let call = match http::read(request).await {
        Ok(call) => call,
        Err(status) => return status.into_response(),
    };
    let segments = call.segments();
    let body = &call.body;
    match (call.method.as_str(), &segments[1..]) {
        ("POST", ["discord", "interact"]) => acted(discord::act::act(&hub, body).await),
        ("POST", ["slack", "act"]) => acted(slack::act::act(&hub, body).await),
        // For a stack whose functions run elsewhere: their address is known only after this server has started.
        ("POST", ["ingress"]) => match body.str("url") {
            "" => refused("url is missing: the base of the ingress, such as http://127.0.0.1:8080"),
            url => {
                hub.ingress.set_base(url.to_owned());
                ApiResponse::json(json!({"ok": true})).into_response()
            }
        },
        // `bobbin event` announces what `sam local invoke` will deliver, which bypasses this server.
        ("POST", ["discord", "announce"]) => {
            shown(discord::announce(&hub, body).map(|()| json!({"ok": true})))
        }
        ("POST", ["slack", "announce"]) => {
            shown(slack::announce(&hub, body).map(|()| json!({"ok": true})))
        }
        (method, ["discord", "faults"]) => faults(method, &hub.discord_faults, body),
        (method, ["slack", "faults"]) => faults(method, &hub.slack_faults, body),
        ("POST", ["discord", "expire"]) => shown(expire(&hub, body.str("token"))),
        ("POST", ["discord", "delete_channel"]) => {
            shown(delete_channel(&hub, body.str("channel_id")))
        }
        ("POST", ["discord", "thread"]) => shown(set_thread(&hub, body)),
        ("POST", ["discord", "permissions"]) => shown(
            hub.store()
                .put("d.app", "", "permissions", &body["permissions"])
                .map(|()| json!({"ok": true})),
        ),
        ("POST", ["discord", "limits"]) => {
            hub.enforce_rates.store(body.flag("enforce"), Ordering::Relaxed);
            ApiResponse::json(json!({"ok": true})).into_response()
        }
        ("POST", ["slack", "retries"]) => {
            let delays = body.list("delays_ms").iter().filter_map(Value::as_u64);
            *lock(&hub.retry_delays_ms) =
                delays.map(|ms| ms.min(RETRY_DELAY_MS_MAX)).take(3).collect();
            ApiResponse::json(json!({"ok": true})).into_response()
        }
        ("GET", [platform @ ("discord" | "slack"), "requests"]) => {
            let after = call.asked("after").parse().unwrap_or_default();
            shown(hub.store().requests(platform, after).map(|list| json!({"requests": list})))
        }
        ("GET", ["discord", "answers"]) => {
            let after = call.asked("after").parse().unwrap_or_default();
            let kept = hub.store().requests(discord::ANSWERS, after);
            shown(kept.map(|list| json!({"answers": list})))
        }
        ("GET", ["discord", "ephemeral"]) => shown(ephemerals(&hub, call.asked("user_id"))),
        ("GET", ["slack", "ephemeral"]) => shown(slack_ephemerals(&hub, call.asked("user_id"))),
        ("GET", ["slack", "home"]) => shown(
            hub.store().get("s.home", "", call.asked("user_id")).map(|view| json!({"view": view})),
        ),
        // Administration of a workspace: a person joins, becomes a guest, leaves.
        ("POST", ["slack", "user"]) => shown(slack::people::set(&hub, body)),
        ("GET", ["slack", "sessions"]) => shown(sessions(&hub)),
        ("GET", ["seeds"]) => ApiResponse::json(json!(hub.seeds)).into_response(),
        _ => (
            StatusCode::NOT_FOUND,
            axum::Json(json!({"error": "this control call does not exist"})),
        )
            .into_response(),
    }
}

fn refused(why: &str) -> Response {
    (StatusCode::UNPROCESSABLE_ENTITY, axum::Json(json!({"error": why}))).into_response()
}

fn acted(done: Result<Value, ActionError>) -> Response {
    match done {
        Ok(done) => ApiResponse::json(done).into_response(),
        Err(ActionError::Refused(why)) => refused(&why),
        Err(ActionError::Store(error)) => broken(&error).into_response(),
    }
}

fn shown(read: Result<Value, ChatStoreError>) -> Response {
    match read {
        Ok(value) => ApiResponse::json(value).into_response(),
        Err(error) => broken(&error).into_response(),
    }
}

fn faults(method: &str, faults: &Mutex<ChatFaults>, body: &Value) -> Response {
    let mut faults = lock(faults);
    match method {
        "GET" => ApiResponse::json(json!({"faults": faults.waiting()})).into_response(),
        "DELETE" => {
            faults.clear();
            ApiResponse::json(json!({"ok": true})).into_response()
        }
        _ => match serde_json::from_value::<ChatFault>(body.clone()) {
            Ok(fault) => {
                if faults.add(fault) {
                    ApiResponse::json(json!({"ok": true})).into_response()
                } else {
                    refused("too many faults are already armed; DELETE them first")
                }
            }
            Err(error) => refused(&error.to_string()),
        },
    }
}

fn expire(hub: &Hub, token: &str) -> Result<Value, ChatStoreError> {
    let store = hub.store();
    let found = store.get("d.interaction", "", token)?;
    if let Some(mut record) = found.clone() {
        record["expired"] = true.into();
        store.put("d.interaction", "", token, &record)?;
    }
    Ok(json!({"ok": found.is_some()}))
}

fn delete_channel(hub: &Hub, id: &str) -> Result<Value, ChatStoreError> {
    let store = hub.store();
    store.atomically(|store| {
        let found = store.get("d.channel", &hub.seeds.guild_id, id)?;
        if let Some(channel) = &found {
            discord::channel::remove(hub, store, channel)?;
        }
        Ok(json!({"ok": found.is_some()}))
    })
}

/// A moderator archives or locks a thread.
fn set_thread(hub: &Hub, body: &Value) -> Result<Value, ChatStoreError> {
    let store = hub.store();
    let Some(mut thread) = store.get("d.channel", &hub.seeds.guild_id, body.str("channel_id"))?
    else {
        return Ok(json!({"ok": false}));
    };
    if body.has("archived") {
        discord::channel::set_archived(&mut thread, body.flag("archived"));
    }
    if body.has("locked") {
        thread["thread_metadata"]["locked"] = body["locked"].clone();
    }
    discord::channel::save(hub, &store, &thread)?;
    Ok(json!({"ok": true}))
}

fn ephemerals(hub: &Hub, user: &str) -> Result<Value, ChatStoreError> {
    let store = hub.store();
    let mut list = Vec::new();
    for channel in store.all("d.channel", &hub.seeds.guild_id)? {
        let kept = store.all("d.ephemeral", channel.str("id"))?;
        list.extend(kept.into_iter().filter(|one| user.is_empty() || one.str("to") == user));
    }
    Ok(json!({"messages": list}))
}

fn slack_ephemerals(hub: &Hub, user: &str) -> Result<Value, ChatStoreError> {
    let store = hub.store();
    let mut list = Vec::new();
    for channel in store.all("s.channel", "")? {
        let kept = store.all("s.ephemeral", channel.str("id"))?;
        list.extend(kept.into_iter().filter(|one| user.is_empty() || one.str("to") == user).map(
            |mut one| {
                one["channel"] = channel["id"].clone();
                one
            },
        ));
    }
    Ok(json!({"messages": list}))
}

fn sessions(hub: &Hub) -> Result<Value, ChatStoreError> {
    let store = hub.store();
    let mut list = Vec::new();
    for channel in store.all("s.channel", "")? {
        list.extend(store.all("s.session", channel.str("id"))?);
    }
    Ok(json!({"sessions": list}))
}
