//! The account of a provider in which the stack's sandboxes are, and whether the one behind the present key or settings is the
//! same. Nothing of another one is found here, which says nothing about what is there.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::base::ids::Ms;

/// An account: all of its parts are needed to reach every sandbox in it. An organisation is one part, a team with its project
/// too, and of machines each is one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Account {
    /// What tells the parts from those of other accounts. None of it is secret.
    pub parts: BTreeSet<String>,
}

impl Account {
    /// The account of this one part.
    #[must_use]
    pub fn of(part: &str) -> Self {
        Self { parts: [part.to_owned()].into() }
    }
}

/// What is on record of a provider's account.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AccountRecord {
    /// Where the sandboxes on record are.
    pub account: Account,
    /// When a person last said that sandboxes elsewhere are given up; none: nobody has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_at_ms: Option<Ms>,
}

/// How the account behind the present key stands to the one on record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is that one.
    Same,
    /// It has all parts of that one and more, or there is none on record: this one is to be remembered.
    ToRemember,
    /// Sandboxes may be where the present key or settings do not reach.
    Other,
}

impl Standing {
    /// Of the present account, beside what is on record.
    #[must_use]
    pub fn of(present: &Account, recorded: Option<&AccountRecord>) -> Self {
        match recorded {
            Some(recorded) if recorded.account == *present => Self::Same,
            Some(recorded) if !recorded.account.parts.is_subset(&present.parts) => Self::Other,
            _ => Self::ToRemember,
        }
    }
}

/// What waits is told, and the operator.
#[must_use]
pub fn of_another_account(provider: &str) -> String {
    format!("the stack's {provider} key or settings are of another account than its sandboxes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_parts_may_only_grow() {
        let account = |parts: &[&str]| Account {
            parts: parts.iter().map(|part| (*part).to_owned()).collect(),
        };
        let recorded = AccountRecord { account: account(&["a", "b"]), confirmed_at_ms: None };
        let standing = |parts: &[&str]| Standing::of(&account(parts), Some(&recorded));
        assert_eq!(standing(&["a", "b"]), Standing::Same);
        assert_eq!(standing(&["a", "b", "c"]), Standing::ToRemember);
        assert_eq!(standing(&["a", "c"]), Standing::Other);
        assert_eq!(standing(&["a"]), Standing::Other);
        assert_eq!(Standing::of(&account(&["a"]), None), Standing::ToRemember);
    }
}
