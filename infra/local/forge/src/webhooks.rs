//! Webhooks: signed, sent once, never again by themselves.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bobbin_local_sandbox::random::uuid;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::api_error::ApiError;
use crate::limits::{DELIVERIES_MAX, DELIVERY_ANSWER_BYTES_MAX, DELIVERY_MS_MAX};
use crate::permission::{Level, level};
use crate::record::{App, HookDelivery, Installation, RepositoryRecord};
use crate::rest::show::Show;
use crate::state::{ForgeState, SharedEngine};

/// Events that every app gets, whatever it asked for.
const ALWAYS: [&str; 4] =
    ["ping", "installation", "installation_repositories", "github_app_authorization"];

/// Something that happened.
#[derive(Clone)]
pub(crate) struct Event {
    pub(crate) name: &'static str,
    pub(crate) installation: Option<u64>,
    pub(crate) repository: Option<u64>,
    /// With its `action`, if it has one.
    pub(crate) payload: Value,
}

/// Tells one app, if it has an address and asked for the event.
pub(crate) fn tell(engine: &SharedEngine, app: &App, event: Event) {
    let is_wanted =
        ALWAYS.contains(&event.name) || app.events.iter().any(|name| *name == event.name);
    let Some(url) = app.webhook.clone().filter(|_| is_wanted) else { return };
    let action = event.payload["action"].as_str().map(str::to_owned);
    let Ok(id) = engine.change(|inner| Ok(inner.new_id())) else { return };
    let delivery = HookDelivery {
        id,
        app: app.id,
        guid: uuid(),
        event: event.name.to_owned(),
        action,
        installation: event.installation,
        repository: event.repository,
        is_again: false,
        delivered_at: engine.clock.now_ms(),
        duration_ms: 0,
        status: "pending".to_owned(),
        status_code: 0,
        url,
        payload: event.payload,
        request_headers: BTreeMap::new(),
        response_headers: BTreeMap::new(),
        response: String::new(),
    };
    send(engine, app, delivery);
}

/// Tells every app that is installed for a repository; the payload lacks what all such payloads have.
pub(crate) fn tell_all(
    engine: &SharedEngine,
    repository: u64,
    sender: Option<u64>,
    name: &'static str,
    payload: impl Fn(&Show<'_>, &RepositoryRecord) -> Value,
) {
    tell_some(engine, repository, sender, name, |_| true, payload);
}

/// The right without which an event is not told.
fn right_of(event: &str) -> Option<&'static str> {
    Some(match event {
        "check_run" | "check_suite" => "checks",
        "workflow_run" => "actions",
        "status" => "statuses",
        "issue_comment" => "issues",
        "push" => "contents",
        _ if event.starts_with("pull_request") => "pull_requests",
        _ => return None,
    })
}

