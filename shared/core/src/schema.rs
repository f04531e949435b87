//! Versions of all stored and queued data, so that old and new workers can run side by side.
//!
//! Each item is one JSON object with the number of its shape in it (`schema`; without one it is 1). Promised: an item
//! with a newer shape than this build reads is never misread, never overwritten and never dropped
//! ([`Unreadable::Newer`]; its message waits for a newer worker). When this build writes an item back, it keeps fields
//! that it does not know ([`UnknownFields`]), and the number of a shape that it reads but would not write itself. How
//! to change a shape is in `docs/ARCHITECTURE.md`. Deliberately absent: conversions between shapes, which belong to the
//! type that has changed.

mod unknown_fields;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use unknown_fields::UnknownFields;

use crate::base::limits::RetryLimits;

/// The name of the field, and of the table's attribute for an item that is not JSON.
pub const FIELD: &str = "schema";
/// The event that is logged and counted when an item with a newer shape is met.
pub const NEWER: &str = "schema.newer";

/// Kinds of stored and queued data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shape {
    /// The record of a thread.
    Record,
    /// The record of a sandbox.
    Sandbox,
    /// A control flag beside the record.
    Mark,
    /// A turn in the ledger.
    Entry,
    /// The file changes of a turn; text, with the number beside it.
    Patch,
    /// The settings of a tenant.
    Settings,
    /// Suggestions for a tenant's people.
    Catalogue,
    /// The breaker of a provider.
    Breaker,
    /// The account at a provider that holds the stack's sandboxes.
    Account,
    /// A link for entering a key, or for signing in.
    Setup,
    /// What a sign-in brought, with its link.
    SignIn,
    /// The account at the forge that a person connected.
    Linked,
    /// State that a delivery saves for the next one of its message.
    Parked,
    /// The body of a queued message, wake-ups included.
    Body,
}

impl Shape {
    /// All kinds.
    pub const ALL: [Self; 14] = [
        Self::Record,
        Self::Sandbox,
        Self::Mark,
        Self::Entry,
        Self::Patch,
        Self::Settings,
        Self::Catalogue,
        Self::Breaker,
        Self::Account,
        Self::Setup,
        Self::SignIn,
        Self::Linked,
        Self::Parked,
        Self::Body,
    ];

    /// Its name in texts and in file names.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Sandbox => "sandbox",
            Self::Mark => "mark",
            Self::Entry => "entry",
            Self::Patch => "patch",
            Self::Settings => "settings",
            Self::Catalogue => "catalogue",
            Self::Breaker => "breaker",
            Self::Account => "account",
            Self::Setup => "setup",
            Self::SignIn => "sign-in",
            Self::Linked => "linked",
            Self::Parked => "parked",
            Self::Body => "body",
        }
    }

    /// The newest number that this build reads. The first step of a change raises it.
    #[must_use]
    pub const fn reads(self) -> u32 {
        self.versions().reads
    }

    /// The number that this build writes. The second step of a change raises it, once no worker is left that cannot
    /// read it.
    #[must_use]
    pub const fn writes(self) -> u32 {
        self.versions().writes
    }

    /// A change gives its shape a line of its own here.
    const fn versions(self) -> Versions {
        match self {
            Self::Record
            | Self::Sandbox
            | Self::Mark
            | Self::Entry
            | Self::Patch
            | Self::Settings
            | Self::Catalogue
            | Self::Breaker
            | Self::Account
            | Self::Setup
            | Self::SignIn
            | Self::Linked
            | Self::Parked
            | Self::Body => Versions { reads: 1, writes: 1 },
        }
    }

    /// Whether this build reads an item with this number.
    ///
    /// # Errors
    /// [`Unreadable::Newer`].
    pub fn admit(self, schema: u32) -> Result<(), Unreadable> {
        self.versions().admit(self, schema)
    }
}

/// The newest number that a build reads, and the one that it writes.
#[derive(Debug, Clone, Copy)]
struct Versions {
    reads: u32,
    writes: u32,
}

impl Versions {
    fn admit(self, shape: Shape, schema: u32) -> Result<(), Unreadable> {
        if schema > self.reads {
            return Err(Unreadable::Newer { shape, schema });
        }
        Ok(())
    }
}

