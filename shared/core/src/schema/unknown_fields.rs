//! What a reader does not know of a stored thing, so that it can be put back when the thing is written.
//!
//! Found by comparison: the thing as it was read, less what the reader's own form of it says. So it covers fields at any
//! depth without a word in any type. A field stays with the object that it was found in, for as long as that is the same
//! object: what has another `id` (or another tag) is something else. Elements of lists are known by their `id` too, or by
//! being unchanged.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

/// Fields that say which object an object is: ids, and the tags of variants.
const IDENTITY: [&str; 8] =
    ["id", "turn", "message", "holder", "stage", "outcome", "about", "change"];

/// The unknown rest of a stored thing. The default is that of something made here: nothing.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct UnknownFields {
    schema: u32,
    rest: Option<Box<Rest>>,
}

/// Nobody knows what is in it, so it is never shown.
impl fmt::Debug for UnknownFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UnknownFields({} fields)", self.fields())
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Rest {
    /// The reader knows nothing of this value.
    Whole(Value),
    /// Unknown fields of the object with this identity.
    Fields { of: Vec<(&'static str, String)>, fields: BTreeMap<String, Rest> },
    /// Unknown fields of these elements, each as it was known.
    Elements(Vec<(Value, Rest)>),
}

impl UnknownFields {
    /// What `raw` holds that `known`, the reader's own form of it, does not.
    pub(super) fn of(schema: u32, raw: &Value, known: &Value) -> Self {
        Self { schema, rest: less(raw, known).map(Box::new) }
    }

    /// The shape that the thing was read in, where it is beyond the one that this build writes; 0 otherwise.
    #[must_use]
    pub const fn schema(&self) -> u32 {
        self.schema
    }

    /// Whether everything was known.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_none()
    }

    /// How many fields are not known.
    #[must_use]
    pub fn fields(&self) -> usize {
        self.rest.as_deref().map_or(0, count)
    }

    /// Puts it back into what is about to be written.
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
                        // Nothing by name is nothing.
                        None if value.is_null() => None,
                        None => Some(Rest::Whole(value.clone())),
                    };
                    Some((name.clone(), rest?))
                })
                .collect();
            let of = identity(known);
            (!fields.is_empty()).then_some(Rest::Fields { of, fields })
        }
        // A list that the reader has ordered anew holds scalars.
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
                    // What it stood in is gone.
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
