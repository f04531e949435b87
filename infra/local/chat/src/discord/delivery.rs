//! Delivers interactions to the ingress, signed and posted as Discord does.

use crate::hub::Hub;
use crate::ids::now_ms;
use crate::ingress::{IngressAnswer, NoAnswer};
use crate::sign;
use serde_json::{Value, json};

/// Discord's probe of an endpoint: a PING, and one with a bad signature. Defaults to the ingress's address.
pub async fn probe(hub: &Hub, url: Option<&str>) -> Value {
    let body = json!({"id": hub.ids.snowflake(), "application_id": hub.discord.application_id, "type": 1, "token": "ping", "version": 1});
    let read = |answer: Result<IngressAnswer, NoAnswer>| match answer {
        Ok(answer) => {
            json!({"status": answer.status, "body": serde_json::from_slice::<Value>(&answer.body).unwrap_or_default()})
        }
        Err(error) => json!({"status": 0, "error": error.to_string()}),
    };
    json!({"good": read(post(hub, url, &body, true).await), "bad": read(post(hub, url, &body, false).await)})
}

/// Signs (or, for the probe, signs another body) and posts.
pub async fn post(
    hub: &Hub,
    url: Option<&str>,
    payload: &Value,
    good: bool,
) -> Result<IngressAnswer, NoAnswer> {
    let body = payload.to_string().into_bytes();
    let timestamp = (now_ms() / 1_000).to_string();
    let signed: &[u8] = if good { &body } else { b"{}" };
    let signature = sign::discord(&hub.signing_key, &timestamp, signed);
    let headers = [
        ("content-type", "application/json".to_owned()),
        ("user-agent", "Discord-Interactions/1.0 (+https://discord.com)".to_owned()),
        ("x-signature-ed25519", signature),
        ("x-signature-timestamp", timestamp),
    ];
    match url {
        Some(url) => hub.ingress.deliver_to(url, &headers, body).await,
        None => hub.ingress.deliver("/discord/interactions", &headers, body).await,
    }
}
