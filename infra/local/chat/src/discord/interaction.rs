//! An interaction from the press of a button to what is seen of its answer: build, sign, deliver, apply.

use super::check::{self, EPHEMERAL, LOADING, Origin};
use super::message::{self, Draft};
use super::payload::{self, Built, Impossible};
use super::{Refusal, app, channel, modal};
use crate::gate::Upload;
use crate::hub::{Answer, Hub, NoAnswer};
use crate::ids::{iso, now_ms};
use crate::json::{Read, units};
use crate::sign;
use crate::store::{Store, StoreError};
use serde_json::{Value, json};

/// Under this name first answers are kept beside the requests of the bot, to be read and judged.
pub const ANSWERS: &str = "discord-answers";

/// Does what a person asks for and returns what came of it:
/// `{interaction_id, token, ingress_status, outcome: {kind, …}}`, or the message for plain text.
pub async fn act(hub: &Hub, act: &Value) -> Result<Value, Impossible> {
    match act.str("type") {
        "message" => return say(hub, act),
        "ping" => return Ok(probe(hub, None).await),
        _ => {}
    }
    let Built { record, payload } = {
        let store = hub.store();
        store.atomically(|store| {
            let built = payload::build(hub, store, act)?;
            store.put(
                "d.interaction",
                "",
                built.record.str("token"),
                &built.record,
            )?;
            Ok::<_, Impossible>(built)
        })?
    };
    let answer = post(hub, None, &payload, true).await;
    let store = hub.store();
    let outcome = settle(hub, &store, record.str("token"), &answer)?;
    Ok(
        json!({"interaction_id": record["id"], "token": record["token"],
        "ingress_status": answer.as_ref().map_or(0, |answer| answer.status), "outcome": outcome}),
    )
}

fn say(hub: &Hub, act: &Value) -> Result<Value, Impossible> {
    let store = hub.store();
    store.atomically(|store| {
        let person = payload::person(hub, store, act)?;
        let body = payload::typed(store, act)?;
        let channel_id = if act.has("channel_id") {
            act.str("channel_id")
        } else {
            &hub.seeds.channel_id
        };
        channel::say(hub, store, channel_id, &person, &body)
            .map_err(|refusal| Impossible::Refused(refusal.body.str("message").to_owned()))
    })
}

/// Discord's probe of an endpoint: a PING, and one with a bad signature. Without an address that of the ingress.
pub async fn probe(hub: &Hub, url: Option<&str>) -> Value {
    let body = json!({"id": hub.ids.snowflake(), "application_id": hub.discord.application_id, "type": 1, "token": "ping", "version": 1});
    let read = |answer: Result<Answer, NoAnswer>| match answer {
        Ok(answer) => {
            json!({"status": answer.status, "body": serde_json::from_slice::<Value>(&answer.body).unwrap_or_default()})
        }
        Err(error) => json!({"status": 0, "error": error.to_string()}),
    };
    json!({"good": read(post(hub, url, &body, true).await), "bad": read(post(hub, url, &body, false).await)})
}

/// Signs (rightly or, for the probe, over another body) and posts.
async fn post(
    hub: &Hub,
    url: Option<&str>,
    payload: &Value,
    good: bool,
) -> Result<Answer, NoAnswer> {
    let body = payload.to_string().into_bytes();
    let timestamp = (now_ms() / 1_000).to_string();
    let signed: &[u8] = if good { &body } else { b"{}" };
    let signature = sign::discord(&hub.signing_key, &timestamp, signed);
    let headers = [
        ("content-type", "application/json".to_owned()),
        (
            "user-agent",
            "Discord-Interactions/1.0 (+https://discord.com)".to_owned(),
        ),
        ("x-signature-ed25519", signature),
        ("x-signature-timestamp", timestamp),
    ];
    match url {
        Some(url) => hub.deliver_to(url, &headers, body).await,
        None => hub.deliver("/discord/interactions", &headers, body).await,
    }
}

