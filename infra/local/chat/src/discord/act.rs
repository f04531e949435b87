//! A person's action on Discord, from the press of a button to the shown answer: build, sign, deliver, apply.

use super::outcome::apply_answer;
use super::payload::{self, PreparedInteraction};
use super::{delivery, typed_message};
use crate::action::ActionError;
use crate::hub::Hub;
use crate::json::JsonFields;
use serde_json::{Value, json};

/// Performs a person's action and returns its result: `{interaction_id, token, ingress_status, outcome: {kind, …}}`, or
/// the message for plain text.
pub async fn act(hub: &Hub, act: &Value) -> Result<Value, ActionError> {
    match act.str("type") {
        "message" => return typed_message::say(hub, act),
        "ping" => return Ok(delivery::probe(hub, None).await),
        _ => {}
    }
    let PreparedInteraction { record, payload } = {
        let store = hub.store();
        store.atomically(|store| {
            let built = payload::build(hub, store, act)?;
            store.put("d.interaction", "", built.record.str("token"), &built.record)?;
            Ok::<_, ActionError>(built)
        })?
    };
    let answer = delivery::post(hub, None, &payload, true).await;
    let store = hub.store();
    let outcome = apply_answer(hub, &store, record.str("token"), &answer)?;
    Ok(json!({"interaction_id": record["id"], "token": record["token"],
        "ingress_status": answer.as_ref().map_or(0, |answer| answer.status), "outcome": outcome}))
}
