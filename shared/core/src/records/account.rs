//! The account at a provider that holds the stack's sandboxes, and whether the present key or settings lead to the same
//! account. In another account none of them is found, which says nothing about what exists.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::base::ids::Ms;

/// An account, as the set of parts needed to reach every sandbox in it. An organisation is one part; so is a team with
/// its project; with machines, each is one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Account {
    /// What distinguishes the parts from those of other accounts. Not secret.
    pub parts: BTreeSet<String>,
}

impl Account {
    /// An account with this one part.
    #[must_use]
    pub fn of(part: &str) -> Self {
        Self { parts: [part.to_owned()].into() }
    }
}

/// The record of a provider's account.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AccountRecord {
    /// The account that holds the sandboxes on record.
    pub account: Account,
    /// When a person last confirmed that sandboxes elsewhere are given up; `None` if nobody has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_at_ms: Option<Ms>,
}

/// Whether the present account is the one on record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountStanding {
    /// It is the same.
    Same,
    /// The record lacks this account or part of it: record the present one.
    ToRemember,
    /// Sandboxes may be where the present key or settings do not reach.
    Other,
}

impl AccountStanding {
    /// Compares the present account with the one on record.
    #[must_use]
    pub fn of(present: &Account, recorded: Option<&AccountRecord>) -> Self {
        match recorded {
            Some(recorded) if recorded.account == *present => Self::Same,
            Some(recorded) if !recorded.account.parts.is_subset(&present.parts) => Self::Other,
            _ => Self::ToRemember,
        }
    }
}

/// The text for waiting work and for the operator.
#[must_use]
pub fn of_another_account(provider: &str) -> String {
    format!("the stack's {provider} key or settings belong to another account than its sandboxes")
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
        let standing = |parts: &[&str]| AccountStanding::of(&account(parts), Some(&recorded));
        assert_eq!(standing(&["a", "b"]), AccountStanding::Same);
        assert_eq!(standing(&["a", "b", "c"]), AccountStanding::ToRemember);
        assert_eq!(standing(&["a", "c"]), AccountStanding::Other);
        assert_eq!(standing(&["a"]), AccountStanding::Other);
        assert_eq!(AccountStanding::of(&account(&["a"]), None), AccountStanding::ToRemember);
    }
}
