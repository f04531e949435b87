//! Hints of the forge: a webhook says that something may have changed there. A hint is never a fact: it may be late,
//! repeated, captured or lost, so the worker looks at the forge before it changes anything.

use serde::{Deserialize, Serialize};

/// Look at something of the forge.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ForgeHint {
    /// Made of the event and its subject; also the deduplication id, so that a captured webhook that is sent a thousand
    /// times is one message.
    pub id: String,
    /// Where to look.
    pub about: ForgeSubject,
}

/// What a hint is about. Ids are the forge's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum ForgeSubject {
    /// An installation of the app, and the repositories that it includes.
    Installation {
        /// The installation.
        installation: u64,
    },
    /// What a person allows the app.
    Person {
        /// The person.
        person: u64,
    },
}

impl ForgeSubject {
    fn named(self) -> (&'static str, u64) {
        match self {
            Self::Installation { installation } => ("installation", installation),
            Self::Person { person } => ("person", person),
        }
    }
}

impl ForgeHint {
    /// The hint of an event, such as `deleted`.
    #[must_use]
    pub fn of(event: &'static str, about: ForgeSubject) -> Self {
        let (kind, id) = about.named();
        Self { id: format!("forge-{kind}-{id}-{event}"), about }
    }

    /// The FIFO message group: hints about one subject are looked into one after the other.
    #[must_use]
    pub fn group(&self) -> String {
        let (kind, id) = self.about.named();
        format!("forge:{kind}:{id}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_hint_has_the_same_id() {
        let about = ForgeSubject::Installation { installation: 7 };
        let ended = ForgeHint::of("deleted", about);
        assert_eq!(ended, ForgeHint::of("deleted", about));
        assert_eq!(ended.id, "forge-installation-7-deleted");
        assert_eq!(ended.group(), "forge:installation:7");
        let person = ForgeHint::of("revoked", ForgeSubject::Person { person: 7 });
        assert_eq!(person.group(), "forge:person:7");
    }
}
