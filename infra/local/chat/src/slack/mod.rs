//! The Slack-compatible Web API: who may call, the table of methods, errors as HTTP 200 with `ok: false`.

pub mod act;
mod blocks;
pub mod chat;
mod conversations;
mod deliver;
mod files;
mod interactivity;
pub mod people;
mod stream;
mod submission;
pub mod views;

use crate::fault::Fault;
use crate::gate::{self, Call, Reply};
use crate::hub::Hub;
use crate::json::Read;
use crate::store::{Store, StoreError};
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// A refusal in Slack's form.
#[derive(Debug)]
pub struct Fail {
    pub error: &'static str,
    pub messages: Vec<String>,
}

pub type Outcome = Result<Value, Fail>;

/// A refusal by its name.
pub fn fail<T>(error: &'static str) -> Result<T, Fail> {
    Err(Fail {
        error,
        messages: Vec::new(),
    })
}

impl From<StoreError> for Fail {
    fn from(error: StoreError) -> Fail {
        tracing::error!(%error, "the chat's state failed");
        Fail {
            error: "internal_error",
            messages: Vec::new(),
        }
    }
}

impl Fail {
    fn body(self) -> Value {
        let mut body = json!({"ok": false, "error": self.error});
        if !self.messages.is_empty() {
            body["response_metadata"] = json!({"messages": self.messages});
        }
        body
    }
}

/// Serves one request of the bot.
pub async fn serve(hub: &Hub, request: Request) -> Response {
    match gate::read(request).await {
        Ok(call) => gate::pass(hub, "slack", &hub.slack_faults, fault_reply, call, answer).await,
        Err(status) => status.into_response(),
    }
}

fn answer(hub: &Hub, call: &Call) -> Reply {
    let path = call.segments();
    match path.as_slice() {
        ["slack", "api", method] => {
            let args = arguments(call);
            let outcome = admit(hub, call, &args).and_then(|()| {
                let store = hub.store();
                store.atomically(|store| route(hub, store, method, &args))
            });
            let mut reply = Reply::json(match outcome {
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
        ["slack", "response", token] => {
            let store = hub.store();
            let outcome =
                store.atomically(|store| chat::respond(hub, store, token, &arguments(call)));
            match outcome {
                Ok(_) => Reply::json(json!({"ok": true})),
                Err(refusal) => Reply {
                    status: 404,
                    ..Reply::json(refusal.body())
                },
            }
        }
        _ => Reply {
            status: 404,
            ..Reply::json(json!({"ok": false, "error": "not_found"}))
        },
    }
}

fn admit(hub: &Hub, call: &Call, args: &Value) -> Result<(), Fail> {
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

/// Arguments of query and body together; structured ones may come as JSON text in a form.
fn arguments(call: &Call) -> Value {
    let mut args = Value::Object(call.query.clone());
    for (name, value) in crate::json::fields(&call.body) {
        args[name] = value;
    }
    for name in ["blocks", "attachments", "metadata", "view", "files"] {
        if let Some(parsed) = args[name]
            .as_str()
            .and_then(|text| serde_json::from_str(text).ok())
        {
            args[name] = parsed;
        }
    }
    if let Some(args) = args.as_object_mut() {
        args.retain(|_, value| !value.is_null());
    }
    args
}

/// Every method that is served, in one place.
fn route(hub: &Hub, store: &Store, method: &str, args: &Value) -> Outcome {
    match method {
        "api.test" => Ok(json!({"args": args})),
        "auth.test" => people::auth(hub, store),
        "team.info" => people::team(hub, store),
        "bots.info" => people::bot(hub, args),
        "users.info" => people::user(store, args),
        "users.list" => people::users(store),
        "chat.postMessage" => chat::post(hub, store, args),
        "chat.update" => chat::update(hub, store, args),
        "chat.delete" => chat::delete(hub, store, args),
        "chat.startStream" => stream::start(hub, store, args),
        "chat.appendStream" => stream::append(hub, store, args),
        "chat.stopStream" => stream::stop(hub, store, args),
        "chat.postEphemeral" => chat::post_ephemeral(hub, store, args),
        "chat.getPermalink" => chat::permalink(hub, store, args),
        "conversations.replies" => conversations::replies(hub, store, args),
        "conversations.history" => conversations::history(hub, store, args),
        "conversations.info" => conversations::info(hub, store, args),
        "conversations.list" => conversations::list(store, args),
        "conversations.open" => conversations::open(hub, store, args),
        "conversations.members" => conversations::members(hub, store, args),
        "conversations.join" => conversations::info(hub, store, args),
        "reactions.add" => chat::react(hub, store, args, true),
        "reactions.remove" => chat::react(hub, store, args, false),
        "reactions.get" => chat::reactions(hub, store, args),
        "views.open" => views::open(hub, store, args, false),
        "views.push" => views::open(hub, store, args, true),
        "views.update" => views::update(hub, store, args),
        "views.publish" => views::publish(hub, store, args),
        "files.getUploadURLExternal" => files::ask(hub, store, args),
        "files.completeUploadExternal" => files::complete(hub, store, args),
        "files.info" => files::info(store, args),
        "assistant.threads.setStatus" => conversations::thread_status(hub, store, args),
        "agents.sessions.setStatus" => conversations::session_status(hub, store, args),
        "agents.sessions.rename" => conversations::session_rename(hub, store, args),
        _ => fail("unknown_method"),
    }
}

fn fault_reply(fault: &Fault) -> Reply {
    let error = |name: &str| json!({"ok": false, "error": name});
    let mut reply = match fault.status {
        429 => Reply {
            status: 429,
            body: error("ratelimited"),
            headers: vec![("retry-after", fault.retry_after.ceil().to_string())],
        },
        200 => Reply::json(error(if fault.error.is_empty() {
            "internal_error"
        } else {
            &fault.error
        })),
        status => Reply {
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

/// The channel of an argument: by id, by name, or a person's direct message.
pub fn channel(hub: &Hub, store: &Store, args: &Value, field: &str) -> Result<Value, Fail> {
    let wanted = args.str(field);
    if let Some(found) = store.get("s.channel", "", wanted)? {
        return Ok(found);
    }
    let name = wanted.trim_start_matches('#');
    let all = store.all("s.channel", "")?;
    let found = all
        .into_iter()
        .find(|one| !name.is_empty() && one.str("name") == name);
    match found {
        Some(found) => Ok(found),
        None if wanted.starts_with('U') && store.get("s.user", "", wanted)?.is_some() => {
            Ok(conversations::direct(hub, store, wanted)?)
        }
        None => fail("channel_not_found"),
    }
}

/// Tells the pages that a channel or thread has changed.
pub fn changed(hub: &Hub, kind: &str, channel: &str, thread: &str) {
    hub.notify(json!({"kind": kind, "platform": "slack", "channel": channel, "thread": thread}));
}