/// Applies the ingress's answer, or shows the person that there was none.
fn settle(
    hub: &Hub,
    store: &Store,
    token: &str,
    answer: &Result<Answer, NoAnswer>,
) -> Result<Value, StoreError> {
    let Some(record) = store.get("d.interaction", "", token)? else {
        return Ok(json!({"kind": "gone"}));
    };
    let reason = match answer {
        Ok(answer) if answer.status == 200 => match serde_json::from_slice::<Value>(&answer.body) {
            Ok(callback) => {
                let given = json!({"interaction_type": record["type"], "on_message": record.has("source_message"), "body": callback});
                store.log_request(ANSWERS, &given)?;
                let applied =
                    store.atomically(|store| apply(hub, store, record.clone(), &callback, &[]));
                match applied {
                    Ok(outcome) => return Ok(outcome),
                    Err(refusal) => format!("Discord refuses the answer: {}", refusal.body),
                }
            }
            Err(_) => "the answer is not JSON".to_owned(),
        },
        // The other way: the callback route was used, and the request is answered without a body.
        Ok(answer) if answer.status == 202 && record.str("state") == "answered" => {
            return Ok(record["outcome"].clone());
        }
        Ok(answer) => format!("HTTP {} from the ingress", answer.status),
        Err(error) => error.to_string(),
    };
    if record.str("state") == "answered" {
        return Ok(record["outcome"].clone());
    }
    fail(hub, store, record, &reason)
}

/// The person sees Discord's words; the reason is for whoever looks at the outcome.
fn fail(hub: &Hub, store: &Store, mut record: Value, reason: &str) -> Result<Value, StoreError> {
    record["state"] = "failed".into();
    record["expired"] = true.into();
    store.put("d.interaction", "", record.str("token"), &record)?;
    tracing::warn!(
        interaction.id = record.str("id"),
        reason,
        "an interaction got no answer that Discord would take"
    );
    if record.int("type") != 4 {
        let text = if record.int("type") == 3 {
            "This interaction failed"
        } else {
            "The application did not respond"
        };
        let notice = json!({"id": hub.ids.snowflake(), "channel_id": record["channel_id"], "author": app::bot(hub, store)?, "content": text,
            "timestamp": iso(now_ms()), "attachments": [], "embeds": [], "components": [], "type": 0, "flags": EPHEMERAL});
        message::keep(
            hub,
            store,
            &json!({"message": notice, "to": record["user_id"], "token": null, "failed": reason}),
        )?;
    }
    Ok(json!({"kind": "failed", "reason": reason}))
}

/// Applies a callback to the store, as Discord does. The outcome is also kept in the interaction's record.
pub fn apply(
    hub: &Hub,
    store: &Store,
    mut record: Value,
    callback: &Value,
    files: &[Upload],
) -> Result<Value, Refusal> {
    if record.str("state") == "answered" {
        return Err(Refusal::new(
            400,
            40_060,
            "Interaction has already been acknowledged.",
        ));
    }
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
        let mut wrong = check::Faulty::default();
        wrong.at(
            "type",
            "INTERACTION_CALLBACK_TYPE_INVALID",
            &format!("Callback type {kind} does not answer this interaction"),
        );
        wrong.done()?;
    }
    let channel_id = record.str("channel_id").to_owned();
    let mut outcome = match kind {
        4 => {
            let kept = respond(hub, store, &record, data, files)?;
            json!({"kind": "message", "message_id": kept["message"]["id"], "ephemeral": kept.has("to")})
        }
        5 => {
            let kept = defer(hub, store, &record, data)?;
            json!({"kind": "deferred", "message_id": kept["message"]["id"], "ephemeral": kept.has("to")})
        }
        6 => json!({"kind": "acknowledged", "message_id": record["source_message"]}),
        7 => {
            let kept = message::find(store, &channel_id, record.str("source_message"))?
                .ok_or_else(Refusal::message)?;
            let kept = message::amend(hub, store, kept, data, files, Origin::Interaction)?;
            json!({"kind": "updated", "message_id": kept["message"]["id"], "ephemeral": kept.has("to")})
        }
        8 => json!({"kind": "choices", "choices": choices(data)?}),
        _ => {
            modal::check(data)?;
            let shown = json!({"data": data, "message_id": record["source_message"], "channel_id": channel_id});
            store.put(
                "d.modal",
                record.str("user_id"),
                data.str("custom_id"),
                &shown,
            )?;
            json!({"kind": "modal", "modal": data})
        }
    };
    outcome["channel_id"] = channel_id.into();
    outcome["interaction_type"] = record["type"].clone();
    record["original"] = outcome["message_id"].clone();
    record["state"] = "answered".into();
    record["outcome"] = outcome.clone();
    store.put("d.interaction", "", record.str("token"), &record)?;
    Ok(outcome)
}

