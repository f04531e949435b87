//! How our schema of an agent differs from the agent's own description, or from its recorded output.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

use crate::described::{Described, Shape};
use crate::place::SchemaPlace;
use crate::recorded::RecordedValues;

/// A difference between our schema and an agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Drift {
    /// Something that we read would no longer decode.
    Breaks {
        /// Our definition, and the field of it.
        what: String,
        /// How they differ.
        why: String,
    },
    /// The agent has something that we do not read; it is kept as unknown.
    Unread {
        /// Where it has it.
        place: String,
        /// Its kinds, or its fields.
        names: Vec<String>,
    },
    /// The recorded output does not contain it, so it could not be compared.
    Unseen {
        /// Our definition.
        what: String,
    },
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Breaks { what, why } => write!(f, "breaks  {what}: {why}"),
            Self::Unread { place, names } => write!(f, "unread  {place}: {}", names.join(", ")),
            Self::Unseen { what } => write!(f, "unseen  {what}"),
        }
    }
}

/// A definition of ours.
struct OwnDefinition<'a> {
    name: &'a str,
    place: SchemaPlace,
    properties: &'a Map<String, Value>,
    required: BTreeSet<&'a str>,
}

impl<'a> OwnDefinition<'a> {
    fn all(schema: &'a Value) -> Vec<Self> {
        let definitions = schema.get("definitions").and_then(Value::as_object);
        let own = |(name, one): (&'a String, &'a Value)| {
            let required = one.get("required").and_then(Value::as_array);
            Some(Self {
                name,
                place: SchemaPlace::parse(one.get("x-source")?.as_str()?)?,
                properties: one.get("properties")?.as_object()?,
                required: required.into_iter().flatten().filter_map(Value::as_str).collect(),
            })
        };
        definitions.into_iter().flatten().filter_map(own).collect()
    }

    /// The types that a field is read as. One that may be absent may be null as well.
    fn types(&self, ours: &Described<'a>, field: &str, schema: &'a Value) -> BTreeSet<String> {
        let mut types = ours.types(schema);
        if !types.is_empty() && !self.required.contains(field) {
            types.insert("null".to_owned());
        }
        types
    }

    fn breaks(&self, field: &str, why: &str) -> Drift {
        let what = match field {
            "" => self.name.to_owned(),
            field => format!("{}.{field}", self.name),
        };
        let why = why.to_owned();
        Drift::Breaks { what, why }
    }
}

/// The kinds by which we choose a definition: the agent's definition, its field, and the values of that field that we
/// know.
fn kinds<'a>(schema: &'a Value) -> Vec<(&'a str, &'a str, BTreeSet<String>)> {
    let kind = |(at, names): (&'a String, &'a Value)| {
        let (name, field) = at.split_once('.')?;
        let names = names.as_array()?.iter().filter_map(Value::as_str);
        Some((name, field, names.map(str::to_owned).collect()))
    };
    let kinds = schema.get("x-kinds").and_then(Value::as_object);
    kinds.into_iter().flatten().filter_map(kind).collect()
}

