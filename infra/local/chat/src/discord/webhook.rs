//! The routes of an interaction token: first answer, its edits, follow-ups. They need no bot token.
//!
//! A token works from the moment of the interaction for 3 s (first answer) and then 15 minutes.

use super::channel;
use super::check::{EPHEMERAL, LOADING, Origin};
use super::message::{self, Draft};
use super::{Outcome, Refusal, app, interaction};
use crate::gate::{Call, Reply};
use crate::hub::Hub;
use crate::ids::alive;
use crate::json::Read;
use crate::limits::{INGRESS_ANSWER_MS_MAX, INTERACTION_TOKEN_MS};
use crate::store::Store;
use serde_json::{Value, json};

fn unknown_webhook() -> Refusal {
    Refusal::new(404, 10_015, "Unknown Webhook")
}

/// The interaction that a token belongs to, while the token lives.
fn interaction_of(hub: &Hub, store: &Store, app: &str, token: &str) -> Result<Value, Refusal> {
    let record = store
        .get("d.interaction", "", token)?
        .ok_or_else(unknown_webhook)?;
    if app != hub.discord.application_id {
        return Err(unknown_webhook());
    }
    if record.flag("expired") || !alive(record.int("created_ms"), INTERACTION_TOKEN_MS) {
        return Err(Refusal::new(401, 50_027, "Invalid Webhook Token"));
    }
    Ok(record)
}

pub fn callback(hub: &Hub, store: &Store, call: &Call, id: &str, token: &str) -> Outcome {
    let unknown = || Refusal::new(404, 10_062, "Unknown interaction");
    let record = store
        .get("d.interaction", "", token)?
        .filter(|one| one.str("id") == id)
        .ok_or_else(unknown)?;
    if record.str("state") == "answered" {
        return Err(Refusal::new(
            400,
            40_060,
            "Interaction has already been acknowledged.",
        ));
    }
    if record.flag("expired") || !alive(record.int("created_ms"), INGRESS_ANSWER_MS_MAX) {
        return Err(unknown());
    }
    let outcome = interaction::apply(hub, store, record, &call.body, &call.files)?;
    if call.asked("with_response") != "true" {
        return Ok(Reply::empty());
    }
    let shown = outcome.str("message_id");
    let message =
        message::find(store, outcome.str("channel_id"), shown)?.map(|kept| kept["message"].clone());
    Ok(Reply::json(
        json!({"interaction": {"id": id, "type": outcome["interaction_type"], "response_message_id": outcome["message_id"],
        "response_message_loading": call.body.int("type") == 5, "response_message_ephemeral": outcome["ephemeral"]},
        "resource": {"type": call.body["type"], "message": message}}),
    ))
}

/// A further message. As the first thing after a deferral it fills in the deferred one, as Discord still does.
pub fn follow_up(hub: &Hub, store: &Store, call: &Call, app_id: &str, token: &str) -> Outcome {
    let record = interaction_of(hub, store, app_id, token)?;
    if record.str("state") != "answered" {
        return Err(unknown_webhook());
    }
    let channel_id = record.str("channel_id");
    if let Some(kept) = message::find(store, channel_id, record.str("original"))?
        && kept["message"].int("flags") & LOADING != 0
    {
        let kept = message::amend(
            hub,
            store,
            kept,
            &call.body,
            &call.files,
            Origin::Interaction,
        )?;
        return Ok(Reply::json(kept["message"].clone()));
    }
    let channel = store
        .get("d.channel", &hub.seeds.guild_id, channel_id)?
        .ok_or_else(Refusal::channel)?;
    channel::not_archived(&channel)?;
    let to = (call.body.int("flags") & EPHEMERAL != 0).then(|| record.str("user_id"));
    let draft = Draft {
        channel_id,
        author: app::bot(hub, store)?,
        body: &call.body,
        files: &call.files,
        origin: Origin::Interaction,
        kind: 0,
        to,
        token: Some(token),
    };
    let kept = message::compose(hub, store, &draft)?;
    Ok(Reply::json(kept["message"].clone()))
}

/// `GET`, `PATCH`, `DELETE` of `@original` or of a follow-up.
pub fn message(
    hub: &Hub,
    store: &Store,
    call: &Call,
    method: &str,
    app_id: &str,
    token: &str,
    id: &str,
) -> Outcome {
    let record = interaction_of(hub, store, app_id, token)?;
    let channel_id = record.str("channel_id");
    let original = record.str("original");
    let wanted = if id == "@original" { original } else { id };
    let kept = message::find(store, channel_id, wanted)?
        .filter(|kept| !wanted.is_empty() && (wanted == original || kept.str("token") == token))
        .ok_or_else(Refusal::message)?;
    match method {
        "GET" => Ok(Reply::json(kept["message"].clone())),
        "PATCH" => {
            let kept = message::amend(
                hub,
                store,
                kept,
                &call.body,
                &call.files,
                Origin::Interaction,
            )?;
            Ok(Reply::json(kept["message"].clone()))
        }
        "DELETE" => {
            message::forget(hub, store, channel_id, wanted)?;
            Ok(Reply::empty())
        }
        _ => Err(Refusal::new(405, 0, "405: Method Not Allowed")),
    }
}
