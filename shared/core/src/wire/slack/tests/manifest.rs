//! The app manifest against Slack's schema, and against what this module answers to.

use std::path::PathBuf;

use serde_json::Value;

fn manifest() -> Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../infra/slack-manifest.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_manifest_is_valid_by_slacks_schema() {
    let Some(specs) = std::env::var_os("BOBBIN_SPECS") else {
        eprintln!(
            "SKIPPED manifest schema: set BOBBIN_SPECS to a folder with slack-manifest.schema.json (GitHub slackapi/manifest-schema)"
        );
        return;
    };
    let path = PathBuf::from(specs).join("slack-manifest.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let manifest = manifest();
    let errors: Vec<String> = validator
        .iter_errors(&manifest)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let mut broken = manifest;
    broken["features"]["unknown_feature"] = true.into();
    assert!(
        !validator.is_valid(&broken),
        "the schema must be able to refuse"
    );
}

#[test]
fn the_manifest_names_the_entrances_events_and_shortcut_that_are_served() {
    let manifest = manifest();
    let host = "https://HOST/slack";
    assert_eq!(
        manifest["settings"]["event_subscriptions"]["request_url"],
        format!("{host}/events")
    );
    assert_eq!(
        manifest["settings"]["interactivity"]["request_url"],
        format!("{host}/interactivity")
    );
    assert_eq!(
        manifest["features"]["slash_commands"][0]["url"],
        format!("{host}/commands")
    );
    assert_eq!(
        manifest["features"]["shortcuts"][0]["callback_id"],
        "send_to_bobbin"
    );
    let events = manifest["settings"]["event_subscriptions"]["bot_events"]
        .as_array()
        .unwrap();
    for event in [
        "app_mention",
        "message.im",
        "message.channels",
        "agent_session_stopped",
    ] {
        assert!(events.iter().any(|e| e == event), "{event}");
    }
}