/// Compares our schema with an agent's description of itself.
#[must_use]
pub fn with_description(schema: &Value, document: &Value) -> Vec<Drift> {
    let described = Described::of(document);
    let ours = Described::of(schema);
    let mut found = Vec::new();
    for (name, field, own) in kinds(schema) {
        let theirs = described.kinds(name, field);
        let place = format!("{name}.{field}");
        found.extend(own.difference(&theirs).map(|kind| Drift::Breaks {
            what: place.clone(),
            why: format!("{kind} is not described"),
        }));
        let names: Vec<String> = theirs.difference(&own).cloned().collect();
        found.extend((!names.is_empty()).then_some(Drift::Unread { place, names }));
    }
    for own in OwnDefinition::all(schema) {
        let shapes = described.at(&own.place);
        if shapes.is_empty() {
            found.push(own.breaks("", "there is no such place"));
        }
        for (field, schema) in own.properties.iter().filter(|_| !shapes.is_empty()) {
            let required = own.required.contains(field.as_str());
            let theirs = shapes.iter().filter_map(|shape| shape.properties.get(field.as_str()));
            let theirs: Vec<&Value> = theirs.copied().collect();
            let always = |shape: &Shape<'_>| shape.required.contains(field.as_str());
            if theirs.is_empty() {
                found.push(own.breaks(field, "is not described"));
            } else if required && !shapes.iter().all(always) {
                found.push(own.breaks(field, "may be absent"));
            }
            let we = own.types(&ours, field, schema);
            let differs = theirs.iter().filter_map(|it| differ(&we, &described.types(it)));
            found.extend(differs.map(|why| own.breaks(field, &why)));
        }
        let fields = shapes.iter().flat_map(|shape| shape.properties.keys());
        let unread = fields.filter(|it| !own.properties.contains_key(**it));
        let unread = unread.map(|it| (*it).to_owned()).collect();
        found.extend(unread_fields(own.name, unread));
    }
    found.sort();
    found.dedup();
    found
}

/// Compares our schema with an agent's recorded output.
#[must_use]
pub fn with_recorded(schema: &Value, lines: &[Value]) -> Vec<Drift> {
    let recorded = RecordedValues::of(lines);
    let ours = Described::of(schema);
    let mut found = Vec::new();
    for (name, field, own) in kinds(schema) {
        let place = SchemaPlace { name: name.to_owned(), filters: Vec::new(), steps: Vec::new() };
        let objects = recorded.at(&place);
        let theirs = objects.iter().filter_map(|one| one.get(field)?.as_str());
        let theirs: BTreeSet<String> = theirs.map(str::to_owned).collect();
        let names: Vec<String> = theirs.difference(&own).cloned().collect();
        let place = format!("{name}.{field}");
        found.extend((!names.is_empty()).then_some(Drift::Unread { place, names }));
    }
    for own in OwnDefinition::all(schema) {
        let objects = recorded.at(&own.place);
        if objects.is_empty() {
            let what = own.name.to_owned();
            found.push(Drift::Unseen { what });
        }
        let mut unread = BTreeSet::new();
        for object in objects {
            for (field, schema) in own.properties {
                match object.get(field) {
                    None if own.required.contains(field.as_str()) => {
                        found.push(own.breaks(field, "is absent"));
                    }
                    None => {}
                    Some(value) => {
                        let they = BTreeSet::from([type_of(value).to_owned()]);
                        let differ = differ(&own.types(&ours, field, schema), &they);
                        found.extend(differ.map(|why| own.breaks(field, &why)));
                    }
                }
            }
            let fields = object.keys().filter(|it| !own.properties.contains_key(*it));
            unread.extend(fields.cloned());
        }
        found.extend(unread_fields(own.name, unread));
    }
    found.sort();
    found.dedup();
    found
}

fn unread_fields(name: &str, unread: BTreeSet<String>) -> Option<Drift> {
    let place = name.to_owned();
    let names: Vec<String> = unread.into_iter().collect();
    (!names.is_empty()).then_some(Drift::Unread { place, names })
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Why a value of the agent's types may not fit ours. No types means anything.
fn differ(ours: &BTreeSet<String>, theirs: &BTreeSet<String>) -> Option<String> {
    let takes = |they: &String| {
        ours.is_empty() || ours.contains(they) || (they == "integer" && ours.contains("number"))
    };
    let others: Vec<String> = theirs.iter().filter(|it| !takes(it)).cloned().collect();
    let is_wider = theirs.is_empty() && !ours.is_empty();
    let words = |types: &BTreeSet<String>| types.iter().cloned().collect::<Vec<_>>().join(" or ");
    match (is_wider, others.is_empty()) {
        (true, _) => Some(format!("may be anything, and is read as {}", words(ours))),
        (false, false) => {
            Some(format!("may be {}, and is read as {}", others.join(" or "), words(ours)))
        }
        (false, true) => None,
    }
}