fn respond(
    hub: &Hub,
    store: &Store,
    record: &Value,
    data: &Value,
    files: &[Upload],
) -> Result<Value, Refusal> {
    let to = (data.int("flags") & EPHEMERAL != 0).then(|| record.str("user_id"));
    let draft = Draft {
        channel_id: record.str("channel_id"),
        author: app::bot(hub, store)?,
        body: data,
        files,
        origin: Origin::Interaction,
        kind: answer_kind(record),
        to,
        token: Some(record.str("token")),
    };
    let mut kept = message::compose(hub, store, &draft)?;
    kept["message"]["interaction_metadata"] = metadata(store, record)?;
    message::keep(hub, store, &kept)?;
    Ok(kept)
}

/// The "thinking" message.
fn defer(hub: &Hub, store: &Store, record: &Value, data: &Value) -> Result<Value, Refusal> {
    let flags = data.int("flags");
    if flags & !EPHEMERAL != 0 {
        let mut wrong = check::Faulty::default();
        wrong.at(
            "data.flags",
            "MESSAGE_FLAGS_INVALID",
            "A deferral takes only the ephemeral flag",
        );
        wrong.done()?;
    }
    let id = hub.ids.snowflake();
    let message = json!({"id": id, "channel_id": record["channel_id"], "author": app::bot(hub, store)?, "content": "",
        "timestamp": iso(now_ms()), "edited_timestamp": null, "tts": false, "mention_everyone": false, "mentions": [], "mention_roles": [],
        "attachments": [], "embeds": [], "components": [], "pinned": false, "type": answer_kind(record), "flags": flags | LOADING,
        "application_id": hub.discord.application_id, "interaction_metadata": metadata(store, record)?});
    let to = if flags & EPHEMERAL != 0 {
        record["user_id"].clone()
    } else {
        Value::Null
    };
    let kept = json!({"message": message, "to": to, "token": record["token"]});
    message::keep(hub, store, &kept)?;
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

fn metadata(store: &Store, record: &Value) -> Result<Value, StoreError> {
    let user = store
        .get("d.user", "", record.str("user_id"))?
        .map(|entry| entry["user"].clone());
    Ok(
        json!({"id": record["id"], "type": record["type"], "user": user, "name": record["name"], "authorizing_integration_owners": {}}),
    )
}

fn choices(data: &Value) -> Result<Value, Refusal> {
    let list = data.list("choices");
    let mut wrong = check::Faulty::default();
    if list.len() > 25 {
        wrong.at(
            "data.choices",
            "BASE_TYPE_MAX_LENGTH",
            "Must be 25 or fewer in length.",
        );
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

/// Makes an interaction that somebody else delivers known, so that its token is never met before it exists.
pub fn announce(hub: &Hub, interaction: &Value) -> Result<(), StoreError> {
    let store = hub.store();
    let token = interaction.str("token");
    if token.is_empty()
        || interaction.int("type") < 2
        || store.get("d.interaction", "", token)?.is_some()
    {
        return Ok(());
    }
    let person = if interaction.has("member") {
        &interaction["member"]["user"]
    } else {
        &interaction["user"]
    };
    if person.has("id") && store.get("d.user", "", person.str("id"))?.is_none() {
        store.put(
            "d.user",
            "",
            person.str("id"),
            &json!({"user": person, "admin": false}),
        )?;
    }
    let source = interaction["message"].get("id").cloned();
    let mut record = payload::record(
        interaction.str("id"),
        token,
        interaction.int("type"),
        interaction.str("channel_id"),
        person.str("id"),
        source,
        interaction["data"].str("name"),
    );
    record["adopted"] = true.into();
    store.put("d.interaction", "", token, &record)
}

/// Applies the answer that such an interaction got. One that was refused is forgotten: Discord would not have sent it.
pub fn adopt(
    hub: &Hub,
    interaction: &Value,
    status: u16,
    answer: &[u8],
) -> Result<Value, StoreError> {
    announce(hub, interaction)?;
    let store = hub.store();
    let token = interaction.str("token");
    let foreign = |record: &Value| record.flag("adopted") && record.str("state") == "new";
    if !store
        .get("d.interaction", "", token)?
        .as_ref()
        .is_some_and(foreign)
    {
        return Ok(json!({"kind": "ignored"}));
    }
    if status != 200 {
        store.delete("d.interaction", "", token)?;
        return Ok(json!({"kind": "refused", "status": status}));
    }
    settle(
        hub,
        &store,
        token,
        &Ok(Answer {
            status,
            no_retry: false,
            body: answer.to_vec(),
        }),
    )
}
