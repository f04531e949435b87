//! Interaction callbacks: which types are allowed, and their effects.

use super::compose::{self, Draft};
use super::flags::{EPHEMERAL, LOADING};
use super::refusal::{DiscordRefusal, FormErrors};
use super::validation::Origin;
use super::{channel, modal, stored_message, users};
use crate::hub::Hub;
use crate::ids::{iso, now_ms};
use crate::json::{JsonFields, units};
use crate::store::{ChatStore, ChatStoreError};
use serde_json::{Value, json};

/// Applies a callback to the store, as Discord does.
pub fn apply(
    hub: &Hub,
    store: &ChatStore,
    mut record: Value,
    callback: &Value,
) -> Result<Value, DiscordRefusal> {
    let (kind, data) = (callback.int("type"), &callback["data"]);
    let from_message = record.has("source_message");
    let fits = match record.int("type") {
        2 => [4, 5, 9].contains(&kind),
        3 => [4, 5, 6, 7, 9].contains(&kind),
        4 => kind == 8,
        5 => [4, 5].contains(&kind) || (from_message && [6, 7].contains(&kind)),
        _ => false,
    };
    if !fits {
        return Err(DiscordRefusal::field(
            "type",
            "INTERACTION_CALLBACK_TYPE_INVALID",
            &format!("Callback type {kind} does not answer this interaction"),
        ));
    }
    let channel_id = record.str("channel_id").to_owned();
    let mut outcome = match kind {
        4 => {
            let kept = respond(hub, store, &record, data)?;
            json!({"kind": "message", "message_id": kept["message"]["id"], "ephemeral": kept.has("to")})
        }
        5 => {
            let kept = defer(hub, store, &record, data)?;
            json!({"kind": "deferred", "message_id": kept["message"]["id"], "ephemeral": kept.has("to")})
        }
        6 => json!({"kind": "acknowledged", "message_id": record["source_message"]}),
        7 => {
            let kept = stored_message::find(store, &channel_id, record.str("source_message"))?
                .ok_or_else(DiscordRefusal::message)?;
            let kept = compose::edit(hub, store, kept, data, &[], Origin::Interaction)?;
            json!({"kind": "updated", "message_id": kept["message"]["id"], "ephemeral": kept.has("to")})
        }
        8 => json!({"kind": "choices", "choices": choices(data)?}),
        _ => {
            modal::check(data)?;
            let shown = json!({"data": data, "message_id": record["source_message"], "channel_id": channel_id});
            store.put("d.modal", record.str("user_id"), data.str("custom_id"), &shown)?;
            json!({"kind": "modal", "modal": data})
        }
    };
    outcome["channel_id"] = channel_id.into();
    record["original"] = outcome["message_id"].clone();
    record["state"] = "answered".into();
    store.put("d.interaction", "", record.str("token"), &record)?;
    Ok(outcome)
}

fn respond(
    hub: &Hub,
    store: &ChatStore,
    record: &Value,
    data: &Value,
) -> Result<Value, DiscordRefusal> {
    let to = (data.int("flags") & EPHEMERAL != 0).then(|| record.str("user_id"));
    let draft = Draft {
        channel_id: record.str("channel_id"),
        author: users::bot(hub, store)?,
        body: data,
        files: &[],
        origin: Origin::Interaction,
        kind: answer_kind(record),
        to,
        token: Some(record.str("token")),
    };
    let mut kept = compose::compose(hub, store, &draft)?;
    kept["message"]["interaction_metadata"] = metadata(store, record)?;
    stored_message::save(hub, store, &kept)?;
    Ok(kept)
}

/// The "thinking" message until the bot edits it.
fn defer(
    hub: &Hub,
    store: &ChatStore,
    record: &Value,
    data: &Value,
) -> Result<Value, DiscordRefusal> {
    let flags = data.int("flags");
    if flags & !EPHEMERAL != 0 {
        return Err(DiscordRefusal::field(
            "data.flags",
            "MESSAGE_FLAGS_INVALID",
            "A deferral takes only the ephemeral flag",
        ));
    }
    let id = hub.ids.snowflake();
    let message = json!({"id": id, "channel_id": record["channel_id"], "author": users::bot(hub, store)?, "content": "",
        "timestamp": iso(now_ms()), "edited_timestamp": null, "tts": false, "mention_everyone": false, "mentions": [], "mention_roles": [],
        "attachments": [], "embeds": [], "components": [], "pinned": false, "type": answer_kind(record), "flags": flags | LOADING,
        "application_id": hub.discord.application_id, "interaction_metadata": metadata(store, record)?});
    let to = if flags & EPHEMERAL != 0 { record["user_id"].clone() } else { Value::Null };
    let kept = json!({"message": message, "to": to, "token": record["token"]});
    stored_message::save(hub, store, &kept)?;
    if !kept.has("to") {
        channel::touched(hub, store, record.str("channel_id"), &id)?;
    }
    Ok(kept)
}

fn answer_kind(record: &Value) -> u64 {
    match (record.int("type"), record.has("source_message")) {
        (2, _) => 20,
        (_, true) => 19,
        _ => 0,
    }
}

fn metadata(store: &ChatStore, record: &Value) -> Result<Value, ChatStoreError> {
    let user = store.get("d.user", "", record.str("user_id"))?.map(|entry| entry["user"].clone());
    Ok(
        json!({"id": record["id"], "type": record["type"], "user": user, "name": record["name"], "authorizing_integration_owners": {}}),
    )
}

fn choices(data: &Value) -> Result<Value, DiscordRefusal> {
    let list = data.list("choices");
    let mut wrong = FormErrors::default();
    if list.len() > 25 {
        wrong.at("data.choices", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.");
    }
    for (at, choice) in list.iter().enumerate() {
        if !(1..=100).contains(&units(choice.str("name"))) || units(choice.str("value")) > 100 {
            wrong.at(
                &format!("data.choices.{at}"),
                "BASE_TYPE_BAD_LENGTH",
                "Name and value are 1 to 100 in length.",
            );
        }
    }
    wrong.done()?;
    Ok(json!(list))
}
