//! The Discord-compatible API: who may call, the route table, error bodies and rate headers.

pub mod app;
pub mod channel;
pub mod check;
mod components;
pub mod interaction;
pub mod message;
mod modal;
pub mod payload;
pub mod webhook;

use crate::fault::Fault;
use crate::gate::{self, Call, Reply};
use crate::hub::{Hub, held};
use crate::ids::now_ms;
use crate::limits::{RATE_WINDOW_MS, RATE_WINDOW_REQUESTS, RATE_WINDOWS_MAX};
use crate::store::{Store, StoreError};
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

/// What a member may without being an administrator (Discord's usual set).
pub const MEMBER_PERMISSIONS: &str = "1071698660929";
/// What an administrator may.
pub const ADMIN_PERMISSIONS: &str = "9007199254740991";
/// What the bot is invited with: view, send, threads, history, embeds, files, reactions.
pub const BOT_PERMISSIONS: &str = "309237763136";

/// A refusal in Discord's form.
#[derive(Debug)]
pub struct Refusal {
    pub status: u16,
    pub body: Value,
}

pub type Outcome = Result<Reply, Refusal>;

impl Refusal {
    pub fn new(status: u16, code: u64, message: &str) -> Refusal {
        Refusal {
            status,
            body: json!({"message": message, "code": code}),
        }
    }

    pub fn channel() -> Refusal {
        Refusal::new(404, 10_003, "Unknown Channel")
    }

    pub fn message() -> Refusal {
        Refusal::new(404, 10_008, "Unknown Message")
    }

    pub fn permission() -> Refusal {
        Refusal::new(403, 50_013, "Missing Permissions")
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        tracing::error!(%error, "the chat's state failed");
        Refusal::new(500, 0, "500: Internal Server Error")
    }
}

/// Serves one request of the bot.
pub async fn serve(hub: &Hub, request: Request) -> Response {
    let call = match gate::read(request).await {
        Ok(call) => call,
        Err(status) => return status.into_response(),
    };
    let unfit = app::unfit_endpoint(hub, &call).await;
    let serve = |hub: &Hub, call: &Call| unfit.unwrap_or_else(|| answer(hub, call));
    gate::pass(
        hub,
        "discord",
        &hub.discord_faults,
        fault_reply,
        call,
        serve,
    )
    .await
}

fn answer(hub: &Hub, call: &Call) -> Reply {
    let segments = call.segments();
    let path = match segments.as_slice() {
        ["api", "v10", rest @ ..] | ["api", rest @ ..] => rest,
        other => other,
    };
    if let Some(limited) = rate_limited(hub, call, path) {
        return limited;
    }
    let outcome = admit(hub, call, path).and_then(|()| {
        let store = hub.store();
        store.atomically(|store| route(hub, store, call, path))
    });
    let mut reply = outcome.unwrap_or_else(|refusal| Reply {
        status: refusal.status,
        body: refusal.body,
        headers: Vec::new(),
    });
    reply.headers.extend(rate_headers(hub, call, path));
    reply
}

/// Token routes need no bot token; everything else does. A body that cannot be read is refused before its route is looked at.
fn admit(hub: &Hub, call: &Call, path: &[&str]) -> Result<(), Refusal> {
    let by_token = matches!(
        path,
        ["webhooks", _, _, ..] | ["interactions", _, _, "callback"]
    );
    if !by_token && call.token("Bot") != Some(hub.discord.bot_token.as_str()) {
        return Err(Refusal::new(401, 0, "401: Unauthorized"));
    }
    match call.unreadable {
        Some("invalid_json" | "invalid_multipart") => Err(Refusal::new(
            400,
            50_109,
            "The request body contains invalid JSON.",
        )),
        Some(_) => Err(Refusal::new(
            400,
            50_035,
            "Expected \"Content-Type\" header to be one of {'application/json', 'multipart/form-data'}.",
        )),
        None => Ok(()),
    }
}

