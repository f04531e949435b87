//! The recorded output of an agent that does not describe itself.

use serde_json::{Map, Value};

use crate::place::SchemaPlace;

/// How many nested values are visited.
const DEPTH_MAX: usize = 24;

/// Recorded values.
pub struct RecordedValues<'a> {
    lines: &'a [Value],
}

impl<'a> RecordedValues<'a> {
    /// Takes recorded values, one per line.
    #[must_use]
    pub const fn of(lines: &'a [Value]) -> Self {
        Self { lines }
    }

    /// The objects at a place. `Line` is every line, `Block` every object in a message's content.
    #[must_use]
    pub fn at(&self, place: &SchemaPlace) -> Vec<&'a Map<String, Value>> {
        let mut objects = match place.name.as_str() {
            "Block" => self.lines.iter().flat_map(|line| blocks(line, 0)).collect(),
            _ => self.lines.iter().filter_map(Value::as_object).collect(),
        };
        keep(&mut objects, &place.filters);
        for (field, filters) in &place.steps {
            let inner = objects.iter().filter_map(|one| one.get(field));
            objects = inner.flat_map(objects_of).collect();
            keep(&mut objects, filters);
        }
        objects
    }
}

fn keep(objects: &mut Vec<&Map<String, Value>>, filters: &[(String, String)]) {
    objects.retain(|one| {
        filters.iter().all(|(field, value)| one.get(field).and_then(Value::as_str) == Some(value))
    });
}

/// An object, or those of a list.
fn objects_of(value: &Value) -> Vec<&Map<String, Value>> {
    match value {
        Value::Object(one) => vec![one],
        Value::Array(all) => all.iter().filter_map(Value::as_object).collect(),
        _ => Vec::new(),
    }
}

fn blocks(value: &Value, depth: usize) -> Vec<&Map<String, Value>> {
    if depth > DEPTH_MAX {
        return Vec::new();
    }
    match value {
        Value::Object(one) => {
            let own = one.get("content").map(objects_of).unwrap_or_default();
            let deeper = one.values().flat_map(|inner| blocks(inner, depth + 1));
            own.into_iter().chain(deeper).collect()
        }
        Value::Array(all) => all.iter().flat_map(|inner| blocks(inner, depth + 1)).collect(),
        _ => Vec::new(),
    }
}
