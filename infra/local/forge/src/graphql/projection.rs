//! What a document asks for of everything that could be told, with a hole for what its caller may not see.

use serde_json::{Map, Value, json};

use super::document::{Field, Selection};

/// Stands where a caller lacks a right.
const FORBIDDEN: &str = "\u{0}forbidden";

pub(super) fn forbidden() -> Value {
    FORBIDDEN.into()
}

/// A list with its length.
pub(super) fn connection(nodes: Vec<Value>) -> Value {
    json!({ "totalCount": nodes.len(), "nodes": nodes })
}

/// What is asked for, and an error for each hole.
pub(super) struct Projection<'a> {
    pub(super) variables: &'a Map<String, Value>,
    /// The document as it was sent.
    pub(super) text: &'a str,
    pub(super) errors: Vec<Value>,
    path: Vec<Value>,
}

impl<'a> Projection<'a> {
    pub(super) fn new(text: &'a str, variables: &'a Map<String, Value>) -> Self {
        Self { variables, text, errors: Vec::new(), path: Vec::new() }
    }

    pub(super) fn of(&mut self, whole: &Value, selected: &[Selection]) -> Value {
        match whole {
            Value::String(text) if text == FORBIDDEN => {
                let told = error(self.text, "FORBIDDEN", &self.path, NOT_ACCESSIBLE);
                self.errors.push(told);
                Value::Null
            }
            Value::Array(items) => {
                let told = items.iter().enumerate().map(|(at, item)| {
                    self.path.push(at.into());
                    let told = self.of(item, selected);
                    self.path.pop();
                    told
                });
                told.collect()
            }
            Value::Object(_) => {
                let mut told = Map::new();
                self.fields(whole, selected, &mut told);
                Value::Object(told)
            }
            plain => plain.clone(),
        }
    }

    fn fields(&mut self, whole: &Value, selected: &[Selection], told: &mut Map<String, Value>) {
        for one in selected {
            match one {
                Selection::On(kind, fields) if whole["__typename"] == *kind => {
                    self.fields(whole, fields, told);
                }
                Selection::On(..) => {}
                Selection::Field(field) => {
                    self.path.push(field.name.as_str().into());
                    let value = self.cut(&whole[&field.name], field);
                    let value = self.of(&value, &field.fields);
                    self.path.pop();
                    told.insert(field.name.clone(), value);
                }
            }
        }
    }

    /// The part of a list that is asked for.
    fn cut(&self, value: &Value, field: &Field) -> Value {
        let Some(nodes) = value["nodes"].as_array() else { return value.clone() };
        let number = |name: &str| {
            let number = field.arguments.get(name)?.value(self.variables).as_u64()?;
            usize::try_from(number).ok()
        };
        let (start, end) = match (number("first"), number("last")) {
            (Some(first), _) => (0, first.min(nodes.len())),
            (None, Some(last)) => (nodes.len().saturating_sub(last), nodes.len()),
            (None, None) => (0, nodes.len()),
        };
        let mut told = value.clone();
        told["nodes"] = nodes[start..end].to_vec().into();
        told["pageInfo"] = json!({
            "hasNextPage": end < nodes.len(), "hasPreviousPage": start > 0,
            "endCursor": (end > start).then(|| end.to_string()),
        });
        told
    }
}

/// What an app's token without a right is told.
pub(super) const NOT_ACCESSIBLE: &str = "Resource not accessible by integration";

/// An error as GitHub tells it, with the place of its field in the document.
pub(super) fn error(text: &str, kind: &str, path: &[Value], message: &str) -> Value {
    let name = path.iter().rev().find_map(Value::as_str).unwrap_or_default();
    let before = &text[..text.find(name).unwrap_or_default()];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
    json!({
        "type": kind, "path": path, "extensions": { "saml_failure": false },
        "locations": [{ "line": line, "column": column }], "message": message,
    })
}
