//! Slack's methods: authentication, routing, errors as HTTP 200 with `ok: false`.

use super::failure::{MethodError, MethodResult, fail};
use super::{chat, conversations, files, home, people, sessions, stream};
use crate::bot_requests;
use crate::fault::ChatFault;
use crate::http::{self, ApiRequest, ApiResponse};
use crate::hub::Hub;
use crate::store::ChatStore;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// Serves one request of the bot.
pub async fn serve(hub: &Hub, request: Request) -> Response {
    match http::read(request).await {
        Ok(call) => {
            bot_requests::serve(hub, "slack", &hub.slack_faults, fault_reply, call, answer).await
        }
        Err(status) => status.into_response(),
    }
}

fn answer(hub: &Hub, call: &ApiRequest) -> ApiResponse {
    let path = call.segments();
    match path.as_slice() {
        ["slack", "api", method] => {
            let args = arguments(call);
            let outcome = admit(hub, call, &args).and_then(|()| {
                let store = hub.store();
                store.atomically(|store| route(hub, store, method, &args))
            });
            let mut reply = ApiResponse::json(match outcome {
                Ok(Value::Object(mut body)) => {
                    body.insert("ok".to_owned(), true.into());
                    Value::Object(body)
                }
                Ok(_) => json!({"ok": true}),
                Err(refusal) => refusal.body(),
            });
            let scopes = hub.slack.scopes.join(",");
            reply.headers.push(("x-oauth-scopes", scopes));
            reply
        }
        ["slack", "upload", id] => files::receive(hub, call, id),
        _ => ApiResponse {
            status: 404,
            ..ApiResponse::json(json!({"ok": false, "error": "not_found"}))
        },
    }
}

fn admit(hub: &Hub, call: &ApiRequest, args: &Value) -> Result<(), MethodError> {
    match call.token("Bearer").or_else(|| args["token"].as_str()) {
        Some(token) if token == hub.slack.bot_token => {}
        Some(_) => return fail("invalid_auth"),
        None => return fail("not_authed"),
    }
    match call.unreadable {
        Some("invalid_json") => fail("invalid_json"),
        Some("content_type") => fail("invalid_post_type"),
        Some(_) => fail("invalid_form_data"),
        None if call.body.is_array() => fail("json_not_object"),
        None => Ok(()),
    }
}

/// Arguments of query and body; structured ones may be JSON text in a form.
fn arguments(call: &ApiRequest) -> Value {
    let mut args = Value::Object(call.query.clone());
    for (name, value) in crate::json::fields(&call.body) {
        args[name] = value;
    }
    for name in ["blocks", "attachments", "metadata", "view", "files"] {
        if let Some(parsed) = args[name].as_str().and_then(|text| serde_json::from_str(text).ok()) {
            args[name] = parsed;
        }
    }
    if let Some(args) = args.as_object_mut() {
        args.retain(|_, value| !value.is_null());
    }
    args
}

/// Every served method, in one place.
fn route(hub: &Hub, store: &ChatStore, method: &str, args: &Value) -> MethodResult {
    match method {
        "auth.test" => people::auth(hub, store),
        "users.info" => people::user(store, args),
        "chat.postMessage" => chat::post(hub, store, args),
        "chat.update" => chat::update(hub, store, args),
        "chat.startStream" => stream::start(hub, store, args),
        "chat.appendStream" => stream::append(hub, store, args),
        "chat.stopStream" => stream::stop(hub, store, args),
        "chat.postEphemeral" => chat::post_ephemeral(hub, store, args),
        "conversations.history" => conversations::history(store, args),
        "conversations.members" => conversations::members(store, args),
        "conversations.replies" => conversations::replies(store, args),
        "views.publish" => home::publish(hub, store, args),
        "files.getUploadURLExternal" => files::begin_upload(hub, store, args),
        "files.completeUploadExternal" => files::complete_upload(hub, store, args),
        "assistant.threads.setStatus" => sessions::thread_status(hub, store, args),
        "agents.sessions.setStatus" => sessions::session_status(hub, store, args),
        _ => fail("unknown_method"),
    }
}

fn fault_reply(fault: &ChatFault) -> ApiResponse {
    let error = |name: &str| json!({"ok": false, "error": name});
    let mut reply = match fault.status {
        429 => ApiResponse {
            status: 429,
            body: error("ratelimited"),
            headers: vec![("retry-after", fault.retry_after.ceil().to_string())],
        },
        200 => ApiResponse::json(error(if fault.error.is_empty() {
            "internal_error"
        } else {
            &fault.error
        })),
        status => ApiResponse {
            status,
            body: Value::String("injected fault".to_owned()),
            headers: Vec::new(),
        },
    };
    if let Some(body) = &fault.body {
        reply.body = body.clone();
    }
    reply
}
