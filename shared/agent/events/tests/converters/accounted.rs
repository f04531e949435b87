use std::collections::BTreeMap;

use bobbin_agent_events::{UniversalEventData, UniversalMessage};
use serde_json::Value;

use crate::read::{Recording, of_opencode, of_the_others};

/// Feeds it line by line, and counts what came out by what it is.
fn account(recording: &Recording) -> BTreeMap<&'static str, usize> {
    let mut converter = recording.converter();
    let mut accounted = BTreeMap::new();
    for line in &recording.lines {
        let value = serde_json::from_str(line).unwrap_or_else(|_| Value::String(line.clone()));
        let converted = converter.convert_line(line);
        let raws: Vec<&Value> = converted.iter().filter_map(|one| one.raw()).collect();
        assert_eq!(raws.first().copied(), Some(&value), "{}: lost {line}", recording.name);
        assert!(
            raws[1..].iter().all(|raw| raw.is_null()),
            "{}: the raw value stands twice: {line}",
            recording.name
        );
        *accounted.entry(kind(&converted[0].data)).or_default() += 1;
    }
    accounted
}

fn kind(data: &UniversalEventData) -> &'static str {
    match data {
        UniversalEventData::Message { message: UniversalMessage::Unparsed { .. } } => "unparsed",
        UniversalEventData::Unknown { .. } => "unknown",
        _ => "known",
    }
}

#[test]
fn every_recorded_opencode_event_parses() {
    for recording in of_opencode() {
        let accounted = account(&recording);
        let sum: usize = accounted.values().sum();
        assert_eq!(sum, recording.lines.len(), "{}", recording.name);
        assert_eq!(accounted.get("unparsed"), None, "{}", recording.name);
    }
}

#[test]
fn other_agents_json_lines_all_parse() {
    for recording in of_the_others() {
        let accounted = account(&recording);
        let sum: usize = accounted.values().sum();
        assert_eq!(sum, recording.lines.len(), "{}", recording.name);
        // Of exchanges over HTTP the heads are no agent's words; nor is what another server makes in OpenCode's shape.
        let is_agent_s = !recording.name.ends_with(".http") && !recording.name.contains("compat");
        if is_agent_s {
            let remarks = recording.lines.iter().filter(|line| !is_json(line)).count();
            let unparsed = accounted.get("unparsed").copied().unwrap_or_default();
            assert_eq!(unparsed, remarks, "{}", recording.name);
        }
    }
}

fn is_json(line: &str) -> bool {
    serde_json::from_str::<Value>(line).is_ok()
}
