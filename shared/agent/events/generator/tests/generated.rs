//! The types in the sources are those that typify makes of the schemas.
#![allow(clippy::unwrap_used)]

use bobbin_agent_events_generator::{SCHEMAS, file_of, rust_of, schema_of};

#[test]
fn generated_types_match_schemas() {
    for name in SCHEMAS {
        let made = rust_of(&schema_of(name).unwrap()).unwrap();
        let stored = std::fs::read_to_string(file_of(name)).unwrap();
        let differs = made.lines().zip(stored.lines()).find(|(a, b)| a != b);
        assert!(
            made == stored,
            "{name}: the schema has changed since its types were made, first at {differs:?}: run `cargo run -p \
             bobbin-agent-events-generator`"
        );
    }
}

#[test]
fn schemas_accept_unknown_fields() {
    for name in SCHEMAS {
        let schema = schema_of(name).unwrap();
        for closed in ["additionalProperties", "anyOf", "oneOf", "\"enum\""] {
            assert!(!schema.contains(closed), "{name} has {closed}");
        }
    }
}
