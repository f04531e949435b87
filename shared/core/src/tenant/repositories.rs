//! The repositories of a forge that managers have opened, for the whole tenant or for a channel.
//!
//! That the operator or a manager has bound an owner to the tenant opens nothing by itself.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::records::carried::ForgeRepository;
use crate::tenant::bindings::Bindings;

/// Stands for every repository of the owners that are bound to the tenant.
pub const ALL: &str = "all";
/// Names in one list.
pub const REPOSITORIES_MAX: usize = 200;
/// Highest number of a pull request.
const NUMBER_MAX: u64 = u32::MAX as u64;

/// Names as `owner/name` in lower case, or [`ALL`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Repositories {
    /// Open in every channel.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub everywhere: BTreeSet<String>,
    /// Open in one channel, by its platform's id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub channels: BTreeMap<String, BTreeSet<String>>,
}

impl Repositories {
    /// Whether nothing is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.everywhere.is_empty() && self.channels.is_empty()
    }

    /// Whether this repository may be used in this channel.
    #[must_use]
    pub fn are_open(&self, name: &str, channel: &str) -> bool {
        let name = name.to_ascii_lowercase();
        let has = |list: &BTreeSet<String>| list.contains(ALL) || list.contains(&name);
        has(&self.everywhere) || self.channels.get(channel).is_some_and(has)
    }

    /// Whether it may be used in any channel.
    #[must_use]
    pub fn are_open_somewhere(&self, name: &str) -> bool {
        self.are_open(name, "") || self.channels.keys().any(|channel| self.are_open(name, channel))
    }

    /// The list of a channel, or the tenant's.
    #[must_use]
    pub fn of(&self, channel: Option<&str>) -> Option<&BTreeSet<String>> {
        match channel {
            None => Some(&self.everywhere),
            Some(channel) => self.channels.get(channel),
        }
    }

    /// Opens it. `name` is valid ([`usable`]).
    pub fn open(&mut self, channel: Option<&str>, name: String) {
        match channel {
            None => self.everywhere.insert(name),
            Some(channel) => self.channels.entry(channel.to_owned()).or_default().insert(name),
        };
    }

    /// Closes it again.
    pub fn close(&mut self, channel: Option<&str>, name: &str) {
        let name = name.trim().to_ascii_lowercase();
        match channel {
            None => {
                self.everywhere.remove(&name);
            }
            Some(channel) => {
                if let Some(list) = self.channels.get_mut(channel) {
                    list.remove(&name);
                }
                self.channels.retain(|_, list| !list.is_empty());
            }
        }
    }
}

/// The stored form of a name: `owner/name` in lower case, or [`ALL`].
#[must_use]
pub fn usable(name: &str) -> Option<String> {
    let name = name.trim().to_ascii_lowercase();
    let name = name.strip_suffix(".git").unwrap_or(&name);
    let part = |part: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        !part.is_empty()
            && part.len() <= 100
            && part != "."
            && part != ".."
            && part.chars().all(plain)
    };
    let is_name = name.split_once('/').is_some_and(|(owner, name)| part(owner) && part(name));
    (name == ALL || is_name).then(|| name.to_owned())
}

/// A repository as people name it, and behind `@` the branch, tag or commit that they want of it.
#[must_use]
pub fn apart(repo: &str) -> (&str, Option<&str>) {
    let (repo, _) = numbered(repo);
    // Before the path of an address, it stands behind a name or a secret.
    let path = match repo.find("://") {
        None => Some(0),
        Some(scheme) => repo[scheme + 3..].find('/').map(|host| scheme + 3 + host),
    };
    let at = path.and_then(|path| repo[path..].find('@').map(|at| path + at));
    at.map_or((repo, None), |at| (&repo[..at], Some(&repo[at + 1..])))
}

/// A repository, and behind `#` the number of the pull request that is wanted of it. Nobody types it so: what people
/// choose as a repository has no `#`.
#[must_use]
pub fn numbered(repo: &str) -> (&str, Option<u64>) {
    let parts = repo.split_once('#').and_then(|(repo, number)| Some((repo, number.parse().ok()?)));
    parts.map_or((repo, None), |(repo, number)| (repo, Some(number)))
}

/// A repository with the number of one of its pull requests, as [`numbered`] reads it.
#[must_use]
pub fn with_number(repo: &str, number: u64) -> String {
    format!("{}#{number}", apart(repo).0)
}

/// A pull request's number as typed, with or without the sign before it.
#[must_use]
pub fn usable_number(typed: &str) -> Option<u64> {
    let digits = typed.trim();
    let digits = digits.strip_prefix('#').unwrap_or(digits);
    let is_plain = digits.bytes().all(|b| b.is_ascii_digit());
    let number = is_plain.then(|| digits.parse().ok()).flatten()?;
    (1..=NUMBER_MAX).contains(&number).then_some(number)
}

