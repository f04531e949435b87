//! Selects what a document asks for, with a hole for what its caller may not see.

use serde_json::{Map, Value, json};

use super::document::{Field, Selection};

/// Most nodes of one list.
const PAGE_NODES_MAX: usize = 100;

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
                    self.path.push(field.key.as_str().into());
                    let value = match self.cut(&whole[&field.name], field) {
                        Ok(value) => self.of(&value, &field.fields),
                        Err((kind, message)) => {
                            self.errors.push(error(self.text, kind, &self.path, &message));
                            Value::Null
                        }
                    };
                    self.path.pop();
                    told.insert(field.key.clone(), value);
                }
            }
        }
    }

    /// The part of a list that is asked for; which part, a document has to say.
    fn cut(&self, value: &Value, field: &Field) -> Result<Value, (&'static str, String)> {
        let Some(nodes) = value["nodes"].as_array() else { return Ok(value.clone()) };
        let name = &field.name;
        let number = |bound: &str| {
            let number = field.arguments.get(bound)?.value(self.variables).as_u64()?;
            usize::try_from(number).ok()
        };
        let (bound, number) = match (number("first"), number("last")) {
            (Some(first), None) => ("first", first),
            (None, Some(last)) => ("last", last),
            (Some(_), Some(_)) => {
                let told = format!(
                    "Passing both `first` and `last` to paginate the `{name}` connection is not supported."
                );
                return Err(("UNPROCESSABLE", told));
            }
            (None, None) => {
                let told = format!(
                    "You must provide a `first` or `last` value to properly paginate the `{name}` connection."
                );
                return Err(("MISSING_PAGINATION_BOUNDARIES", told));
            }
        };
        if let Some(other) = field.arguments.keys().find(|one| *one != bound) {
            let told = format!("This forge does not know the argument `{other}` of `{name}`");
            return Err(("UNPROCESSABLE", told));
        }
        if number > PAGE_NODES_MAX {
            let told = format!(
                "Requesting {number} records on the `{name}` connection exceeds the `{bound}` limit of {PAGE_NODES_MAX} records."
            );
            return Err(("EXCESSIVE_PAGINATION", told));
        }
        let (start, end) = match bound {
            "first" => (0, number.min(nodes.len())),
            _ => (nodes.len().saturating_sub(number), nodes.len()),
        };
        let mut told = value.clone();
        told["nodes"] = nodes[start..end].to_vec().into();
        told["pageInfo"] = json!({
            "hasNextPage": end < nodes.len(), "hasPreviousPage": start > 0,
            "endCursor": (end > start).then(|| end.to_string()),
        });
        Ok(told)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphql::document;

    /// What is told of a list of five, and of what is wrong.
    fn told(field: &str) -> (Value, Vec<Value>) {
        let text = format!("query A {{ {field} {{ totalCount nodes {{ n }} }} }}");
        let read = document::read(&text).expect("read");
        let variables = Map::new();
        let mut projection = Projection::new(&text, &variables);
        let list = connection((1..=5).map(|n| json!({ "n": n })).collect());
        let told = projection.of(&json!({ "list": list }), &read.fields);
        let wrong = projection.errors.into_iter().map(|mut one| one["message"].take());
        (told, wrong.collect())
    }

    #[test]
    fn lists_are_cut_at_either_end_with_their_total() {
        let nodes = |told: &Value| {
            let nodes = told["nodes"].as_array().cloned().unwrap_or_default();
            nodes.iter().map(|one| one["n"].clone()).collect::<Vec<_>>()
        };
        let (first, _) = told("list(first: 2)");
        assert_eq!(
            (nodes(&first["list"]), &first["list"]["totalCount"]),
            (vec![1.into(), 2.into()], &json!(5))
        );
        let (last, _) = told("newest: list(last: 2)");
        assert_eq!(
            (nodes(&last["newest"]), &last["newest"]["totalCount"]),
            (vec![4.into(), 5.into()], &json!(5))
        );
        assert_eq!(last.get("list"), None);
        assert_eq!(nodes(&told("list(last: 9)").0["list"]).len(), 5);
    }

    #[test]
    fn lists_without_one_bound_are_refused() {
        for (field, wrong) in [
            (
                "list",
                "You must provide a `first` or `last` value to properly paginate the `list` connection.",
            ),
            (
                "list(first: 1, last: 1)",
                "Passing both `first` and `last` to paginate the `list` connection is not supported.",
            ),
            (
                "list(last: 101)",
                "Requesting 101 records on the `list` connection exceeds the `last` limit of 100 records.",
            ),
            ("list(first: 1, after: 3)", "This forge does not know the argument `after` of `list`"),
        ] {
            assert_eq!(told(field), (json!({ "list": null }), vec![wrong.into()]), "{field}");
        }
    }
}
