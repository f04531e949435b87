//! Reads properties and reports those that were not read.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::intrinsic::text;

/// Properties without effect: by kind, property and reason, their locations.
#[derive(Debug, Default)]
pub(crate) struct Unhonoured(BTreeMap<(String, String, String), BTreeSet<String>>);

impl Unhonoured {
    pub(crate) fn add(&mut self, kind: &str, property: &str, location: &str, reason: &str) {
        let key = (kind.to_owned(), property.to_owned(), reason.to_owned());
        self.0.entry(key).or_default().insert(location.to_owned());
    }

    /// One line per property.
    pub(crate) fn lines(self) -> Vec<String> {
        self.0
            .into_iter()
            .map(|((kind, property, reason), locations)| {
                let locations: Vec<String> =
                    locations.into_iter().filter(|location| !location.is_empty()).collect();
                let mut line = kind;
                if !property.is_empty() {
                    line = format!("{line} {property}");
                }
                if !locations.is_empty() {
                    line = format!("{line} ({})", locations.join(", "));
                }
                format!("{line}: {reason}")
            })
            .collect()
    }
}

/// Properties without meaning on a laptop, and why. Other unread ones are reported as unknown.
const WITHOUT_EFFECT: [(&str, &str, &str); 11] = [
    ("AWS::DynamoDB::Table", "BillingMode", "nothing is billed or throttled"),
    ("AWS::DynamoDB::Table", "PointInTimeRecoverySpecification", "no backups are made"),
    ("AWS::DynamoDB::Table", "SSESpecification", "the file is not encrypted"),
    ("AWS::SQS::Queue", "SqsManagedSseEnabled", "the file is not encrypted"),
    ("AWS::KMS::Key", "KeyPolicy", "policies are not enforced, every call is allowed"),
    ("AWS::KMS::Key", "EnableKeyRotation", "the material is not rotated"),
    ("AWS::KMS::Key", "PendingWindowInDays", "no key is deleted here"),
    ("AWS::Serverless::Function", "Role", "roles are not enforced, every call is allowed"),
    ("AWS::Serverless::Function", "MemorySize", "passed to the function, not enforced"),
    ("AWS::Serverless::Function", "LoggingConfig", "lines go to the engine's own output"),
    ("AWS::Serverless::Function", "EventInvokeConfig", "no invocation is repeated"),
];

/// The properties of a resource, or some of them.
pub(crate) struct Properties<'a> {
    kind: String,
    location: String,
    left: Map<String, Value>,
    unhonoured: &'a mut Unhonoured,
}

impl<'a> Properties<'a> {
    pub(crate) fn new(
        kind: &str,
        location: &str,
        value: Value,
        unhonoured: &'a mut Unhonoured,
    ) -> Result<Self, String> {
        let left = match value {
            Value::Object(left) => left,
            Value::Null => Map::new(),
            _ => return Err(format!("the properties of {kind} are not a map")),
        };
        Ok(Self { kind: kind.to_owned(), location: location.to_owned(), left, unhonoured })
    }

    /// A nested property.
    pub(crate) fn part(&mut self, name: &str) -> Result<Option<Properties<'_>>, String> {
        let Some(value) = self.left.remove(name) else {
            return Ok(None);
        };
        let kind = format!("{} {name}", self.kind);
        Properties::new(&kind, &self.location, value, self.unhonoured).map(Some)
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.left.remove(name)
    }

    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        self.take(name).map(|value| text(&value))
    }

    pub(crate) fn number(&mut self, name: &str) -> Result<Option<u64>, String> {
        self.text(name)
            .map(|text| text.parse().map_err(|_| format!("{name} is not a whole number")))
            .transpose()
    }

    pub(crate) fn read<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, String> {
        self.take(name)
            .map(|value| serde_json::from_value(value).map_err(|error| format!("{name}: {error}")))
            .transpose()
    }

    /// Takes properties that do not affect behaviour, or that the `functions` setting replaces.
    pub(crate) fn pass(&mut self, names: &[&str]) {
        for name in names {
            self.left.remove(*name);
        }
    }

    /// Reports a property that was read but is not fully supported.
    pub(crate) fn name_unhonoured(&mut self, name: &str, reason: &str) {
        self.unhonoured.add(&self.kind, name, &self.location, reason);
    }

    /// Collects what has no effect.
    pub(crate) fn unhonoured(&mut self) -> &mut Unhonoured {
        self.unhonoured
    }

    /// All remaining properties.
    pub(crate) fn rest(&mut self) -> Map<String, Value> {
        std::mem::take(&mut self.left)
    }

    /// Reports unread properties.
    pub(crate) fn end(self) {
        for name in self.left.keys() {
            let known = WITHOUT_EFFECT
                .iter()
                .find(|(kind, property, _)| *kind == self.kind && property == name);
            let reason = known.map_or("not known to this engine", |(.., reason)| reason);
            self.unhonoured.add(&self.kind, name, &self.location, reason);
        }
    }
}

/// Why a property of a kind has no effect, for properties that are still passed on.
pub(crate) fn reason(kind: &str, property: &str) -> Option<&'static str> {
    WITHOUT_EFFECT
        .iter()
        .find(|(known, name, _)| *known == kind && *name == property)
        .map(|(.., reason)| *reason)
}