/// Whether a branch or tag can have this name, or a commit this id.
#[must_use]
pub fn is_ref(name: &str) -> bool {
    let is_char = |c: char| c.is_ascii_alphanumeric() || "-_./+".contains(c);
    let is_part = |part: &str| {
        !part.is_empty() && !part.starts_with('.') && part.strip_suffix(".lock").is_none()
    };
    name.chars().all(is_char)
        && name.split('/').all(is_part)
        && !name.starts_with('-')
        && !name.ends_with('.')
        && !name.contains("..")
}

/// A forge that is set up, with the owners whose repositories the tenant may be given.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct BoundForge {
    /// Where its repositories are cloned from, without a trailing slash: `https://github.com`.
    pub base: String,
    /// Logins in lower case, bound by the operator.
    pub owners: BTreeSet<String>,
    /// Owners that managers have bound.
    pub bindings: Bindings,
}

impl BoundForge {
    /// Whether one of the owners has this repository. A managers' binding counts for its own installation alone,
    /// whatever the owner's name is by now.
    #[must_use]
    pub fn has(&self, found: &ForgeRepository) -> bool {
        let owner = found.name.split('/').next().unwrap_or_default();
        self.owners.contains(&owner.to_ascii_lowercase())
            || self.bindings.values().any(|binding| binding.installation == found.installation)
    }

    /// Name (`owner/name`) of the repository with this name or address, whatever is wanted of it, if one of the owners
    /// has it here.
    #[must_use]
    pub fn name_of(&self, repo: &str) -> Option<String> {
        let (repo, _) = apart(repo.trim());
        let repo = repo.trim_end_matches('/');
        let repo = repo.strip_suffix(".git").unwrap_or(repo);
        let name = match repo.split_once("://") {
            None => repo,
            Some(_) => {
                let (there, path) = repo.split_at_checked(self.base.len())?;
                there.eq_ignore_ascii_case(&self.base).then_some(path)?.strip_prefix('/')?
            }
        };
        let (owner, rest) = name.split_once('/')?;
        let mut bound = self.bindings.values();
        let is_ours = self.owners.contains(&owner.to_ascii_lowercase())
            || bound.any(|binding| binding.login.eq_ignore_ascii_case(owner));
        (is_ours && !rest.contains('/')).then(|| name.to_owned())
    }

