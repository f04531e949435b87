//! The agents' output, as every converter reads it.

use bobbin_agent_events::{Converted, Converter, EventEnvelope, UniversalEvent};
use serde_json::Value;

/// The names of the converters.
const AGENTS: [&str; 5] = ["opencode", "claude", "codex", "amp", "acp"];
/// Bytes of a converter that is stored, however much it read.
const STORED_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Bytes of an input that every converter reads; of a longer one, a recorded stream mostly, its length chooses one.
const FOR_ALL_BYTES_MAX: usize = 8 * 1024;

/// An input is a JSON array of an agent's output, or its lines.
pub(super) fn any(input: &[u8]) {
    let lines: Vec<String> = match serde_json::from_slice(input) {
        Ok(Value::Array(values)) => values.iter().map(Value::to_string).collect(),
        _ => {
            let text = String::from_utf8_lossy(input);
            text.lines().map(str::to_owned).collect()
        }
    };
    let readers = if input.len() <= FOR_ALL_BYTES_MAX {
        &AGENTS[..]
    } else {
        &AGENTS[input.len() % AGENTS.len()..][..1]
    };
    for agent in readers {
        let mut converter = Converter::of(agent);
        let (before, after) = lines.split_at(lines.len() / 2);
        for line in before {
            kept(line, converter.convert_line(line));
        }
        let stored = serde_json::to_string(&converter).expect("a converter can be stored");
        assert!(stored.len() <= STORED_BYTES_MAX, "{} bytes", stored.len());
        let mut restored: Converter = serde_json::from_str(&stored).expect("as it was stored");
        for line in after {
            let converted = converter.convert_line(line);
            assert_eq!(
                restored.convert_line(line),
                converted,
                "a restored {agent} converts otherwise"
            );
            kept(line, converted);
        }
    }
}

fn kept(line: &str, converted: Vec<Converted>) {
    let value = serde_json::from_str(line).unwrap_or_else(|_| Value::from(line));
    let raws: Vec<&Value> = converted.iter().filter_map(Converted::raw).collect();
    let (first, others) = raws.split_first().expect("an event at least");
    assert_eq!(**first, value, "the raw value is lost");
    assert!(others.iter().all(|raw| raw.is_null()), "it stands twice");
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
        let written = serde_json::to_value(&event).expect("an event can be written");
        let read: UniversalEvent = serde_json::from_value(written).expect("and read");
        assert_eq!(read, event);
    }
}
