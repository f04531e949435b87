//! Whatever an agent writes: no converter panics, and nothing is lost.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;

use bobbin_agent_events::{Converted, Converter, EventEnvelope, UniversalEvent};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const AGENTS: [&str; 5] = ["opencode", "claude", "codex", "amp", "acp"];

/// Words that the agents' values have as tags, and nobody else's.
const WORDS: [&str; 60] = [
    "type",
    "subtype",
    "properties",
    "payload",
    "info",
    "part",
    "parts",
    "id",
    "sessionID",
    "messageID",
    "partID",
    "role",
    "text",
    "tool",
    "state",
    "status",
    "input",
    "output",
    "error",
    "data",
    "message",
    "content",
    "name",
    "method",
    "params",
    "result",
    "sessionId",
    "update",
    "sessionUpdate",
    "messageId",
    "toolCallId",
    "options",
    "toolCall",
    "requestedSchema",
    "mode",
    "form",
    "questions",
    "threadId",
    "item",
    "itemId",
    "delta",
    "turn",
    "request",
    "request_id",
    "event",
    "session_id",
    "uuid",
    "assistant",
    "user",
    "system",
    "init",
    "message.part.updated",
    "session.status",
    "idle",
    "busy",
    "item/completed",
    "session/update",
    "tool_call",
    "control_request",
    "stream_event",
];

fn json() -> impl Strategy<Value = Value> {
    let word =
        prop_oneof![prop::sample::select(&WORDS[..]).prop_map(str::to_owned), any::<String>()];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<u32>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((word.clone(), inner), 0..8)
                .prop_map(|fields| Value::Object(Map::from_iter(fields))),
        ]
    })
}

/// Recorded values, and such as are of every kind that a converter knows.
fn seeds() -> Vec<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seeds: Vec<Value> = Vec::new();
    for file in ["task", "question", "perm-once", "error-once", "cut-once"] {
        let file = root.join(format!("../../../tests/fixtures/opencode/{file}.event.sse"));
        let text = std::fs::read_to_string(file).unwrap();
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        seeds.extend(data.map(|data| serde_json::from_str::<Value>(data).unwrap()));
    }
    for file in ["claude", "amp", "codex", "acp"] {
        let file = root.join(format!("../../../tests/fuzz/corpus/agent_events/{file}"));
        let text = std::fs::read_to_string(file).unwrap();
        seeds.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
    }
    seeds
}

/// Puts something else at one place of a value.
fn spoil(value: &mut Value, path: &[usize], with: &Value) {
    let Some((step, rest)) = path.split_first() else {
        *value = with.clone();
        return;
    };
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let at = step % fields.len();
            let key = fields.keys().nth(at).unwrap().clone();
            match (rest, step % 3) {
                ([], 0) => drop(fields.remove(&key)),
                _ => spoil(fields.get_mut(&key).unwrap(), rest, with),
            }
        }
        Value::Array(all) if !all.is_empty() => {
            let at = step % all.len();
            spoil(&mut all[at], rest, with);
        }
        leaf => *leaf = with.clone(),
    }
}

fn nothing_is_lost(converter: &mut Converter, value: &Value) -> Result<(), TestCaseError> {
    let stored = serde_json::to_string(converter).unwrap();
    let mut restored: Converter = serde_json::from_str(&stored).unwrap();
    let converted = converter.convert(value.clone());
    prop_assert_eq!(
        &restored.convert(value.clone()),
        &converted,
        "a converter that was stored converts otherwise"
    );
    let (first, others) = converted.split_first().expect("an event at least");
    prop_assert_eq!(first.raw(), Some(value));
    prop_assert!(others.iter().filter_map(Converted::raw).all(Value::is_null));
    for one in converted {
        let event = one.into_event(EventEnvelope {
            id: 1,
            seq: 1,
            timestamp: String::new(),
            session_id: String::new(),
            agent: String::new(),
            agent_session_id: None,
            turn: None,
        });
        let written = serde_json::to_string(&event).unwrap();
        let read: UniversalEvent = serde_json::from_str(&written).unwrap();
        prop_assert_eq!(read, event);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn converters_keep_any_value(values in prop::collection::vec(json(), 1..8)) {
        for agent in AGENTS {
            let mut converter = Converter::of(agent);
            for value in &values {
                nothing_is_lost(&mut converter, value)?;
            }
        }
    }

    #[test]
    fn converters_keep_mutated_real_values(
        at in any::<prop::sample::Index>(),
        path in prop::collection::vec(any::<usize>(), 1..6),
        with in json(),
    ) {
        let seeds = seeds();
        let from = at.index(seeds.len());
        for agent in AGENTS {
            let mut converter = Converter::of(agent);
            for value in &seeds[from..seeds.len().min(from + 6)] {
                let mut spoilt = value.clone();
                spoil(&mut spoilt, &path, &with);
                nothing_is_lost(&mut converter, value)?;
                nothing_is_lost(&mut converter, &spoilt)?;
            }
        }
    }

    #[test]
    fn converters_keep_any_line(line in any::<String>()) {
        for agent in AGENTS {
            let value = serde_json::from_str(&line).unwrap_or_else(|_| Value::from(line.clone()));
            let converted = Converter::of(agent).convert_line(&line);
            prop_assert_eq!(converted[0].raw(), Some(&value));
        }
    }
}

#[test]
fn converter_memory_is_bounded() {
    let long = "x".repeat(20_000);
    let mut opencode = Converter::of("opencode");
    let mut claude = Converter::of("claude");
    let mut acp = Converter::of("acp");
    for at in 0..600 {
        let id = format!("id-{at}");
        opencode.convert(json!({ "type": "message.updated", "properties": { "info": {
            "id": id, "sessionID": id, "role": long, "finish": long,
            "error": { "name": long, "data": { "message": long } } } } }));
        opencode.convert(json!({ "type": "message.part.updated", "properties": { "part": {
            "id": id, "sessionID": long, "messageID": "m", "type": "text", "text": long } } }));
        claude.convert(json!({ "type": "assistant", "session_id": long, "message": {
            "id": id, "content": [{ "type": "text", "text": long }] } }));
        claude.convert(json!({ "type": "stream_event", "parent_tool_use_id": id, "event": {
            "type": "message_start", "message": { "id": long } } }));
        acp.convert(json!({ "method": "session/update", "params": { "sessionId": long, "update": {
            "sessionUpdate": "tool_call", "toolCallId": id, "title": long, "rawInput": long } } }));
    }
    for (name, converter) in [("opencode", opencode), ("claude", claude), ("acp", acp)] {
        let bytes = serde_json::to_string(&converter).unwrap().len();
        assert!(bytes < 4 * 1024 * 1024, "{name}: {bytes} bytes");
    }
}
