//! An agent's own description of its protocol: JSON Schemas or OpenAPI, however they are nested.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::place::SchemaPlace;

/// How many nested references are followed.
const DEPTH_MAX: usize = 24;

/// A document with named definitions.
pub struct Described<'a> {
    definitions: Vec<&'a Map<String, Value>>,
    document: &'a Value,
}

/// One shape that a value may have.
#[derive(Debug, Clone, Default)]
pub struct Shape<'a> {
    /// Its fields.
    pub properties: BTreeMap<&'a str, &'a Value>,
    /// The required fields.
    pub required: BTreeSet<&'a str>,
}

impl<'a> Described<'a> {
    /// Takes a document with definitions in any of the usual places.
    #[must_use]
    pub fn of(document: &'a Value) -> Self {
        let places = ["/definitions", "/$defs", "/components/schemas"];
        let definitions = places.iter().filter_map(|at| document.pointer(at)?.as_object());
        Self { definitions: definitions.collect(), document }
    }

    fn named(&self, name: &str) -> Option<&'a Value> {
        self.definitions.iter().find_map(|all| all.get(name))
    }

    /// The shapes at a place; `None` if the place does not exist.
    #[must_use]
    pub fn at(&self, place: &SchemaPlace) -> Vec<Shape<'a>> {
        let Some(schema) = self.named(&place.name) else {
            return Vec::new();
        };
        let mut shapes = self.matching(schema, &place.filters);
        for (field, filters) in &place.steps {
            let inner = shapes.iter().filter_map(|shape| shape.properties.get(field.as_str()));
            let inner: Vec<&Value> = inner.copied().collect();
            let matching = inner.into_iter().flat_map(|one| self.matching(one, filters));
            shapes = matching.collect();
        }
        shapes
    }

    fn matching(&self, schema: &'a Value, filters: &[(String, String)]) -> Vec<Shape<'a>> {
        let mut shapes = self.shapes(schema, 0);
        shapes.retain(|shape| {
            filters.iter().all(|(field, value)| {
                let schema = shape.properties.get(field.as_str());
                schema.is_some_and(|schema| self.values(schema, 0).contains(value))
            })
        });
        shapes
    }

    /// The values of a field at a place, if the schema lists them: its kinds.
    #[must_use]
    pub fn kinds(&self, name: &str, field: &str) -> BTreeSet<String> {
        let shapes = self.named(name).map(|schema| self.shapes(schema, 0));
        let shapes = shapes.unwrap_or_default();
        let fields = shapes.iter().filter_map(|shape| shape.properties.get(field));
        fields.flat_map(|schema| self.values(schema, 0)).collect()
    }

    /// The names of the types that a value of this schema may have; empty if it may be anything.
    #[must_use]
    pub fn types(&self, schema: &'a Value) -> BTreeSet<String> {
        self.types_within(schema, 0).unwrap_or_default()
    }

    /// `None` for anything.
    fn types_within(&self, schema: &'a Value, depth: usize) -> Option<BTreeSet<String>> {
        let one = schema.as_object().filter(|_| depth < DEPTH_MAX)?;
        if let Some(inner) = self.referred(one) {
            return self.types_within(inner, depth + 1);
        }
        let named = match one.get("type") {
            Some(Value::String(name)) => Some(BTreeSet::from([name.clone()])),
            Some(Value::Array(names)) => {
                Some(names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            }
            _ => None,
        };
        let nullable = one.get("nullable") == Some(&Value::Bool(true));
        let of_value = |value: &Value| match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let constant = one.get("const").map(|value| BTreeSet::from([of_value(value).to_owned()]));
        let listed = alternatives(one).map(|all| {
            let types = all.iter().map(|inner| self.types_within(inner, depth + 1));
            let types: Option<Vec<_>> = types.collect();
            types.map(|types| types.into_iter().flatten().collect())
        });
        let all_of = one.get("allOf").and_then(Value::as_array);
        let all_of =
            all_of.and_then(|all| all.iter().find_map(|inner| self.types_within(inner, depth + 1)));
        let mut types = match (named, constant, listed) {
            (Some(named), _, _) => named,
            (_, Some(constant), _) => constant,
            (_, _, Some(listed)) => listed?,
            _ => all_of?,
        };
        types.extend(nullable.then(|| "null".to_owned()));
        Some(types)
    }

    fn referred(&self, schema: &Map<String, Value>) -> Option<&'a Value> {
        let reference = schema.get("$ref")?.as_str()?;
        self.document.pointer(reference.strip_prefix('#')?)
    }

    /// The texts that a value may be, if the schema lists them.
    fn values(&self, schema: &'a Value, depth: usize) -> BTreeSet<String> {
        let Some(one) = schema.as_object().filter(|_| depth < DEPTH_MAX) else {
            return BTreeSet::new();
        };
        if let Some(inner) = self.referred(one) {
            return self.values(inner, depth + 1);
        }
        let listed = one.get("enum").and_then(Value::as_array).into_iter().flatten();
        let written = listed.chain(one.get("const")).filter_map(Value::as_str);
        let inner = alternatives(one).into_iter().flatten();
        let deeper = inner.flat_map(|inner| self.values(inner, depth + 1));
        written.map(str::to_owned).chain(deeper).collect()
    }

    /// All shapes that an object of this schema may have, or the objects of a list.
    fn shapes(&self, schema: &'a Value, depth: usize) -> Vec<Shape<'a>> {
        let Some(one) = schema.as_object().filter(|_| depth < DEPTH_MAX) else {
            return Vec::new();
        };
        if let Some(inner) = self.referred(one) {
            return self.shapes(inner, depth + 1);
        }
        if let Some(items) = one.get("items") {
            return self.shapes(items, depth + 1);
        }
        let properties = one.get("properties").and_then(Value::as_object);
        let required = one.get("required").and_then(Value::as_array);
        let own = Shape {
            properties: properties
                .into_iter()
                .flatten()
                .map(|(name, schema)| (name.as_str(), schema))
                .collect(),
            required: required.into_iter().flatten().filter_map(Value::as_str).collect(),
        };
        let mut shapes = vec![own];
        for inner in one.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            shapes = both(&shapes, &self.shapes(inner, depth + 1));
        }
        if let Some(inner) = alternatives(one) {
            let inner = inner.iter().flat_map(|inner| self.shapes(inner, depth + 1));
            shapes = both(&shapes, &inner.collect::<Vec<_>>());
        }
        shapes
    }
}

fn alternatives(schema: &Map<String, Value>) -> Option<&Vec<Value>> {
    let all = schema.get("oneOf").or_else(|| schema.get("anyOf"));
    all.and_then(Value::as_array)
}

/// Every combination of one of these with one of those; only these if there are no others.
fn both<'a>(these: &[Shape<'a>], those: &[Shape<'a>]) -> Vec<Shape<'a>> {
    if those.is_empty() {
        return these.to_vec();
    }
    let mut all = Vec::new();
    for this in these {
        for that in those {
            let mut shape = this.clone();
            shape.properties.extend(&that.properties);
            shape.required.extend(&that.required);
            all.push(shape);
        }
    }
    all
}
