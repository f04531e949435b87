//! The routes of an interaction token: edits of the first answer, and follow-ups. They need no bot token.
//!
//! A token is valid for 15 minutes from the interaction.

use super::compose::{self, Draft};
use super::flags::{EPHEMERAL, LOADING};
use super::refusal::{DiscordRefusal, RouteResult};
use super::validation::Origin;
use super::{channel, stored_message, users};
use crate::http::{ApiRequest, ApiResponse};
use crate::hub::Hub;
use crate::ids::alive;
use crate::json::JsonFields;
use crate::limits::INTERACTION_TOKEN_MS;
use crate::store::ChatStore;
use serde_json::Value;

fn unknown_webhook() -> DiscordRefusal {
    DiscordRefusal::new(404, 10_015, "Unknown Webhook")
}

/// The interaction of a token, while the token is valid.
fn interaction_of(
    hub: &Hub,
    store: &ChatStore,
    app: &str,
    token: &str,
) -> Result<Value, DiscordRefusal> {
    let record = store.get("d.interaction", "", token)?.ok_or_else(unknown_webhook)?;
    if app != hub.discord.application_id {
        return Err(unknown_webhook());
    }
    if record.flag("expired") || !alive(record.int("created_ms"), INTERACTION_TOKEN_MS) {
        return Err(DiscordRefusal::new(401, 50_027, "Invalid Webhook Token"));
    }
    Ok(record)
}

/// A follow-up message. The first one after a deferral fills in the deferred message, as Discord still does.
pub fn follow_up(
    hub: &Hub,
    store: &ChatStore,
    call: &ApiRequest,
    app_id: &str,
    token: &str,
) -> RouteResult {
    let record = interaction_of(hub, store, app_id, token)?;
    if record.str("state") != "answered" {
        return Err(unknown_webhook());
    }
    let channel_id = record.str("channel_id");
    if let Some(kept) = stored_message::find(store, channel_id, record.str("original"))?
        && kept["message"].int("flags") & LOADING != 0
    {
        return edit(hub, store, call, kept);
    }
    let channel = store
        .get("d.channel", &hub.seeds.guild_id, channel_id)?
        .ok_or_else(DiscordRefusal::channel)?;
    channel::not_archived(&channel)?;
    let to = (call.body.int("flags") & EPHEMERAL != 0).then(|| record.str("user_id"));
    let draft = Draft {
        channel_id,
        author: users::bot(hub, store)?,
        body: &call.body,
        files: &call.files,
        origin: Origin::Interaction,
        kind: 0,
        to,
        token: Some(token),
    };
    let kept = compose::compose(hub, store, &draft)?;
    Ok(ApiResponse::json(kept["message"].clone()))
}

fn edit(hub: &Hub, store: &ChatStore, call: &ApiRequest, kept: Value) -> RouteResult {
    let (body, files) = (&call.body, &call.files);
    let kept = compose::edit(hub, store, kept, body, files, Origin::Interaction)?;
    Ok(ApiResponse::json(kept["message"].clone()))
}

/// `GET` and `PATCH` of `@original` or of a follow-up.
pub fn message(
    hub: &Hub,
    store: &ChatStore,
    call: &ApiRequest,
    method: &str,
    app_id: &str,
    token: &str,
    id: &str,
) -> RouteResult {
    let record = interaction_of(hub, store, app_id, token)?;
    let channel_id = record.str("channel_id");
    let original = record.str("original");
    let wanted = if id == "@original" { original } else { id };
    let kept = stored_message::find(store, channel_id, wanted)?
        .filter(|kept| !wanted.is_empty() && (wanted == original || kept.str("token") == token))
        .ok_or_else(DiscordRefusal::message)?;
    match method {
        "GET" => Ok(ApiResponse::json(kept["message"].clone())),
        "PATCH" => edit(hub, store, call, kept),
        _ => Err(DiscordRefusal::new(405, 0, "405: Method Not Allowed")),
    }
}
