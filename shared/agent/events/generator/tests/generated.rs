//! The types in the sources are those that typify makes of the schemas.
#![allow(clippy::unwrap_used)]

use bobbin_agent_events_generator::{SCHEMAS, file_of, rust_of, schema_of};

#[test]
fn the_types_in_the_sources_are_what_typify_makes_of_the_schemas() {
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
fn a_schema_is_open_so_that_a_field_of_the_next_version_does_not_break_reading() {
    for name in SCHEMAS {
        let schema = schema_of(name).unwrap();
        for closed in ["additionalProperties", "anyOf", "oneOf", "\"enum\""] {
            assert!(!schema.contains(closed), "{name} has {closed}");
        }
    }
}
