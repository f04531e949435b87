//! Our schemas against what the agents say of themselves, and the comparison against itself.
#![allow(clippy::unwrap_used)]

use bobbin_agent_events_generator::drift::{Drift, with_description, with_recorded};
use bobbin_agent_events_generator::extract::{SelfDescription, from_file};
use bobbin_agent_events_generator::schema_of;
use serde_json::{Value, json};

fn schema(name: &str) -> Value {
    serde_json::from_str(&schema_of(name).unwrap()).unwrap()
}

fn breaking(found: Vec<Drift>) -> Vec<String> {
    let breaks = found.iter().filter(|one| matches!(one, Drift::Breaks { .. }));
    breaks.map(ToString::to_string).collect()
}

#[test]
fn schemas_match_agents_own_descriptions() {
    let descriptions = [
        ("opencode", "opencode-1.18.33-openapi.json"),
        ("codex", "agents/codex-app-server.schema.json"),
        ("acp", "agents/acp-v1.upstream.json"),
    ];
    for (name, file) in descriptions {
        if let Some(document) = bobbin_rules::description(file) {
            let found = breaking(with_description(&schema(name), &document));
            assert!(found.is_empty(), "{name}:\n{}", found.join("\n"));
        }
    }
}

#[test]
fn claude_schemas_match_recordings() {
    let Some(folder) = bobbin_rules::outside("sandbox-agent-transcripts") else {
        return;
    };
    let mut lines = Vec::new();
    for file in ["ask", "bash", "denied", "error", "text"] {
        match from_file(&folder.join(format!("claude-{file}.jsonl"))).unwrap() {
            SelfDescription::Lines(more) => lines.extend(more),
            SelfDescription::Description(_) => panic!("lines are no description"),
        }
    }
    // What we wrote to it has another shape than what it writes.
    lines.retain(|line| line.get("session_id").is_some() || line["type"] == "control_request");
    lines.retain(|line| line["request"]["subtype"] != "initialize");
    for name in ["claude", "stream_json"] {
        let found = breaking(with_recorded(&schema(name), &lines));
        assert!(found.is_empty(), "{name}:\n{}", found.join("\n"));
    }
}

/// A schema of ours, in small.
fn ours() -> Value {
    json!({
        "x-kinds": { "Event.type": ["said", "gone"] },
        "definitions": {
            "Said": {
                "x-source": "Event[type=said].properties",
                "properties": { "id": { "type": "string" }, "count": { "type": ["number", "null"] } },
                "required": ["id"]
            }
        }
    })
}

#[test]
fn differences_from_description_are_reported() {
    let document = json!({ "components": { "schemas": {
        "Event": { "anyOf": [{ "$ref": "#/components/schemas/Said" }, { "$ref": "#/components/schemas/New" }] },
        "Said": { "properties": {
            "type": { "const": "said" },
            "properties": { "properties": {
                "id": { "type": "string" }, "count": { "type": "string" }, "more": {}
            } }
        } },
        "New": { "properties": { "type": { "enum": ["new"] } } }
    } } });
    let found: Vec<String> =
        with_description(&ours(), &document).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "breaks  Event.type: gone is not described",
            "breaks  Said.count: may be string, and is read as null or number",
            "breaks  Said.id: may be absent",
            "unread  Event.type: new",
            "unread  Said: more",
        ]
    );
}

#[test]
fn differences_from_recording_are_reported() {
    let lines = [
        json!({ "type": "said", "properties": { "id": 7, "count": 1 } }),
        json!({ "type": "said", "properties": { "more": true } }),
        json!({ "type": "new" }),
    ];
    let mut schema = ours();
    schema["x-kinds"] = json!({ "Line.type": ["said"] });
    schema["definitions"]["Said"]["x-source"] = json!("Line[type=said].properties");
    schema["definitions"]["Gone"] = json!({ "x-source": "Line[type=gone]", "properties": {} });
    let found: Vec<String> =
        with_recorded(&schema, &lines).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "breaks  Said.id: is absent",
            "breaks  Said.id: may be integer, and is read as string",
            "unread  Line.type: new",
            "unread  Said: more",
            "unseen  Gone",
        ]
    );
}