const _: () = {
    let mut at = 0;
    while at < Shape::ALL.len() {
        let shape = Shape::ALL[at];
        // Two steps, one after the other: the previous build can read what this one writes.
        assert!(shape.writes() <= shape.reads() && shape.reads() <= shape.writes() + 1);
        at += 1;
    }
};

/// Why an item cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// A newer worker wrote it: it is left alone until such a worker handles it.
    #[error(
        "the {word} has schema {schema}, but this worker reads schemas up to {reads}: it waits for a newer worker",
        word = shape.word(), reads = shape.reads()
    )]
    Newer {
        /// The kind of item.
        shape: Shape,
        /// The number of its shape.
        schema: u32,
    },
    /// It is damaged, and a retry cannot help.
    #[error("the {word} cannot be read: {seen}", word = shape.word())]
    Damaged {
        /// The kind of item.
        shape: Shape,
        /// The decoder's message.
        seen: String,
    },
}

impl From<Unreadable> for String {
    fn from(unreadable: Unreadable) -> Self {
        unreadable.to_string()
    }
}

fn numbered(shape: Shape, number: Option<Value>) -> Result<u32, Unreadable> {
    match number {
        None => Ok(1),
        Some(number) => number
            .as_u64()
            .and_then(|number| u32::try_from(number).ok())
            .filter(|number| *number > 0)
            .ok_or_else(|| damaged(shape, format!("{FIELD} is not a schema number"))),
    }
}

fn damaged(shape: Shape, seen: impl ToString) -> Unreadable {
    Unreadable::Damaged { shape, seen: seen.to_string() }
}

/// Reads an item, with the fields that this build does not know.
///
/// # Errors
/// [`Unreadable`].
pub fn read<T>(shape: Shape, text: &str) -> Result<(T, UnknownFields), Unreadable>
where
    T: DeserializeOwned + Serialize,
{
    read_by(shape, shape.versions(), text)
}

fn read_by<T>(
    shape: Shape,
    versions: Versions,
    text: &str,
) -> Result<(T, UnknownFields), Unreadable>
where
    T: DeserializeOwned + Serialize,
{
    let mut raw: Value = serde_json::from_str(text).map_err(|e| damaged(shape, e))?;
    let Some(fields) = raw.as_object_mut() else {
        return Err(damaged(shape, "it is not an object"));
    };
    let schema = numbered(shape, fields.remove(FIELD))?;
    // Checked before anything else: a newer shape may give the same fields another meaning.
    versions.admit(shape, schema)?;
    let value: T = T::deserialize(&raw).map_err(|e| damaged(shape, e))?;
    let known = serde_json::to_value(&value).map_err(|e| damaged(shape, e))?;
    // A number that this build would write itself need not be kept.
    let beyond = if schema > versions.writes { schema } else { 0 };
    let unknown = UnknownFields::of(beyond, &raw, &known);
    Ok((value, unknown))
}

/// The stored form of an item: the known fields, and the kept ones.
///
/// # Errors
/// The encoder's error, for an item without a JSON form.
pub fn write<T: Serialize>(
    shape: Shape,
    value: &T,
    unknown: &UnknownFields,
) -> Result<String, serde_json::Error> {
    write_by(shape.versions(), value, unknown)
}

fn write_by<T: Serialize>(
    versions: Versions,
    value: &T,
    unknown: &UnknownFields,
) -> Result<String, serde_json::Error> {
    #[derive(Serialize)]
    struct Numbered<'a, T> {
        schema: u32,
        #[serde(flatten)]
        value: &'a T,
    }
    let schema = unknown.schema().max(versions.writes);
    if unknown.is_empty() {
        return serde_json::to_string(&Numbered { schema, value });
    }
    let mut whole = serde_json::to_value(Numbered { schema, value })?;
    unknown.put_back(&mut whole);
    serde_json::to_string(&whole)
}

/// How long to delay a message that this worker is too old for, by its deliveries (from 1). Longer each time, so that
/// the queue's receive count lasts for hours: a deployment takes minutes.
#[must_use]
pub fn wait_ms(limits: &RetryLimits, receive: u32) -> u64 {
    limits.newer_ms.saturating_mul(1 << receive.saturating_sub(1).min(16)).min(limits.newer_ms_max)
}

#[cfg(test)]
mod tests;
