//! The bot's message routes: create, read, edit, delete, list.

use super::compose::{self, Draft};
use super::refusal::{DiscordRefusal, FormErrors, RouteResult};
use super::validation::Origin;
use super::{channel, permissions, stored_message, users};
use crate::http::{ApiRequest, ApiResponse};
use crate::hub::Hub;
use crate::ids::{alive, now_ms};
use crate::json::{JsonFields, loose_text};
use crate::limits::{LIST_MAX, NONCE_MS};
use crate::store::{ChatStore, LAST};
use serde_json::{Value, json};

pub fn create(hub: &Hub, store: &ChatStore, call: &ApiRequest, channel_id: &str) -> RouteResult {
    let channel = channel::writable(hub, store, channel_id)?;
    if !call.files.is_empty() {
        permissions::require(store, permissions::ATTACH_FILES)?;
    }
    let nonce = loose_text(&call.body, "nonce");
    if call.body.flag("enforce_nonce")
        && let Some(earlier) = store.get("d.nonce", "", &nonce)?
        && alive(earlier.int("at_ms"), NONCE_MS)
        && let Some(kept) =
            store.get("d.message", earlier.str("channel"), earlier.str("message"))?
    {
        return Ok(ApiResponse::json(kept["message"].clone()));
    }
    let answered = answered(store, &call.body, channel.str("id"))?;
    let author = users::bot(hub, store)?;
    let draft = Draft {
        channel_id: channel.str("id"),
        author,
        body: &call.body,
        files: &call.files,
        origin: Origin::Bot,
        kind: 0,
        to: None,
        token: None,
    };
    let mut kept = compose::compose(hub, store, &draft)?;
    if let Some(answered) = answered {
        compose::reply(hub, &mut kept, answered);
        stored_message::save(hub, store, &kept)?;
    }
    if call.body.flag("enforce_nonce") {
        let made =
            json!({"channel": channel_id, "message": kept["message"]["id"], "at_ms": now_ms()});
        store.put("d.nonce", "", &nonce, &made)?;
    }
    Ok(ApiResponse::json(kept["message"].clone()))
}

/// The message replied to. A missing one is refused, unless the request allows that.
fn answered(
    store: &ChatStore,
    body: &Value,
    channel: &str,
) -> Result<Option<Value>, DiscordRefusal> {
    let reference = &body["message_reference"];
    if !reference.is_object() {
        return Ok(None);
    }
    if !permissions::has(store, permissions::READ_HISTORY)? {
        return Err(DiscordRefusal::new(
            403,
            160_002,
            "Cannot reply without permission to read message history",
        ));
    }
    let kept = store.get("d.message", channel, &loose_text(reference, "message_id"))?;
    if kept.is_none() && reference["fail_if_not_exists"] != false {
        let mut wrong = FormErrors::default();
        wrong.at("message_reference", "MESSAGE_REFERENCE_UNKNOWN_MESSAGE", "Unknown message");
        return Err(wrong.into());
    }
    Ok(kept.map(|kept| kept["message"].clone()))
}

/// A non-ephemeral message.
fn stored(store: &ChatStore, channel: &str, id: &str) -> Result<Value, DiscordRefusal> {
    let kept = store.get("d.message", channel, id)?;
    kept.ok_or_else(DiscordRefusal::message)
}

pub fn get(hub: &Hub, store: &ChatStore, channel: &str, id: &str) -> RouteResult {
    channel::visible(hub, store, channel)?;
    let kept = stored(store, channel, id)?;
    Ok(ApiResponse::json(kept["message"].clone()))
}

pub fn edit(
    hub: &Hub,
    store: &ChatStore,
    call: &ApiRequest,
    channel_id: &str,
    id: &str,
) -> RouteResult {
    let channel = channel::visible(hub, store, channel_id)?;
    channel::not_archived(&channel)?;
    let kept = stored(store, channel_id, id)?;
    if kept["message"]["author"].str("id") != hub.discord.application_id {
        return Err(DiscordRefusal::new(
            403,
            50_005,
            "Cannot edit a message authored by another user",
        ));
    }
    let kept = compose::edit(hub, store, kept, &call.body, &call.files, Origin::Bot)?;
    Ok(ApiResponse::json(kept["message"].clone()))
}

pub fn delete(hub: &Hub, store: &ChatStore, channel_id: &str, id: &str) -> RouteResult {
    let channel = channel::visible(hub, store, channel_id)?;
    channel::not_archived(&channel)?;
    let kept = stored(store, channel_id, id)?;
    if kept["message"]["author"].str("id") != hub.discord.application_id {
        permissions::require(store, permissions::MANAGE_MESSAGES)?;
    }
    stored_message::remove(hub, store, channel_id, id)?;
    Ok(ApiResponse::empty())
}

pub fn list(hub: &Hub, store: &ChatStore, call: &ApiRequest, channel_id: &str) -> RouteResult {
    channel::visible(hub, store, channel_id)?;
    let limit = match call.asked("limit") {
        "" => 50,
        text => {
            text.parse().ok().filter(|limit| (1..=LIST_MAX).contains(limit)).ok_or_else(|| {
                let message = "int value should be between 1 and 100.";
                DiscordRefusal::field("limit", "NUMBER_TYPE_RANGE", message)
            })?
        }
    };
    let (after, before) = (call.asked("after"), call.asked("before"));
    let mut kept = if after.is_empty() {
        let before = if before.is_empty() { LAST } else { before };
        store.before("d.message", channel_id, before, limit)?
    } else {
        let mut newer = store.after("d.message", channel_id, after, limit)?;
        newer.reverse();
        newer
    };
    let messages = kept.iter_mut().map(|one| one["message"].take()).collect();
    Ok(ApiResponse::json(Value::Array(messages)))
}
