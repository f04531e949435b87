//! Webhooks on their way: signed, sent once, never again by themselves.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;

use super::faults::Outgoing;
use crate::api_error::ApiError;
use crate::limits::{DELIVERIES_MAX, DELIVERY_ANSWER_BYTES_MAX, DELIVERY_MS_MAX};
use crate::record::{App, HookDelivery};
use crate::state::{Engine, SharedEngine};

/// Sends a delivery again, under its own name, whatever is armed.
///
/// # Errors
/// There is no such delivery of this app.
pub(crate) fn again(engine: &SharedEngine, app: &App, id: u64) -> Result<(), ApiError> {
    let known = engine.deliveries().iter().find(|one| one.id == id && one.app == app.id).cloned();
    let mut delivery = known.ok_or_else(ApiError::not_found)?;
    delivery.id = engine.change(|inner| Ok(inner.new_id()))?;
    delivery.is_again = true;
    if let Some(url) = &app.webhook {
        delivery.url.clone_from(url);
    }
    all(engine, vec![Outgoing::new(delivery, app.webhook_secret.clone())]);
    Ok(())
}

/// Sends a delivery, with what is armed against it.
pub(super) fn send(engine: &SharedEngine, app: &App, delivery: HookDelivery) {
    let one = Outgoing::new(delivery, app.webhook_secret.clone());
    all(engine, engine.hook_faults.sent(one));
}

/// Sends a forged webhook of an app, and records it nowhere.
pub(crate) fn forge(
    engine: &SharedEngine,
    app: &App,
    (event, payload): (&str, &Value),
    secret: Option<&str>,
) {
    let Some(url) = app.webhook.clone() else { return };
    let body = payload.to_string().into_bytes();
    let guid = bobbin_local_sandbox::random::uuid();
    let headers = headers(app.id, event, &guid, secret, &body);
    let (work, stopping) = (engine.clone(), engine.stopping.clone());
    engine.tasks.spawn(async move {
        tokio::select! {
            _ = post(&work, &url, &headers, body) => {}
            () = stopping.cancelled() => {}
        }
    });
}

fn signature(secret: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes())
        .unwrap_or_else(|_| unreachable!("a key of any length"));
    mac.update(body);
    format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
}

fn headers(
    app: u64,
    event: &str,
    guid: &str,
    secret: Option<&str>,
    body: &[u8],
) -> BTreeMap<String, String> {
    let mut headers = BTreeMap::from([
        ("Accept", "*/*".to_owned()),
        ("Content-Type", "application/json".to_owned()),
        ("User-Agent", "GitHub-Hookshot/bobbin".to_owned()),
        ("X-GitHub-Delivery", guid.to_owned()),
        ("X-GitHub-Event", event.to_owned()),
        ("X-GitHub-Hook-ID", app.to_string()),
        ("X-GitHub-Hook-Installation-Target-ID", app.to_string()),
        ("X-GitHub-Hook-Installation-Target-Type", "integration".to_owned()),
    ]);
    if let Some(secret) = secret {
        headers.insert("X-Hub-Signature-256", signature(secret, body));
    }
    headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

async fn post(
    engine: &Engine,
    url: &str,
    headers: &BTreeMap<String, String>,
    body: Vec<u8>,
) -> Result<(reqwest::StatusCode, reqwest::header::HeaderMap, Vec<u8>), reqwest::Error> {
    let mut request = engine.http.post(url);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let bound = Duration::from_millis(DELIVERY_MS_MAX);
    let answer = request.body(body).timeout(bound).send().await?;
    let (status, headers) = (answer.status(), answer.headers().clone());
    Ok((status, headers, answer.bytes().await?.to_vec()))
}

/// Sends these one after the other.
pub(crate) fn all(engine: &SharedEngine, all: Vec<Outgoing>) {
    if all.is_empty() {
        return;
    }
    let (work, stopping) = (engine.clone(), engine.stopping.clone());
    engine.tasks.spawn(async move {
        let sent = async {
            let _permit = work.senders.acquire().await;
            for one in all {
                deliver(&work, one).await;
            }
        };
        tokio::select! {
            () = sent => {}
            () = stopping.cancelled() => {}
        }
    });
}

async fn deliver(engine: &Engine, one: Outgoing) {
    let Outgoing { mut delivery, event, guid, secret, is_lost } = one;
    let body = delivery.payload.to_string().into_bytes();
    delivery.request_headers = headers(delivery.app, &event, &guid, secret.as_deref(), &body);
    let began = Instant::now();
    if is_lost {
        "timed out".clone_into(&mut delivery.status);
    } else {
        match post(engine, &delivery.url, &delivery.request_headers, body).await {
            Ok((status, headers, text)) => {
                delivery.status_code = status.as_u16();
                delivery.status = if status.is_success() {
                    "OK".to_owned()
                } else {
                    format!("Invalid HTTP Response: {}", status.as_u16())
                };
                let kept = &text[..text.len().min(DELIVERY_ANSWER_BYTES_MAX)];
                delivery.response = String::from_utf8_lossy(kept).into_owned();
                let pairs = headers.iter().filter_map(|(name, value)| {
                    Some((name.to_string(), value.to_str().ok()?.to_owned()))
                });
                delivery.response_headers = pairs.collect();
            }
            Err(error) if error.is_timeout() => "timed out".clone_into(&mut delivery.status),
            Err(_) => "failed to connect to host".clone_into(&mut delivery.status),
        }
    }
    delivery.duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let mut deliveries = engine.deliveries();
    if deliveries.len() >= DELIVERIES_MAX {
        deliveries.pop_front();
    }
    deliveries.push_back(delivery);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_is_githubs_published_example() {
        let signed = signature("It's a Secret to Everybody", b"Hello, World!");
        let expected = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        assert_eq!(signed, expected);
    }
}
