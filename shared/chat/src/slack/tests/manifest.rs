//! The app manifest against Slack's schema, and against the names that this module handles.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{app, signed};
use crate::slack::manifest::{EVENTS, METHODS, link, manifest};

const ADDRESS: &str = "https://bobbin.example";

fn schema() -> Option<jsonschema::Validator> {
    let schema = bobbin_rules::description("slack-manifest.schema.json")?;
    Some(jsonschema::validator_for(&schema).unwrap())
}

#[test]
fn manifest_fits_slack_schema() {
    let Some(validator) = schema() else { return };
    let manifest = manifest(ADDRESS).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&manifest).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let mut broken = manifest;
    broken["features"]["unknown_feature"] = true.into();
    assert!(!validator.is_valid(&broken), "the schema must be able to refuse");
}

#[test]
fn committed_manifest_matches_generated_one() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../infra/slack-manifest.json");
    let text = std::fs::read_to_string(path).unwrap();
    let made = manifest("https://HOST").unwrap();
    assert!(
        serde_json::from_str::<Value>(&text).unwrap() == made,
        "infra/slack-manifest.json is not what the code says; it has to be:\n{made:#}"
    );
}

/// Every subscribed event is handled: none is ignored as unknown.
#[test]
fn only_manifest_events_are_handled() {
    let note = |event: Value| {
        let body = json!({
            "type": "event_callback", "team_id": "T1", "event": event,
            "authorizations": [{"team_id": "T1", "user_id": "UBOT", "is_bot": true}],
        });
        signed("events", body.to_string().as_bytes(), &app("T1", "", "")).note
    };
    for (name, _) in EVENTS {
        let kind = name.split('.').next().unwrap();
        let event = json!({"type": kind, "user": "U1", "channel": "C1", "ts": "1.1", "event_ts": "1.1", "thread_ts": "1.1",
            "text": "hi", "tab": "home"});
        assert_ne!(note(event), "event not in use", "{name}");
    }
    assert_eq!(note(json!({"type": "reaction_added"})), "event not in use");
}

#[test]
fn manifest_names_the_served_endpoints() {
    let manifest = manifest("https://bobbin.example/").unwrap();
    let settings = &manifest["settings"];
    let endpoints = [
        (&settings["event_subscriptions"]["request_url"], "events"),
        (&settings["interactivity"]["request_url"], "interactivity"),
        (&settings["interactivity"]["message_menu_options_url"], "interactivity"),
        (&manifest["features"]["slash_commands"][0]["url"], "commands"),
    ];
    for (address, last) in endpoints {
        assert_eq!(*address, format!("{ADDRESS}/slack/{last}"));
    }
    let shortcut = &manifest["features"]["shortcuts"][0]["callback_id"];
    let used = json!({"type": "message_action", "callback_id": shortcut, "user": {"id": "U1", "team_id": "T1"}, "team": {"id": "T1"},
        "channel": {"id": "C1"}, "message": {"ts": "1.1", "text": "hi", "user": "U1"}, "action_ts": "2.2"});
    let form: String = form_urlencoded::Serializer::new(String::new())
        .append_pair("payload", &used.to_string())
        .finish();
    let taken = signed("interactivity", form.as_bytes(), &app("T1", "", ""));
    assert_eq!(taken.note, "prompt");
}

#[test]
fn manifest_requests_only_needed_scopes() {
    let manifest = manifest(ADDRESS).unwrap();
    let scopes: BTreeSet<&str> = manifest["oauth_config"]["scopes"]["bot"]
        .as_array()
        .unwrap()
        .iter()
        .map(|scope| scope.as_str().unwrap())
        .collect();
    for (name, needed) in METHODS.iter().chain(&EVENTS) {
        for scope in *needed {
            assert!(scopes.contains(scope), "{name} needs {scope}");
        }
    }
    let expected = [
        "app_mentions:read",
        "assistant:write",
        "channels:history",
        "channels:read",
        "chat:write",
        "commands",
        "files:read",
        "files:write",
        "groups:history",
        "groups:read",
        "im:history",
        "im:read",
        "mpim:history",
        "mpim:read",
        "users:read",
    ];
    assert_eq!(scopes, BTreeSet::from(expected));
    assert!(METHODS.iter().any(|(name, needed)| *name == "views.publish" && needed.is_empty()));
    assert!(METHODS.iter().all(|(name, _)| *name != "admin.users.list"));
}

#[test]
fn manifest_link_complete_bad_address_refused() {
    let manifest_ = manifest(ADDRESS).unwrap();
    let link = link(&manifest_);
    let query = link.strip_prefix("https://api.slack.com/apps?").expect("Slack's page of apps");
    assert!(!query.contains([' ', '+', '"']), "{query}");
    let fields: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes())
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    assert_eq!(fields[0], ("new_app".to_owned(), "1".to_owned()));
    assert_eq!(serde_json::from_str::<Value>(&fields[1].1).unwrap(), manifest_);
    for wrong in [
        "",
        "http://bobbin.example",
        "bobbin.example",
        "https://",
        "https://a.example/slack/events",
        "https://a.example?x=1",
    ] {
        let refused = manifest(wrong).expect_err(wrong).to_string();
        assert!(refused.contains("https:// and a host name"), "{refused}");
    }
}
