//! Short accessors for JSON documents, for code that handles the platforms' own objects.

use serde_json::{Map, Value};

/// Accessors that treat a missing field, `null` and a wrong type alike.
pub trait JsonFields {
    fn str(&self, field: &str) -> &str;
    /// The text of a field, or `otherwise` if it is missing or `null`.
    fn str_or<'a>(&'a self, field: &str, otherwise: &'a str) -> &'a str;
    fn int(&self, field: &str) -> u64;
    fn flag(&self, field: &str) -> bool;
    fn list(&self, field: &str) -> &[Value];
    /// Present and not `null`.
    fn has(&self, field: &str) -> bool;
}

impl JsonFields for Value {
    fn str(&self, field: &str) -> &str {
        self[field].as_str().unwrap_or_default()
    }

    fn str_or<'a>(&'a self, field: &str, otherwise: &'a str) -> &'a str {
        if self.has(field) { self.str(field) } else { otherwise }
    }

    fn int(&self, field: &str) -> u64 {
        self[field].as_u64().unwrap_or_default()
    }

    fn flag(&self, field: &str) -> bool {
        self[field].as_bool().unwrap_or_default()
    }

    fn list(&self, field: &str) -> &[Value] {
        self[field].as_array().map_or(&[], Vec::as_slice)
    }

    fn has(&self, field: &str) -> bool {
        !self[field].is_null()
    }
}

/// The object's fields; empty for other values.
pub fn fields(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// UTF-16 units: the strictest meaning of "characters".
pub fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Appends to an array field, creating it if missing.
pub fn push(object: &mut Value, field: &str, entry: Value) {
    match object[field].as_array_mut() {
        Some(list) => list.push(entry),
        None => object[field] = Value::Array(vec![entry]),
    }
}

/// The text of a field that may be a number or a string (query and form values are strings; JSON has either).
pub fn loose_text(value: &Value, field: &str) -> String {
    match &value[field] {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        _ => value.str(field).to_owned(),
    }
}
