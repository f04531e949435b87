//! Discord's routes: authentication, routing, faults.

use super::rates::{self, too_many};
use super::refusal::{DiscordRefusal, RouteResult};
use super::{application, channel, commands, message, thread, users, webhook};
use crate::bot_requests;
use crate::fault::ChatFault;
use crate::http::{self, ApiRequest, ApiResponse};
use crate::hub::Hub;
use crate::store::ChatStore;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Serves one request of the bot.
pub async fn serve(hub: &Hub, request: Request) -> Response {
    let call = match http::read(request).await {
        Ok(call) => call,
        Err(status) => return status.into_response(),
    };
    let unfit = application::unfit_endpoint(hub, &call).await;
    let serve = |hub: &Hub, call: &ApiRequest| unfit.unwrap_or_else(|| answer(hub, call));
    bot_requests::serve(hub, "discord", &hub.discord_faults, fault_reply, call, serve).await
}

fn answer(hub: &Hub, call: &ApiRequest) -> ApiResponse {
    let segments = call.segments();
    let path = match segments.as_slice() {
        ["api", "v10", rest @ ..] | ["api", rest @ ..] => rest,
        other => other,
    };
    if let Some(limited) = rates::limited(hub, call, path) {
        return limited;
    }
    let outcome = admit(hub, call, path).and_then(|()| {
        let store = hub.store();
        store.atomically(|store| route(hub, store, call, path))
    });
    let mut reply = outcome.unwrap_or_else(ApiResponse::from);
    reply.headers.extend(rates::headers(hub, call, path));
    reply
}

/// Token routes need no bot token; all others do. An unreadable body is refused before routing.
fn admit(hub: &Hub, call: &ApiRequest, path: &[&str]) -> Result<(), DiscordRefusal> {
    let by_token = matches!(path, ["webhooks", _, _, ..]);
    if !by_token && call.token("Bot") != Some(hub.discord.bot_token.as_str()) {
        return Err(DiscordRefusal::new(401, 0, "401: Unauthorized"));
    }
    match call.unreadable {
        Some("invalid_json" | "invalid_multipart") => {
            Err(DiscordRefusal::new(400, 50_109, "The request body contains invalid JSON."))
        }
        Some(_) => Err(DiscordRefusal::new(
            400,
            50_035,
            "Expected \"Content-Type\" header to be one of {'application/json', 'multipart/form-data'}.",
        )),
        None => Ok(()),
    }
}

/// Every served route, in one place.
fn route(hub: &Hub, store: &ChatStore, call: &ApiRequest, path: &[&str]) -> RouteResult {
    match (call.method.as_str(), path) {
        ("GET", ["users", "@me"]) => users::me(hub, store),
        ("GET", ["users", "@me", "guilds"]) => users::guilds(hub, store, call),
        ("GET", ["applications", "@me"]) => application::get(hub, store),
        ("PATCH", ["applications", "@me"]) => application::patch(hub, store, call),
        (method, ["applications", app, "commands"]) => {
            commands::serve(hub, store, call, method, app, "global")
        }
        (method, ["applications", app, "guilds", guild, "commands"]) => {
            commands::serve(hub, store, call, method, app, guild)
        }
        ("GET", ["guilds", guild]) => users::guild(store, guild),
        ("GET", ["guilds", guild, "members", user]) => users::member(store, guild, user),
        ("GET", ["guilds", guild, "threads", "active"]) => {
            thread::active_threads(hub, store, guild)
        }
        ("GET", ["channels", id]) => channel::get(hub, store, id),
        ("PATCH", ["channels", id]) => channel::patch(hub, store, call, id),
        ("POST", ["channels", id, "threads"]) => thread::start(hub, store, call, id, None),
        ("POST", ["channels", id, "messages", message, "threads"]) => {
            thread::start(hub, store, call, id, Some(message))
        }
        ("GET", ["channels", id, "messages"]) => message::list(hub, store, call, id),
        ("POST", ["channels", id, "messages"]) => message::create(hub, store, call, id),
        ("GET", ["channels", id, "messages", message]) => message::get(hub, store, id, message),
        ("PATCH", ["channels", id, "messages", message]) => {
            message::edit(hub, store, call, id, message)
        }
        ("DELETE", ["channels", id, "messages", message]) => {
            message::delete(hub, store, id, message)
        }
        ("POST", ["webhooks", app, token]) => webhook::follow_up(hub, store, call, app, token),
        (method, ["webhooks", app, token, "messages", id]) => {
            webhook::message(hub, store, call, method, app, token, id)
        }
        _ => Err(DiscordRefusal::new(404, 0, "404: Not Found")),
    }
}

fn fault_reply(fault: &ChatFault) -> ApiResponse {
    let mut reply = match fault.status {
        429 => too_many(fault.retry_after),
        status => ApiResponse {
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
