//! Webhooks: which apps are told about which events.

pub(crate) mod faults;
pub(crate) mod sending;

use std::collections::BTreeMap;

use bobbin_local_sandbox::random::uuid;
use serde_json::{Value, json};

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
    sending::send(engine, app, delivery);
}

/// Tells every app that is installed for a repository; `payload` omits the fields that all such payloads share.
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

/// The same, only for the apps that `is_meant` picks.
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
