//! What a project's sandboxes reach of the world, as managers say by repository.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::base::ids::digest;
use crate::tenant::environments::repository;
use crate::tenant::project_secrets::{HOSTS_MAX, SecretRefused, quotable, usable_host};
use crate::tenant::settings::Settings;

/// Repositories of which something is said.
pub const NETWORKS_MAX: usize = 50;
/// Where packages of the common languages come from.
pub const REGISTRIES: [&str; 20] = [
    "registry.npmjs.org",
    "registry.yarnpkg.com",
    "nodejs.org",
    "pypi.org",
    "files.pythonhosted.org",
    "index.crates.io",
    "static.crates.io",
    "crates.io",
    "static.rust-lang.org",
    "proxy.golang.org",
    "sum.golang.org",
    "rubygems.org",
    "index.rubygems.org",
    "repo.maven.apache.org",
    "repo1.maven.org",
    "plugins.gradle.org",
    "repo.packagist.org",
    "api.nuget.org",
    "deb.debian.org",
    "security.debian.org",
];
/// Hexadecimal digits of a revision.
const DIGITS: usize = 16;

/// How much of the world is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkAccess {
    /// All of it.
    #[default]
    Open,
    /// The forge, registries, the model, and named hosts.
    Listed,
    /// The model alone.
    Off,
}

impl NetworkAccess {
    /// All, in display order.
    pub const ALL: [Self; 3] = [Self::Open, Self::Listed, Self::Off];

    /// The word that people type.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Listed => "listed",
            Self::Off => "off",
        }
    }

    /// The one with this word.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| word.trim().eq_ignore_ascii_case(one.word()))
    }
}

/// The network setting of one repository.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProjectNetwork {
    /// How much is reached.
    pub access: NetworkAccess,
    /// Named hosts, as those of secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}

/// By repository, as `owner/name` in small letters; open ones are left out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProjectNetworks(BTreeMap<String, ProjectNetwork>);

/// Why nothing was changed, worded for the person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetworkRefused {
    /// A repository or a host is none.
    #[error(transparent)]
    Named(#[from] SecretRefused),
    /// Too many hosts are named.
    #[error(
        "At most {HOSTS_MAX} hosts can be named beside the registries. Use `*.` before their domain."
    )]
    Hosts,
    /// Too many repositories are limited.
    #[error("At most {NETWORKS_MAX} repositories can be limited. Open one first.")]
    Full,
    /// Hosts that would have no effect.
    #[error("Hosts can be named only with `listed`.")]
    Unused,
}

impl ProjectNetworks {
    /// All are open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The network setting of a repository; `None`: it is open.
    #[must_use]
    pub fn of(&self, repository: &str) -> Option<&ProjectNetwork> {
        self.0.get(repository)
    }

    /// All that are not open.
    pub fn all(&self) -> impl Iterator<Item = (&str, &ProjectNetwork)> {
        self.0.iter().map(|(repository, network)| (&**repository, network))
    }

    /// Says it of a repository.
    pub(super) fn set(
        &mut self,
        typed: &str,
        access: NetworkAccess,
        hosts: &[String],
    ) -> Result<(), NetworkRefused> {
        let name = repository(typed).ok_or_else(|| SecretRefused::Repository(quotable(typed)))?;
        if !hosts.is_empty() && access != NetworkAccess::Listed {
            return Err(NetworkRefused::Unused);
        }
        let hosts: Vec<String> =
            hosts.iter().map(|host| usable_host(host, &[])).collect::<Result<_, _>>()?;
        if hosts.len() > HOSTS_MAX {
            return Err(NetworkRefused::Hosts);
        }
        if access == NetworkAccess::Open {
            self.0.remove(&name);
            return Ok(());
        }
        if self.0.len() >= NETWORKS_MAX && !self.0.contains_key(&name) {
            return Err(NetworkRefused::Full);
        }
        self.0.insert(name, ProjectNetwork { access, hosts });
        Ok(())
    }
}

/// Identifies what a sandbox is to have of its project, by the repository whose secrets count, and that whose network
/// does. Empty: nothing.
#[must_use]
pub fn revision_of(settings: &Settings, secrets: Option<&str>, network: Option<&str>) -> String {
    let secrets = settings.project_secrets.revision(secrets);
    let Some(network) = network.and_then(|network| settings.project_networks.of(network)) else {
        return secrets;
    };
    let mut parts = vec![&*secrets, network.access.word()];
    parts.extend(network.hosts.iter().map(String::as_str));
    digest(&parts)[..DIGITS].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_set_listed_and_opened() {
        let mut networks = ProjectNetworks::default();
        let hosts =
            |hosts: &[&str]| hosts.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>();
        let listed = hosts(&["Api.Example.com", "*.example.org"]);
        assert_eq!(networks.set("Acme/API", NetworkAccess::Listed, &listed), Ok(()));
        let network = networks.of("acme/api").expect("set");
        assert_eq!(network.hosts, ["api.example.com", "*.example.org"]);
        for (access, named, why) in [
            (NetworkAccess::Off, &["a.example.com"][..], "Hosts can be named only with `listed`."),
            (NetworkAccess::Listed, &["*.com"], "`*.com` is too wide"),
            (NetworkAccess::Listed, &["10.0.0.1"], "is not a host"),
        ] {
            let refused = networks.set("acme/api", access, &hosts(named)).expect_err("refused");
            assert!(refused.to_string().contains(why), "{refused}");
        }
        assert_eq!(networks.set("acme/api", NetworkAccess::Open, &[]), Ok(()));
        assert!(networks.is_empty());
        assert_eq!(NetworkAccess::named(" LISTED "), Some(NetworkAccess::Listed));
    }

    #[test]
    fn revision_follows_secrets_and_network() {
        let mut settings = Settings::default();
        let of = |settings: &Settings| revision_of(settings, Some("acme/api"), Some("acme/api"));
        assert_eq!(of(&settings), "");
        settings.project_networks.set("acme/api", NetworkAccess::Off, &[]).expect("set");
        let off = of(&settings);
        settings.project_networks.set("acme/api", NetworkAccess::Listed, &[]).expect("set");
        assert!(!off.is_empty() && off != of(&settings));
        assert_eq!(revision_of(&settings, Some("acme/api"), None), "");
    }
}
