//! Slack's delivery: signed, with the event envelope, and with bounded retries.

use crate::action::{ActionResult, refused};
use crate::http::percent_encoded;
use crate::hub::{Hub, lock};
use crate::ids::{now_ms, random_text};
use crate::ingress::{IngressAnswer, NoAnswer};
use crate::json::JsonFields;
use crate::sign;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Status of an answer; 0 without one.
pub fn status(answer: &Result<IngressAnswer, NoAnswer>) -> u16 {
    answer.as_ref().map_or(0, |answer| answer.status)
}

/// Wraps an event, delivers it, and retries in the background.
pub async fn deliver(hub: &Arc<Hub>, event: Value) -> Value {
    let id = format!("Ev0{}", random_text(10).to_ascii_uppercase());
    let team = &hub.seeds.team_id;
    let envelope = json!({"token": "local", "team_id": team, "context_team_id": team, "context_enterprise_id": null, "api_app_id": hub.slack.app_id,
        "event": event, "type": "event_callback", "event_id": id, "event_time": now_ms() / 1_000,
        "authorizations": [{"enterprise_id": null, "team_id": team, "user_id": hub.slack.bot_user_id, "is_bot": true, "is_enterprise_install": false}],
        "is_ext_shared_channel": false, "event_context": format!("4-{}", random_text(24))});
    hub.remember_event(&id, &envelope);
    let first = post_event(hub, &envelope, None).await;
    if retry_reason(&first).is_some() {
        let (retrying, last) =
            (Arc::clone(hub), first.as_ref().map_or_else(reason_of, |_| "http_error"));
        hub.tasks.spawn(async move {
            tokio::select! {
                () = retrying.stop.cancelled() => {}
                () = retries(&retrying, &envelope, last) => {}
            }
        });
    }
    json!({"event_id": id, "type": event["type"], "status": status(&first)})
}

pub fn reason_of(error: &NoAnswer) -> &'static str {
    match error {
        NoAnswer::TooLate => "http_timeout",
        NoAnswer::NoIngress | NoAnswer::Unreachable => "connection_failed",
    }
}

/// Slack's retry reason, if it would retry.
fn retry_reason(answer: &Result<IngressAnswer, NoAnswer>) -> Option<&'static str> {
    match answer {
        Ok(answer) if (200..300).contains(&answer.status) || answer.no_retry => None,
        Ok(_) => Some("http_error"),
        Err(error) => Some(reason_of(error)),
    }
}

async fn retries(hub: &Hub, envelope: &Value, first_reason: &'static str) {
    let delays = lock(&hub.retry_delays_ms).clone();
    let mut reason = first_reason;
    for (at, delay_ms) in delays.into_iter().enumerate() {
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        let answer = post_event(hub, envelope, Some((at + 1, reason))).await;
        match retry_reason(&answer) {
            Some(next) => reason = next,
            None => return,
        }
    }
    tracing::warn!(
        slack.event_id = envelope.str("event_id"),
        reason,
        "an event was given up after its retries"
    );
}

pub async fn post_event(
    hub: &Hub,
    envelope: &Value,
    retry: Option<(usize, &str)>,
) -> Result<IngressAnswer, NoAnswer> {
    let mut headers = vec![("content-type", "application/json".to_owned())];
    if let Some((number, reason)) = retry {
        headers.push(("x-slack-retry-num", number.to_string()));
        headers.push(("x-slack-retry-reason", reason.to_owned()));
    }
    post(hub, "/slack/events", headers, envelope.to_string().into_bytes()).await
}

async fn post(
    hub: &Hub,
    path: &str,
    mut headers: Vec<(&str, String)>,
    body: Vec<u8>,
) -> Result<IngressAnswer, NoAnswer> {
    let timestamp = (now_ms() / 1_000).to_string();
    headers.push(("x-slack-signature", sign::slack(&hub.slack.signing_secret, &timestamp, &body)));
    headers.push(("x-slack-request-timestamp", timestamp));
    headers.push(("user-agent", "Slackbot 1.0 (+https://api.slack.com/robots)".to_owned()));
    hub.ingress.deliver(path, &headers, body).await
}

pub async fn post_form(
    hub: &Hub,
    path: &str,
    form: &[(&str, String)],
) -> Result<IngressAnswer, NoAnswer> {
    let pairs: Vec<String> =
        form.iter().map(|(name, value)| format!("{name}={}", percent_encoded(value))).collect();
    let headers = vec![("content-type", "application/x-www-form-urlencoded".to_owned())];
    post(hub, path, headers, pairs.join("&").into_bytes()).await
}

pub async fn interact(hub: &Hub, payload: &Value) -> Result<IngressAnswer, NoAnswer> {
    post_form(hub, "/slack/interactivity", &[("payload", payload.to_string())]).await
}

/// Redelivers a past event, with the headers of a retry.
pub async fn retry(hub: &Arc<Hub>, act: &Value) -> ActionResult {
    let wanted = act.str("event_id");
    let found =
        lock(&hub.events).iter().find(|(id, _)| id == wanted).map(|(_, envelope)| envelope.clone());
    let Some(envelope) = found else {
        return refused("no such event was delivered recently (event_id)");
    };
    let reason = act.str_or("reason", "http_timeout");
    let number = usize::try_from(act.int("num").max(1)).unwrap_or(1);
    let answer = post_event(hub, &envelope, Some((number, reason))).await;
    Ok(json!({"event_id": wanted, "status": status(&answer)}))
}
