//! The outcome of an interaction: applies the ingress's answer, or shows the person that there was none.

use super::flags::EPHEMERAL;
use super::{callback, stored_message, users};
use crate::hub::Hub;
use crate::ids::{iso, now_ms};
use crate::ingress::{IngressAnswer, NoAnswer};
use crate::json::JsonFields;
use crate::store::{ChatStore, ChatStoreError};
use serde_json::{Value, json};

/// Log name of first answers, kept beside the bot's requests for inspection.
pub const ANSWERS: &str = "discord-answers";

/// Applies the ingress's answer, or shows the person that there was none.
pub fn apply_answer(
    hub: &Hub,
    store: &ChatStore,
    token: &str,
    answer: &Result<IngressAnswer, NoAnswer>,
) -> Result<Value, ChatStoreError> {
    let Some(record) = store.get("d.interaction", "", token)? else {
        return Ok(json!({"kind": "gone"}));
    };
    let reason = match answer {
        Ok(answer) if answer.status == 200 => match serde_json::from_slice::<Value>(&answer.body) {
            Ok(answered) => {
                let given = json!({"interaction_type": record["type"], "on_message": record.has("source_message"), "body": answered});
                store.log_request(ANSWERS, &given)?;
                let applied = store
                    .atomically(|store| callback::apply(hub, store, record.clone(), &answered));
                match applied {
                    Ok(outcome) => return Ok(outcome),
                    Err(refusal) => format!("Discord refuses the answer: {}", refusal.body),
                }
            }
            Err(_) => "the answer is not JSON".to_owned(),
        },
        Ok(answer) => format!("HTTP {} from the ingress", answer.status),
        Err(error) => error.to_string(),
    };
    show_failure(hub, store, record, &reason)
}

/// The person sees Discord's text; the reason is kept in the outcome.
fn show_failure(
    hub: &Hub,
    store: &ChatStore,
    mut record: Value,
    reason: &str,
) -> Result<Value, ChatStoreError> {
    record["state"] = "failed".into();
    record["expired"] = true.into();
    store.put("d.interaction", "", record.str("token"), &record)?;
    tracing::warn!(
        interaction.id = record.str("id"),
        reason,
        "an interaction got no answer that Discord would accept"
    );
    if record.int("type") != 4 {
        let text = if record.int("type") == 3 {
            "This interaction failed"
        } else {
            "The application did not respond"
        };
        let notice = json!({"id": hub.ids.snowflake(), "channel_id": record["channel_id"], "author": users::bot(hub, store)?, "content": text,
            "timestamp": iso(now_ms()), "attachments": [], "embeds": [], "components": [], "type": 0, "flags": EPHEMERAL});
        stored_message::save(
            hub,
            store,
            &json!({"message": notice, "to": record["user_id"], "token": null, "failed": reason}),
        )?;
    }
    Ok(json!({"kind": "failed", "reason": reason}))
}