    /// Name of the repository that a submodule's address stands for, in the repository with this name, if one of the
    /// owners has it here. The address is anybody's text.
    #[must_use]
    pub fn submodule(&self, of: &str, address: &str) -> Option<String> {
        let (_, host) = self.base.split_once("://")?;
        let by_ssh = [format!("git@{host}:"), format!("ssh://git@{host}/")];
        let named = if let Some(path) = by_ssh.iter().find_map(|one| address.strip_prefix(&**one)) {
            format!("{}/{path}", self.base)
        } else if address.starts_with("./") || address.starts_with("../") {
            let mut parts: Vec<&str> = of.split('/').collect();
            for part in address.split('/') {
                match part {
                    "." | "" => {}
                    ".." => {
                        parts.pop()?;
                    }
                    part => parts.push(part),
                }
            }
            format!("{}/{}", self.base, parts.join("/"))
        } else {
            address.to_owned()
        };
        let is_address = named.contains("://") && !named.contains('@');
        let name = is_address.then(|| self.name_of(&named)).flatten()?;
        usable(&name).is_some().then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::person::Person;
    use crate::tenant::bindings::Binding;

    #[test]
    fn repository_is_open_where_it_was_opened() {
        let mut lists = Repositories::default();
        assert!(!lists.are_open("acme/api", "C1"));
        lists.open(Some("C1"), "acme/api".to_owned());
        assert!(lists.are_open("Acme/API", "C1") && !lists.are_open("acme/api", "C2"));
        assert!(!lists.are_open("acme/web", "C1"));
        lists.open(None, ALL.to_owned());
        assert!(lists.are_open("acme/web", "C2"));
        lists.close(None, " ALL ");
        lists.close(Some("C1"), "acme/api");
        assert!(lists.is_empty());
    }

    #[test]
    fn odd_repository_names_are_refused() {
        for name in ["acme", "acme/", "/api", "acme/api/x", "acme/..", "a b/c", "https://x/a", ""] {
            assert_eq!(usable(name), None, "{name}");
        }
        assert_eq!(usable(" Acme/API.git ").as_deref(), Some("acme/api"));
        assert_eq!(usable("All").as_deref(), Some("all"));
    }

    #[test]
    fn wanted_ref_stands_behind_the_name() {
        for (repo, parts) in [
            ("acme/api", ("acme/api", None)),
            ("acme/api@feature/x", ("acme/api", Some("feature/x"))),
            ("https://x.example/a/b@v1.2", ("https://x.example/a/b", Some("v1.2"))),
            ("https://ada@x.example/a/b", ("https://ada@x.example/a/b", None)),
        ] {
            assert_eq!(apart(repo), parts);
        }
        for name in ["main", "release-2", "feature/x", "v1.2+3", &"a".repeat(40)] {
            assert!(is_ref(name), "{name}");
        }
        for name in ["", "-x", "a..b", "/a", "a/", "a//b", ".a", "a.", "a.lock", "a@b", "a:b", "é"]
        {
            assert!(!is_ref(name), "{name}");
        }
    }

    #[test]
    fn pull_request_stands_behind_the_name() {
        let repo = with_number("acme/api@main", 12);
        assert_eq!((&*repo, numbered(&repo)), ("acme/api#12", ("acme/api", Some(12))));
        assert_eq!(apart(&repo), ("acme/api", None));
        assert_eq!(numbered("acme/api"), ("acme/api", None));
        for typed in ["12", " #12 ", "012"] {
            assert_eq!(usable_number(typed), Some(12), "{typed}");
        }
        for typed in ["", "0", "-1", "+1", "1.5", "##1", "a", "4294967296", "٣"] {
            assert_eq!(usable_number(typed), None, "{typed}");
        }
    }

    #[test]
    fn only_bound_owners_repositories_are_carried() {
        let forge = BoundForge {
            base: "https://git.example.com".to_owned(),
            owners: BTreeSet::from(["acme".to_owned()]),
            ..BoundForge::default()
        };
        for repo in [
            "Acme/api",
            "https://git.example.com/Acme/api.git",
            "HTTPS://GIT.example.com/Acme/api/",
            "Acme/api@feature/x",
            "https://git.example.com/Acme/api.git@v1",
        ] {
            assert_eq!(forge.name_of(repo).as_deref(), Some("Acme/api"), "{repo}");
        }
        for repo in [
            "other/api",
            "https://github.com/acme/api",
            "https://git.example.com.evil.org/acme/api",
            "https://git.example.com@evil.org/acme/api",
            "other/api@acme/api",
            "https://git.example.com/acme/api/tree/main",
            "acme",
        ] {
            assert_eq!(forge.name_of(repo), None, "{repo}");
        }
    }

    #[test]
    fn submodule_address_names_a_repository_here() {
        let forge = BoundForge {
            base: "https://git.example.com".to_owned(),
            owners: BTreeSet::from(["acme".to_owned()]),
            ..BoundForge::default()
        };
        for address in [
            "https://git.example.com/acme/lib",
            "https://git.example.com/acme/lib.git",
            "../lib.git",
            "../../acme/lib",
            "./../lib/",
            "git@git.example.com:acme/lib.git",
            "ssh://git@git.example.com/acme/lib",
        ] {
            assert_eq!(
                forge.submodule("acme/api", address).as_deref(),
                Some("acme/lib"),
                "{address}"
            );
        }
        for address in [
            "",
            "acme/lib",
            "/acme/lib",
            "file:///acme/lib",
            "ext::sh -c x% acme/lib",
            "-uhttps://git.example.com/acme/lib",
            "--upload-pack=touch /tmp/x",
            "https://token@git.example.com/acme/lib",
            "https://git.example.com@evil.org/acme/lib",
            "https://git.example.com.evil.org/acme/lib",
            "https://git.example.com/acme/lib@main",
            "https://git.example.com/acme/lib?x",
            "https://git.example.com/acme/..",
            "https://git.example.com/acme/../other/lib",
            "https://git.example.com/other/lib",
            "http://git.example.com/acme/lib",
            "root@git.example.com:acme/lib",
            "git@evil.org:acme/lib",
            "git@git.example.com:-x/lib",
            "./lib",
            "../../lib",
            "../../../acme/lib",
            "../../../../../etc/passwd",
        ] {
            assert_eq!(forge.submodule("acme/api", address), None, "{address}");
        }
    }

    #[test]
    fn binding_counts_for_its_installation_alone() {
        let binding = Binding {
            login: "Acme".to_owned(),
            is_organization: true,
            installation: 7,
            by: Person::default(),
            since_ms: 1,
        };
        let forge = BoundForge {
            owners: BTreeSet::from(["other".to_owned()]),
            bindings: Bindings::from([(41, binding)]),
            ..BoundForge::default()
        };
        assert_eq!(forge.name_of("acme/api").as_deref(), Some("acme/api"));
        let has = |name: &str, installation| {
            forge.has(&ForgeRepository {
                installation,
                id: 1,
                name: name.to_owned(),
                address: String::new(),
                is_private: true,
                branch: "main".to_owned(),
            })
        };
        assert!(has("acme/api", 7) && has("renamed/api", 7), "the installation decides");
        assert!(!has("acme/api", 8), "it was installed again, or the name is another's");
        assert!(has("other/api", 8), "the operator's owners are names");
    }
}