/// Every route that is served, in one place.
fn route(hub: &Hub, store: &Store, call: &Call, path: &[&str]) -> Outcome {
    match (call.method.as_str(), path) {
        ("GET", ["users", "@me"]) => app::me(hub, store),
        ("GET", ["users", id]) => app::user(store, id),
        ("GET", ["applications", "@me"] | ["oauth2", "applications", "@me"]) => {
            app::get(hub, store)
        }
        ("PATCH", ["applications", "@me"]) => app::patch(hub, store, call),
        (method, ["applications", app, "commands"]) => {
            app::commands(hub, store, call, method, app, "global")
        }
        (method, ["applications", app, "guilds", guild, "commands"]) => {
            app::commands(hub, store, call, method, app, guild)
        }
        ("GET", ["guilds", guild]) => app::guild(store, guild),
        ("GET", ["guilds", guild, "members", user]) => app::member(store, guild, user),
        ("GET", ["guilds", guild, "channels"]) => channel::of_guild(hub, store, guild),
        ("GET", ["guilds", guild, "threads", "active"]) => {
            channel::active_threads(hub, store, guild)
        }
        ("GET", ["channels", id]) => channel::get(hub, store, id),
        ("PATCH", ["channels", id]) => channel::patch(hub, store, call, id),
        ("DELETE", ["channels", id]) => channel::delete(hub, store, id),
        ("GET", ["channels", id, "threads", "archived", "public"]) => {
            channel::archived_threads(hub, store, call, id)
        }
        ("POST", ["channels", id, "threads"]) => channel::start_thread(hub, store, call, id, None),
        ("POST", ["channels", id, "messages", message, "threads"]) => {
            channel::start_thread(hub, store, call, id, Some(message))
        }
        ("PUT" | "DELETE", ["channels", id, "thread-members", _]) => {
            channel::visible(hub, store, id).map(|_| Reply::empty())
        }
        ("POST", ["channels", id, "typing"]) => channel::typing(hub, store, id),
        ("GET", ["channels", id, "messages"]) => message::list(hub, store, call, id),
        ("POST", ["channels", id, "messages"]) => message::create(hub, store, call, id),
        ("GET", ["channels", id, "messages", message]) => message::get(hub, store, id, message),
        ("PATCH", ["channels", id, "messages", message]) => {
            message::edit(hub, store, call, id, message)
        }
        ("DELETE", ["channels", id, "messages", message]) => {
            message::delete(hub, store, id, message)
        }
        (
            method @ ("PUT" | "DELETE"),
            [
                "channels",
                id,
                "messages",
                message,
                "reactions",
                emoji,
                "@me",
            ],
        ) => message::react(hub, store, id, message, emoji, method == "PUT"),
        ("GET", ["channels", id, "messages", message, "reactions", emoji]) => {
            message::reactions(hub, store, id, message, emoji)
        }
        ("POST", ["interactions", id, token, "callback"]) => {
            webhook::callback(hub, store, call, id, token)
        }
        ("POST", ["webhooks", app, token]) => webhook::follow_up(hub, store, call, app, token),
        (method, ["webhooks", app, token, "messages", id]) => {
            webhook::message(hub, store, call, method, app, token, id)
        }
        _ => Err(Refusal::new(404, 0, "404: Not Found")),
    }
}

/// The bucket: method and route with its major parameter (channel, guild, webhook).
fn bucket(call: &Call, path: &[&str]) -> String {
    let shape = path.iter().enumerate().map(|(at, part)| {
        let minor = at > 1 && part.bytes().all(|b| b.is_ascii_digit());
        if minor { "*" } else { part }
    });
    format!("{} {}", call.method, shape.collect::<Vec<_>>().join("/"))
}

/// Counts the request in its window; the answer is a 429 only where limits are enforced (a control call switches that).
fn rate_limited(hub: &Hub, call: &Call, path: &[&str]) -> Option<Reply> {
    let mut rates = held(&hub.rates);
    if rates.len() > RATE_WINDOWS_MAX {
        rates.clear();
    }
    let window = rates.entry(bucket(call, path)).or_insert((now_ms(), 0));
    if now_ms() - window.0 >= RATE_WINDOW_MS {
        *window = (now_ms(), 0);
    }
    window.1 += 1;
    let over = window.1 > RATE_WINDOW_REQUESTS && hub.enforce_rates.load(Ordering::Relaxed);
    let wait_ms = RATE_WINDOW_MS.saturating_sub(now_ms() - window.0);
    over.then(|| too_many(f64::from(u32::try_from(wait_ms).unwrap_or(u32::MAX)) / 1_000.0))
}

fn too_many(retry_after: f64) -> Reply {
    Reply {
        status: 429,
        body: json!({"message": "You are being rate limited.", "retry_after": retry_after, "global": false}),
        headers: vec![
            ("retry-after", retry_after.ceil().to_string()),
            ("x-ratelimit-scope", "user".to_owned()),
        ],
    }
}

fn rate_headers(hub: &Hub, call: &Call, path: &[&str]) -> Vec<(&'static str, String)> {
    let key = bucket(call, path);
    let (since, used) = held(&hub.rates).get(&key).copied().unwrap_or((now_ms(), 1));
    // An unenforced bucket never reads empty: a careful client would wait for nothing.
    let floor = u64::from(!hub.enforce_rates.load(Ordering::Relaxed));
    let remaining = RATE_WINDOW_REQUESTS.saturating_sub(used).max(floor);
    let reset_ms = since + RATE_WINDOW_MS;
    let left_ms = reset_ms.saturating_sub(now_ms());
    let seconds = |ms: u64| format!("{}.{:03}", ms / 1_000, ms % 1_000);
    let name = key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    vec![
        ("x-ratelimit-limit", RATE_WINDOW_REQUESTS.to_string()),
        ("x-ratelimit-remaining", remaining.to_string()),
        ("x-ratelimit-reset", seconds(reset_ms)),
        ("x-ratelimit-reset-after", seconds(left_ms)),
        ("x-ratelimit-bucket", format!("{name:016x}")),
    ]
}

fn fault_reply(fault: &Fault) -> Reply {
    let mut reply = match fault.status {
        429 => too_many(fault.retry_after),
        status => Reply {
            status,
            body: json!({"message": format!("{status}: injected fault"), "code": 0}),
            headers: Vec::new(),
        },
    };
    if fault.code > 0 {
        reply.body["code"] = fault.code.into();
    }
    if let Some(body) = &fault.body {
        reply.body = body.clone();
    }
    reply
}
