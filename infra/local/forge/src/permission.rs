//! Rights: an app's by name, and a person's on a repository.

use crate::record::{ForgeAccount, Kind, Permissions, RepositoryRecord, Role};

/// What a call needs of a right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    None,
    Read,
    Write,
    Admin,
}

impl Level {
    pub(crate) fn of(word: &str) -> Self {
        match word {
            "read" | "pull" | "triage" => Self::Read,
            "write" | "push" | "maintain" => Self::Write,
            "admin" => Self::Admin,
            _ => Self::None,
        }
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

/// The level that these rights have under a name. Metadata comes with everything.
pub(crate) fn level(permissions: &Permissions, name: &str) -> Level {
    let least = if name == "metadata" { Level::Read } else { Level::None };
    permissions.get(name).map_or(least, |word| Level::of(word).max(least))
}

/// Whether what is asked for was granted.
pub(crate) fn covers(granted: &Permissions, asked: &Permissions) -> bool {
    asked.iter().all(|(name, word)| {
        let asked = Level::of(word);
        asked != Level::None && level(granted, name) >= asked
    })
}

/// A person's level on a repository with this owner.
pub(crate) fn of_person(person: u64, repository: &RepositoryRecord, owner: &ForgeAccount) -> Level {
    let public = if repository.is_private { Level::None } else { Level::Read };
    let as_owner = match owner.kind {
        Kind::User if owner.id == person => Level::Admin,
        Kind::User | Kind::Bot => Level::None,
        Kind::Organization => match owner.members.get(&person) {
            Some(Role::Admin) => Level::Admin,
            Some(Role::Member) => Level::Read,
            None => Level::None,
        },
    };
    let named = repository.collaborators.get(&person);
    public.max(as_owner).max(named.map_or(Level::None, |word| Level::of(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(pairs: &[(&str, &str)]) -> Permissions {
        pairs.iter().map(|(name, word)| ((*name).to_owned(), (*word).to_owned())).collect()
    }

    #[test]
    fn no_token_has_more_than_was_granted() {
        let granted = rights(&[("contents", "write"), ("checks", "read")]);
        assert!(covers(&granted, &rights(&[("contents", "read"), ("metadata", "read")])));
        assert!(covers(&granted, &rights(&[("contents", "write")])));
        assert!(!covers(&granted, &rights(&[("checks", "write")])));
        assert!(!covers(&granted, &rights(&[("workflows", "write")])));
        assert!(!covers(&granted, &rights(&[("contents", "everything")])));
    }
}
