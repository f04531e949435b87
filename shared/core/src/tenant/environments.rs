//! How managers say that projects are made ready. What they say of a repository outranks its own files.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::tenant::repositories::{ALL, usable};
use crate::tenant::settings::{DEFAULT_HOST, clone_address};

/// Most repositories with a setting.
pub const ENVIRONMENTS_MAX: usize = 50;
/// Bytes of one of them: a message of a chat holds no more.
pub const ENVIRONMENT_BYTES_MAX: usize = 3_000;
/// The text that switches the making ready of a project off.
pub const OFF: &str = "off";
/// The text that leaves a repository to its own files again.
pub const OWN: &str = "own";

/// Texts by repository, as `owner/name` in small letters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Environments(BTreeMap<String, String>);

/// What managers say of one repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectSetting<'a> {
    /// Nothing: its own files count.
    Own,
    /// Nothing is run.
    Off,
    /// This recipe counts.
    Recipe(&'a str),
}

impl Environments {
    /// No repository has a setting.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What counts for the repository with this [name](name_of).
    #[must_use]
    pub fn of(&self, name: &str) -> ProjectSetting<'_> {
        match self.0.get(name).map(String::as_str) {
            None => ProjectSetting::Own,
            Some(OFF) => ProjectSetting::Off,
            Some(text) => ProjectSetting::Recipe(text),
        }
    }

    /// Sets the text of a repository; [`OWN`] takes it back. False: there are too many.
    pub fn set(&mut self, name: &str, text: &str) -> bool {
        let text = text.trim();
        if text.eq_ignore_ascii_case(OWN) {
            self.0.remove(name);
            return true;
        }
        let text = if text.eq_ignore_ascii_case(OFF) { OFF } else { text };
        let is_full = self.0.len() >= ENVIRONMENTS_MAX && !self.0.contains_key(name);
        if !is_full {
            self.0.insert(name.to_owned(), text.to_owned());
        }
        !is_full
    }

    /// The repositories with a setting, and whether that is `off`.
    pub fn all(&self) -> impl Iterator<Item = (&str, bool)> {
        self.0.iter().map(|(name, text)| (&**name, text == OFF))
    }
}

/// `owner/name` in small letters, of a repository as it was chosen for a sandbox: by its name, or an address, with or
/// without a branch. `named` is its name if it is one of the forge's. `None`: no setting can be about it; a repository
/// of that name at another host is another one.
#[must_use]
pub fn name_of(repo: &str, named: Option<&str>) -> Option<String> {
    let address = clone_address(repo);
    named.or_else(|| address.strip_prefix(DEFAULT_HOST)).and_then(usable)
}

/// The repository of a setting: `owner/name`, never all.
#[must_use]
pub fn repository(typed: &str) -> Option<String> {
    usable(typed).filter(|name| name != ALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_repository_finds_its_setting() {
        let mut environments = Environments::default();
        assert!(environments.set("acme/api", " {set-up: [make]} "));
        let of = |environments: &Environments, repo: &str, named: Option<&str>| {
            let name = name_of(repo, named);
            name.map(|name| format!("{:?}", environments.of(&name)))
        };
        for repo in [
            "acme/api",
            "Acme/API@release-2",
            "https://github.com/acme/api",
            "https://github.com/acme/api.git",
            "acme/api#12",
        ] {
            let said = of(&environments, repo, None);
            assert_eq!(said.as_deref(), Some(r#"Recipe("{set-up: [make]}")"#), "{repo}");
        }
        for repo in ["acme/web", "api", "acme", "", "https://elsewhere.example/acme/api"] {
            let said = of(&environments, repo, None);
            assert!(said.is_none_or(|said| said == "Own"), "{repo}");
        }
        let at_forge = of(&environments, "https://git.example.com/acme/api", Some("acme/api"));
        assert!(at_forge.is_some_and(|said| said.starts_with("Recipe")));
        assert!(environments.set("acme/api", "OFF"));
        assert_eq!(environments.of("acme/api"), ProjectSetting::Off);
        assert!(environments.set("acme/api", "own") && environments.is_empty());
    }
}