/// The same of those apps only that are meant.
pub(crate) fn tell_some(
    engine: &SharedEngine,
    repository: u64,
    sender: Option<u64>,
    name: &'static str,
    is_meant: impl Fn(u64) -> bool,
    payload: impl Fn(&Show<'_>, &RepositoryRecord) -> Value,
) {
    let has_right = |one: &Installation| {
        right_of(name).is_none_or(|right| level(&one.permissions, right) >= Level::Read)
    };
    let mut events = Vec::new();
    {
        let inner = engine.lock();
        let show = Show { inner: &inner, at: &engine.addresses };
        let Ok(record) = inner.repository(repository) else { return };
        let holding = inner.installations.values().filter(|one| one.holds(record));
        let holding = holding.filter(|one| is_meant(one.app) && has_right(one));
        for installation in holding.filter(|one| one.suspended_at.is_none()) {
            let Ok(app) = inner.app(installation.app) else { continue };
            let mut payload = payload(&show, record);
            payload["repository"] = show.repository(record, None);
            payload["installation"] = json!({ "id": installation.id, "node_id": show.node("Installation", installation.id) });
            payload["sender"] = show.user_of(sender.unwrap_or(app.bot));
            let event = Event {
                name,
                installation: Some(installation.id),
                repository: Some(repository),
                payload,
            };
            events.push((app.clone(), event));
        }
    }
    for (app, event) in events {
        tell(engine, &app, event);
    }
}

/// The first message to an app's address.
pub(crate) fn ping(engine: &SharedEngine, app: &App) {
    let payload = {
        let inner = engine.lock();
        let show = Show { inner: &inner, at: &engine.addresses };
        json!({
            "zen": "Anything added dilutes everything else.", "hook_id": app.id,
            "hook": {
                "type": "App", "id": app.id, "name": "web", "active": true, "app_id": app.id, "events": app.events,
                "config": show.hook_config(app), "updated_at": show.time(app.created_at),
                "created_at": show.time(app.created_at),
                "deliveries_url": format!("{}/app/hook/deliveries", engine.addresses.api),
            },
        })
    };
    tell(engine, app, Event { name: "ping", installation: None, repository: None, payload });
}

/// Tells an app of something about one of its installations.
pub(crate) fn tell_of_installation(
    engine: &SharedEngine,
    installation: u64,
    sender: u64,
    name: &'static str,
    action: &str,
    more: impl FnOnce(&Show<'_>, &ForgeState) -> Vec<(&'static str, Value)>,
) {
    let (app, payload) = {
        let inner = engine.lock();
        let show = Show { inner: &inner, at: &engine.addresses };
        let Ok(record) = inner.installation(installation) else { return };
        let Ok(app) = inner.app(record.app) else { return };
        let mut payload = json!({
            "action": action, "installation": show.installation(record), "sender": show.user_of(sender),
        });
        for (field, value) in more(&show, &inner) {
            payload[field] = value;
        }
        (app.clone(), payload)
    };
    let event = Event { name, installation: Some(installation), repository: None, payload };
    tell(engine, &app, event);
}

/// Sends a delivery again, under its own name.
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
    send(engine, app, delivery);
    Ok(())
}

fn signature(secret: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes())
        .unwrap_or_else(|_| unreachable!("a key of any length"));
    mac.update(body);
    format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
}

fn send(engine: &SharedEngine, app: &App, mut delivery: HookDelivery) {
    let body = delivery.payload.to_string().into_bytes();
    let mut headers = BTreeMap::from([
        ("Accept", "*/*".to_owned()),
        ("Content-Type", "application/json".to_owned()),
        ("User-Agent", "GitHub-Hookshot/bobbin".to_owned()),
        ("X-GitHub-Delivery", delivery.guid.clone()),
        ("X-GitHub-Event", delivery.event.clone()),
        ("X-GitHub-Hook-ID", app.id.to_string()),
        ("X-GitHub-Hook-Installation-Target-ID", app.id.to_string()),
        ("X-GitHub-Hook-Installation-Target-Type", "integration".to_owned()),
    ]);
    if let Some(secret) = &app.webhook_secret {
        headers.insert("X-Hub-Signature-256", signature(secret, &body));
    }
    let told = headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    delivery.request_headers = told.collect();
    let engine = engine.clone();
    let stopping = engine.stopping.clone();
    let work = engine.clone();
    engine.tasks.spawn(async move {
        let sent = async {
            let _permit = work.senders.acquire().await;
            let mut request = work.http.post(&delivery.url);
            for (name, value) in &delivery.request_headers {
                request = request.header(name, value);
            }
            let began = Instant::now();
            let bound = Duration::from_millis(DELIVERY_MS_MAX);
            let answered = async {
                let answer = request.body(body).timeout(bound).send().await?;
                let (status, headers) = (answer.status(), answer.headers().clone());
                Ok::<_, reqwest::Error>((status, headers, answer.bytes().await?))
            };
            match answered.await {
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
            delivery.duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            let mut deliveries = work.deliveries();
            if deliveries.len() >= DELIVERIES_MAX {
                deliveries.pop_front();
            }
            deliveries.push_back(delivery);
        };
        tokio::select! {
            () = sent => {}
            () = stopping.cancelled() => {}
        }
    });
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
