//! Fields of a stored item that its reader does not know, kept so that they can be put back when the item is written.
//!
//! Found by comparison: the item as read, minus the reader's own form of it. So it covers fields at any depth, and no
//! type has to mention it. A field stays with the object that it was found in, as long as that is the same object: an
//! object with another `id` (or another tag) is a different one. Elements of lists are recognised by their `id` too, or
//! by being unchanged.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

/// Fields that identify an object: ids, and the tags of variants.
const IDENTITY: [&str; 8] =
    ["id", "turn", "message", "holder", "stage", "outcome", "about", "change"];

/// The unknown rest of a stored item. The default, for an item made here, is empty.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct UnknownFields {
    schema: u32,
    rest: Option<Box<Rest>>,
}

/// Its content is unknown, so it is never shown.
impl fmt::Debug for UnknownFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UnknownFields({} fields)", self.fields())
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Rest {
    /// The reader does not know this value at all.
    Whole(Value),
    /// Unknown fields of the object with this identity.
    Fields { of: Vec<(&'static str, String)>, fields: BTreeMap<String, Rest> },
    /// Unknown fields of these elements, each with its known form.
    Elements(Vec<(Value, Rest)>),
}

impl UnknownFields {
    /// The fields of `raw` that `known`, the reader's own form of it, does not have.
    pub(super) fn of(schema: u32, raw: &Value, known: &Value) -> Self {
        Self { schema, rest: less(raw, known).map(Box::new) }
    }

    /// The shape that the item was read in, if that is newer than the one that this build writes; otherwise 0.
    #[must_use]
    pub const fn schema(&self) -> u32 {
        self.schema
    }

    /// Whether everything was known.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_none()
    }

    /// Number of unknown fields.
    #[must_use]
    pub fn fields(&self) -> usize {
        self.rest.as_deref().map_or(0, count)
    }

    /// Puts the unknown fields back into the item to be written.
    pub(super) fn put_back(&self, whole: &mut Value) {
        if let Some(rest) = &self.rest {
            add(whole, rest);
        }
    }
}

fn count(rest: &Rest) -> usize {
    match rest {
        Rest::Whole(_) => 1,
        Rest::Fields { fields, .. } => fields.values().map(count).sum(),
        Rest::Elements(elements) => elements.iter().map(|(_, rest)| count(rest)).sum(),
    }
}

fn less(raw: &Value, known: &Value) -> Option<Rest> {
    match (raw, known) {
        (Value::Object(raw), Value::Object(known)) => {
            let fields: BTreeMap<String, Rest> = raw
                .iter()
                .filter_map(|(name, value)| {
                    let rest = match known.get(name) {
                        Some(known) => less(value, known),
                        // A null in an unknown field counts as absent.
                        None if value.is_null() => None,
                        None => Some(Rest::Whole(value.clone())),
                    };
                    Some((name.clone(), rest?))
                })
                .collect();
            let of = identity(known);
            (!fields.is_empty()).then_some(Rest::Fields { of, fields })
        }
        // A list that the reader has sorted anew holds scalars.
        (Value::Array(raw), Value::Array(known)) if raw.len() == known.len() => {
            let elements: Vec<(Value, Rest)> = raw
                .iter()
                .zip(known)
                .filter_map(|(raw, known)| Some((known.clone(), less(raw, known)?)))
                .collect();
            (!elements.is_empty()).then_some(Rest::Elements(elements))
        }
        _ => None,
    }
}

fn add(whole: &mut Value, rest: &Rest) {
    match (whole, rest) {
        (Value::Object(whole), Rest::Fields { of, fields }) if identity(whole) == *of => {
            for (name, rest) in fields {
                match (whole.get_mut(name), rest) {
                    (Some(value), rest) => add(value, rest),
                    (None, Rest::Whole(value)) => {
                        whole.insert(name.clone(), value.clone());
                    }
                    // The object that it was in is gone.
                    (None, _) => {}
                }
            }
        }
        (Value::Array(whole), Rest::Elements(elements)) => {
            for (was, rest) in elements {
                let same = |now: &&mut Value| match (&**now, was) {
                    (Value::Object(now), Value::Object(was)) if !identity(was).is_empty() => {
                        identity(now) == identity(was)
                    }
                    (now, was) => now == was,
                };
                if let Some(now) = whole.iter_mut().find(same) {
                    add(now, rest);
                }
            }
        }
        _ => {}
    }
}

fn identity(object: &Map<String, Value>) -> Vec<(&'static str, String)> {
    let named = |name: &&'static str| Some((*name, object.get(*name)?.as_str()?.to_owned()));
    IDENTITY.iter().filter_map(named).collect()
}
