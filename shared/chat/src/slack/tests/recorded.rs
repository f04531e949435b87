//! Recorded payloads of real workspaces, if available: tolerance, and the outcome that each states.

use std::path::PathBuf;

use bobbin_core::records::message::{Body, Work};
use serde_json::Value;

use super::{app, request, signed};
use crate::Inbound;

fn folder() -> Option<PathBuf> {
    let index = bobbin_rules::outside("payloads/index.json")?;
    index.parent().map(PathBuf::from)
}

fn read(path: PathBuf) -> Value {
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap()
}

/// The tenant of the installation, whoever sent it.
fn tenants(request: &Value) -> String {
    let body = request.get("json").or(request.get("payload")).unwrap_or(&Value::Null);
    let authorization = &body["authorizations"][0];
    let ids = [
        &authorization["team_id"],
        &authorization["enterprise_id"],
        &body["team_id"],
        &body["team"]["id"],
        &request["form"]["team_id"],
    ];
    ids.iter().filter_map(|id| id.as_str()).collect::<Vec<_>>().join(",")
}

fn turn(inbound: &Inbound) -> Option<(&str, &bobbin_core::records::message::Prompt)> {
    match &inbound.enqueue {
        Some(Body::Message(message)) => match &message.work {
            Work::Prompt(prompt) => Some((message.id.as_str(), prompt)),
            _ => None,
        },
        _ => None,
    }
}

fn check(id: &str, case: &Value) {
    let (endpoint, raw) = request(&case["request"]);
    let inbound = signed(&endpoint, &raw, &app(&tenants(&case["request"]), "", ""));
    let expect = &case["expect"];
    assert_eq!(
        Some(u64::from(inbound.answer.status)),
        expect["status"].as_u64(),
        "{id}: {inbound:?}"
    );
    if let Some(challenge) = expect["challenge"].as_str() {
        assert!(inbound.answer.body.contains(challenge), "{id}");
    }
    match &expect["starts_turn"] {
        Value::Bool(starts) => {
            // A mention without any words starts no turn: it is answered with help.
            assert_eq!(turn(&inbound).is_some(), *starts, "{id}: {inbound:?}");
        }
        Value::String(when) if when.contains("exactly once") => {
            assert!(turn(&inbound).is_some(), "{id}")
        }
        Value::String(_) => assert!(
            turn(&inbound).is_none(),
            "{id}: a thread is not known to the endpoint: {inbound:?}"
        ),
        _ => {}
    }
    if expect["external"].is_boolean() || expect["external_channel"] == true {
        assert!(turn(&inbound).is_none(), "{id}: external");
    }
    if let (Some(tenant), Some(body)) = (expect["tenant"].as_str(), &inbound.enqueue) {
        assert!(body.group().starts_with(&format!("slack:{tenant}:")), "{id}: {body:?}");
    }
    if let (Some(text), Some((_, prompt))) = (expect["text"].as_str(), turn(&inbound)) {
        assert_eq!(prompt.text, text, "{id}");
    }
    if let (Some(files), Some((_, prompt))) = (expect["files"].as_array(), turn(&inbound)) {
        let names: Vec<&str> = prompt.attachments.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, files.iter().filter_map(Value::as_str).collect::<Vec<_>>(), "{id}");
    }
}

#[test]
fn recorded_requests_have_stated_outcomes() {
    let Some(folder) = folder() else { return };
    let index = read(folder.join("index.json"));
    let mut checked = 0;
    for entry in index.as_array().unwrap().iter().filter(|entry| entry["platform"] == "slack") {
        let id = entry["id"].as_str().unwrap();
        check(id, &read(folder.join(format!("{id}.json"))));
        checked += 1;
    }
    assert!(checked >= 50, "only {checked} recorded payloads were found");
}

#[test]
fn event_retries_are_one_message() {
    let Some(folder) = folder() else { return };
    let names = [
        "08-app-mention-full-envelope",
        "77-retry-1-http-timeout",
        "78-retry-2-http-error",
        "79-retry-3-connection-failed",
    ];
    let ids: std::collections::BTreeSet<String> = names
        .iter()
        .map(|name| {
            let case = read(folder.join(format!("slack/{name}.json")));
            let (endpoint, raw) = request(&case["request"]);
            let inbound = signed(&endpoint, &raw, &app(&tenants(&case["request"]), "", ""));
            turn(&inbound).unwrap().0.to_owned()
        })
        .collect();
    assert_eq!(ids.len(), 1);
}
