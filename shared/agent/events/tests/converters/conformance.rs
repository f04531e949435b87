//! What is written is what the description of the session API at 79bb441 describes.

use bobbin_agent_events::{EventEnvelope, UniversalEvent};
use serde_json::{Value, json};

use crate::read::{of_opencode, of_the_others};

const DESCRIPTION: &str = "agents/sandbox-agent-79bb441.openapi.json";

/// The description of an event as a JSON Schema: OpenAPI 3.0 says `nullable` where a schema has a further type.
fn schema() -> Option<Value> {
    let mut described = bobbin_rules::description(DESCRIPTION)?;
    nullable(&mut described);
    described["$ref"] = json!("#/components/schemas/UniversalEvent");
    Some(described)
}

fn nullable(schema: &mut Value) {
    match schema {
        Value::Array(all) => all.iter_mut().for_each(nullable),
        Value::Object(one) => {
            one.values_mut().for_each(nullable);
            if one.remove("nullable") == Some(Value::Bool(true)) && !one.is_empty() {
                let inner = Value::Object(std::mem::take(one));
                one.insert("anyOf".to_owned(), json!([inner, { "type": "null" }]));
            }
        }
        _ => {}
    }
}

fn events() -> Vec<(String, UniversalEvent)> {
    let mut all = Vec::new();
    for recording in of_opencode().into_iter().chain(of_the_others()) {
        let mut converter = recording.converter();
        for (seq, line) in (1..).zip(&recording.lines) {
            for one in converter.convert_line(line) {
                let envelope = EventEnvelope {
                    id: all.len() as u64 + 1,
                    seq,
                    timestamp: "2026-11-24T07:00:00Z".to_owned(),
                    session_id: "thread-1".to_owned(),
                    agent: recording.agent.to_owned(),
                    agent_session_id: None,
                    turn: Some("turn-1".to_owned()),
                };
                all.push((recording.name.clone(), one.into_event(envelope)));
            }
        }
    }
    all
}

#[test]
fn events_conform_to_published_schema() {
    let Some(schema) = schema() else {
        return;
    };
    let validator = jsonschema::validator_for(&schema).unwrap();
    for (name, event) in events() {
        let written = serde_json::to_value(&event).unwrap();
        if let Err(error) = validator.validate(&written) {
            panic!("{name}: {error}: {written}");
        }
        // The validator is one that refuses.
        let mut spoilt = written;
        spoilt["data"] = json!({ "nothing": 1 });
        assert!(!validator.is_valid(&spoilt));
    }
}

#[test]
fn events_round_trip_through_json() {
    for (name, event) in events() {
        let written = serde_json::to_string(&event).unwrap();
        let read: UniversalEvent = serde_json::from_str(&written).unwrap();
        assert_eq!(read, event, "{name}: {written}");
    }
}
