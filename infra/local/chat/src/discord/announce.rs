//! Interactions that are signed and delivered by others, bypassing this server: announced before delivery, adopted once
//! answered.

use super::outcome::apply_answer;
use super::payload;
use crate::hub::Hub;
use crate::ingress::IngressAnswer;
use crate::json::JsonFields;
use crate::store::ChatStoreError;
use serde_json::{Value, json};

/// Registers an interaction delivered by others, so that its token exists before it is used.
pub fn announce(hub: &Hub, interaction: &Value) -> Result<(), ChatStoreError> {
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
        store.put("d.user", "", person.str("id"), &json!({"user": person, "admin": false}))?;
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

/// Applies the answer to such an interaction. A refused one is forgotten: Discord would not have sent it.
pub fn adopt(
    hub: &Hub,
    interaction: &Value,
    status: u16,
    answer: &[u8],
) -> Result<Value, ChatStoreError> {
    announce(hub, interaction)?;
    let store = hub.store();
    let token = interaction.str("token");
    let foreign = |record: &Value| record.flag("adopted") && record.str("state") == "new";
    if !store.get("d.interaction", "", token)?.as_ref().is_some_and(foreign) {
        return Ok(json!({"kind": "ignored"}));
    }
    if status != 200 {
        store.delete("d.interaction", "", token)?;
        return Ok(json!({"kind": "refused", "status": status}));
    }
    apply_answer(
        hub,
        &store,
        token,
        &Ok(IngressAnswer { status, no_retry: false, body: answer.to_vec() }),
    )
}
