//! Secrets of a project: its tools use them, and they are readable only where a manager says so.
//!
//! A value is stored sealed, as a tenant's own keys are, for its stack, tenant, repository, name and use: with other
//! hosts it does not open. Deliberately absent: the value, which is in none of these types.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::base::ids::{Ms, Tenant, digest};
use crate::base::person::Person;
use crate::records::recipe::is_refused_variable;
use crate::records::sandbox::SandboxRecord;
use crate::tenant::environments::repository;
use crate::tenant::own_keys::seal_context;
use crate::tenant::repositories::{BoundForge, Repositories, apart, usable};
use crate::tenant::settings::{DEFAULT_HOST, clone_address};

/// Secrets of one repository: a provider mounts ten in a sandbox, model keys among them.
pub const SECRETS_MAX: usize = 6;
/// Secrets of a tenant: the record of its settings holds them all.
pub const SECRETS_OF_TENANT_MAX: usize = 40;
/// Hosts of one secret.
pub const HOSTS_MAX: usize = 8;
/// Bytes of a value. KMS encrypts 4,096 by itself.
pub const VALUE_BYTES_MAX: usize = 2_048;
/// A shorter value could not be told from other text, where it must not be shown.
const VALUE_BYTES_MIN: usize = 8;
const NAME_BYTES_MAX: usize = 63;
const HOST_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;
/// Domains that are no public suffixes, below which everybody can have a host.
const SHARED: [&str; 12] = [
    "amazonaws.com",
    "atlassian.net",
    "azure.com",
    "cloudflarestorage.com",
    "core.windows.net",
    "digitaloceanspaces.com",
    "googleapis.com",
    "jfrog.io",
    "oraclecloud.com",
    "sharepoint.com",
    "windows.net",
    "zendesk.com",
];
/// Hexadecimal digits of a revision, and of a use.
const DIGITS: usize = 16;

/// A secret that somebody wants to store, without its value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SecretRequest {
    /// `owner/name`.
    pub repository: String,
    /// Its name, which is its variable too.
    pub name: String,
    /// Where it is sent: hosts, or `*.` before a domain for every host below it.
    pub hosts: Vec<String>,
    /// Where the provider cannot keep it outside, it is readable inside.
    #[serde(default)]
    pub readable: bool,
    /// Set-up steps have it too.
    #[serde(default)]
    pub set_up: bool,
}

/// A stored secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProjectSecret {
    /// The value sealed by KMS, in base64.
    pub sealed: String,
    /// As in [`SecretRequest`].
    pub hosts: Vec<String>,
    /// As in [`SecretRequest`].
    #[serde(default)]
    pub readable: bool,
    /// As in [`SecretRequest`].
    #[serde(default)]
    pub set_up: bool,
    /// The person who entered it.
    pub by: Person,
    /// When they entered it (Unix milliseconds).
    pub since_ms: Ms,
}

/// Secrets by repository, as `owner/name` in small letters, and by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProjectSecrets(BTreeMap<String, BTreeMap<String, ProjectSecret>>);

/// Why a secret cannot be stored, worded for the person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretRefused {
    /// The repository has no name.
    #[error("`{0}` is not a repository: name it as owner/name.")]
    Repository(String),
    /// The name is no name of a variable.
    #[error(
        "`{0}` cannot be the name of a secret: use up to 63 letters, digits and `_`, and no digit first."
    )]
    Name(String),
    /// The name is one that changes programs.
    #[error(
        "A secret cannot be named `{0}`: that variable changes how programs or Bobbin's own agents work. Choose another name."
    )]
    Variable(String),
    /// No host is named.
    #[error("Name at least one host to which the secret is sent, such as registry.example.com.")]
    NoHosts,
    /// Too many hosts are named.
    #[error(
        "A secret can be sent to at most {HOSTS_MAX} hosts. Name fewer, or `*.` before their domain."
    )]
    Hosts,
    /// The text is no host.
    #[error(
        "`{0}` is not a host: write its name alone, such as registry.example.com, without scheme, port or path. Numeric addresses are refused."
    )]
    Host(String),
    /// Anybody can have a host below it.
    #[error(
        "`*.{0}` is too wide: anybody can have a host below {0}. Name your own domain or host."
    )]
    Public(String),
    /// It is the forge's.
    #[error(
        "`{0}` belongs to the forge, and none of its credentials enters a sandbox. The app brings repositories and opens pull requests by itself."
    )]
    Forge(String),
    /// The repository has as many as it may.
    #[error("A repository can have at most {SECRETS_MAX} secrets. Remove one first.")]
    Full,
    /// The tenant has as many as it may.
    #[error("At most {SECRETS_OF_TENANT_MAX} secrets can be stored here. Remove one first.")]
    TenantFull,
    /// There is none of that name.
    #[error("{0} has no secret named `{1}`.")]
    Unknown(String, String),
    /// The value is entered elsewhere.
    #[error("The value of a secret is entered on a page.")]
    NoValue,
}

impl SecretRequest {
    /// As it is stored. `forge` are the hosts of the forge.
    ///
    /// # Errors
    /// [`SecretRefused`], to tell the person.
    pub fn usable(&self, forge: &[&str]) -> Result<Self, SecretRefused> {
        let named = repository(&self.repository)
            .ok_or_else(|| SecretRefused::Repository(quotable(&self.repository)))?;
        let name = usable_name(&self.name)?;
        let mut hosts: Vec<String> = Vec::new();
        for host in &self.hosts {
            let host = usable_host(host, forge)?;
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
        match hosts.len() {
            0 => Err(SecretRefused::NoHosts),
            1..=HOSTS_MAX => Ok(Self { repository: named, name, hosts, ..self.clone() }),
            _ => Err(SecretRefused::Hosts),
        }
    }

    /// Identifies how it is used. The value is sealed for this, so that it does not open for another use.
    fn usage(&self) -> String {
        let flags = format!("{}{}", self.readable, self.set_up);
        let parts: Vec<&str> =
            self.hosts.iter().map(String::as_str).chain([flags.as_str()]).collect();
        digest(&parts)[..DIGITS].to_owned()
    }
}

/// KMS's encryption context of a value. It is written in clear text to the account's log of calls.
#[must_use]
pub fn secret_sealed_for(
    stack: &str,
    tenant: &Tenant,
    wish: &SecretRequest,
) -> BTreeMap<String, String> {
    let kind = format!("secret {} {} {}", wish.repository, wish.name, wish.usage());
    seal_context(stack, tenant, &kind)
}

impl ProjectSecret {
    /// What was wanted when it was stored.
    #[must_use]
    pub fn wish(&self, repository: &str, name: &str) -> SecretRequest {
        SecretRequest {
            repository: repository.to_owned(),
            name: name.to_owned(),
            hosts: self.hosts.clone(),
            readable: self.readable,
            set_up: self.set_up,
        }
    }
}

impl ProjectSecrets {
    /// There is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The secrets of a repository, by name.
    #[must_use]
    pub fn of(&self, repository: &str) -> Option<&BTreeMap<String, ProjectSecret>> {
        self.0.get(repository)
    }

    /// All of them, by repository.
    pub fn all(&self) -> impl Iterator<Item = (&str, &BTreeMap<String, ProjectSecret>)> {
        self.0.iter().map(|(repository, secrets)| (&**repository, secrets))
    }

    /// Whether there is room for one of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn room(&self, wish: &SecretRequest) -> Result<(), SecretRefused> {
        let there = self.0.get(&wish.repository);
        if there.is_some_and(|there| there.contains_key(&wish.name)) {
            return Ok(());
        }
        if there.is_some_and(|there| there.len() >= SECRETS_MAX) {
            return Err(SecretRefused::Full);
        }
        let all: usize = self.0.values().map(BTreeMap::len).sum();
        if all >= SECRETS_OF_TENANT_MAX { Err(SecretRefused::TenantFull) } else { Ok(()) }
    }

    /// Stores one; one of that name is replaced.
    pub(super) fn set(&mut self, wish: &SecretRequest, secret: ProjectSecret) {
        self.0.entry(wish.repository.clone()).or_default().insert(wish.name.clone(), secret);
    }

    /// Removes one.
    pub(super) fn remove(&mut self, typed: &str, name: &str) -> Result<(), SecretRefused> {
        let found = repository(typed).and_then(|repository| {
            let there = self.0.get_mut(&repository)?;
            there.remove(name.trim())?;
            Some((there.is_empty(), repository))
        });
        match found {
            Some((is_last, repository)) => {
                if is_last {
                    self.0.remove(&repository);
                }
                Ok(())
            }
            None => Err(SecretRefused::Unknown(quotable(typed), quotable(name))),
        }
    }

    /// Identifies the secrets of a repository with their values, without revealing any; empty: it has none.
    #[must_use]
    pub fn revision(&self, repository: Option<&str>) -> String {
        let there = repository.and_then(|repository| self.of(repository)).into_iter().flatten();
        let each = there.flat_map(|(name, secret)| {
            [name.clone(), secret.sealed.clone(), secret.wish("", name).usage()]
        });
        let each: Vec<String> = each.collect();
        if each.is_empty() {
            return String::new();
        }
        let parts: Vec<&str> = each.iter().map(String::as_str).collect();
        digest(&parts)[..DIGITS].to_owned()
    }

    /// Identifies each of those whose values set-up steps can read, by name, with its value.
    #[must_use]
    pub fn read_by_set_up(&self, repository: &str) -> BTreeMap<String, String> {
        let there = self.of(repository).into_iter().flatten();
        let read = there.filter(|(_, secret)| secret.readable && secret.set_up);
        let each = read.map(|(name, secret)| {
            let usage = secret.wish("", name).usage();
            (name.clone(), digest(&[&secret.sealed, &usage])[..DIGITS].to_owned())
        });
        each.collect()
    }
}

/// The repository whose secrets a sandbox gets: a thread's own sandbox alone, and never for what somebody outside of
/// the repository proposes.
#[must_use]
pub fn project_of(sandbox: &SandboxRecord) -> Option<String> {
    // Other sandboxes begin with a builder's disk.
    if is_foreign(sandbox) || sandbox.is_builder() { None } else { repository_of(sandbox) }
}

/// The same for a message from this channel: a repository that is not open there has no secrets there.
#[must_use]
pub fn project_in(
    sandbox: &SandboxRecord,
    repositories: &Repositories,
    place: (Option<&BoundForge>, &str),
) -> Option<String> {
    project_of(sandbox).filter(|_| !is_closed(sandbox, repositories, place))
}

/// Whether managers have not opened the repository in this channel: one that the forge's app has brought, or one that
/// was cloned from inside, as anybody could, though the tenant's forge has a repository of this name. For work of no
/// channel a server that has secrets keeps them, unless the repository is open nowhere.
#[must_use]
pub fn is_closed(
    sandbox: &SandboxRecord,
    repositories: &Repositories,
    (forge, channel): (Option<&BoundForge>, &str),
) -> bool {
    let Some(name) = repository_of(sandbox) else { return false };
    let at_forge = match &sandbox.project.carried {
        Some(carried) => Some(carried.repository.name.clone()),
        None => forge.and_then(|forge| forge.name_of(&name)),
    };
    let given = sandbox.project.secrets.as_ref().map(|secrets| &secrets.given);
    let has_some = given.is_some_and(|given| !given.is_empty());
    at_forge.is_some_and(|name| {
        let keeps = channel.is_empty() && has_some && repositories.are_open_somewhere(&name);
        !keeps && !repositories.are_open(&name, channel)
    })
}

/// Whether the checkout may be work of somebody outside of the repository: a forge serves the commits of every fork by
/// their ids, and a snapshot holds what its sandbox held.
#[must_use]
pub fn is_foreign(sandbox: &SandboxRecord) -> bool {
    let project = &sandbox.project;
    let at = project.repo.as_deref().and_then(|repo| apart(repo).1);
    let is_id = |at: &str| at.len() >= 7 && at.bytes().all(|byte| byte.is_ascii_hexdigit());
    sandbox.spec.snapshot.is_some()
        || project.pull.as_ref().is_some_and(|pull| pull.branch.is_none())
        || at.is_some_and(is_id)
}

/// The repository of a thread's own sandbox.
#[must_use]
pub fn repository_of(sandbox: &SandboxRecord) -> Option<String> {
    let is_own =
        !sandbox.is_shared() && sandbox.tooling.agent.is_none() && !sandbox.works_elsewhere();
    if is_own { named_repository(sandbox) } else { None }
}

/// The name under which settings know the repository in a sandbox, whosever the sandbox is by now.
#[must_use]
pub fn named_repository(sandbox: &SandboxRecord) -> Option<String> {
    if let Some(carried) = &sandbox.project.carried {
        return usable(&carried.repository.name);
    }
    let address = clone_address(sandbox.project.repo.as_deref()?);
    address.strip_prefix(DEFAULT_HOST).and_then(usable)
}

/// Hosts as people type them: between them are commas or spaces.
#[must_use]
pub fn hosts(typed: &str) -> Vec<String> {
    let each = typed.split(|c: char| c == ',' || c.is_whitespace());
    each.filter(|host| !host.is_empty()).map(str::to_owned).collect()
}

/// A value as it is used: without white space around it, in one line of ASCII, which a header can hold. Credentials of
/// a forge are none: they stay with the worker.
#[must_use]
pub fn usable_value(typed: &str) -> Option<&str> {
    let typed = typed.trim();
    let fits = (VALUE_BYTES_MIN..=VALUE_BYTES_MAX).contains(&typed.len());
    let is_forges = ["ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_pat_"]
        .iter()
        .any(|beginning| typed.starts_with(beginning));
    (fits && !is_forges && typed.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '))
        .then_some(typed)
}

fn usable_name(typed: &str) -> Result<String, SecretRefused> {
    let name = typed.trim();
    let is_char = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_name = (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(is_char)
        && !name.starts_with(|first: char| first.is_ascii_digit());
    if !is_name {
        return Err(SecretRefused::Name(quotable(name)));
    }
    if is_refused_variable(name) {
        return Err(SecretRefused::Variable(name.to_owned()));
    }
    Ok(name.to_owned())
}

pub(super) fn usable_host(typed: &str, forge: &[&str]) -> Result<String, SecretRefused> {
    let host = typed.trim().to_ascii_lowercase();
    let (parent, is_below) = match host.strip_prefix("*.") {
        Some(parent) => (parent, true),
        None => (host.as_str(), false),
    };
    let label = |label: &str| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let top = parent.rsplit('.').next().unwrap_or_default();
    let is_host = parent.len() <= HOST_BYTES_MAX
        && parent.split('.').all(label)
        // A number at the end is an address, in one of its many spellings.
        && !top.starts_with(|first: char| first.is_ascii_digit());
    if !is_host {
        return Err(SecretRefused::Host(quotable(&host)));
    }
    let suffix = psl::suffix(parent.as_bytes());
    if suffix.is_none_or(|suffix| suffix.as_bytes() == parent.as_bytes()) {
        let wrong = if is_below { SecretRefused::Public } else { SecretRefused::Host };
        return Err(wrong(parent.to_owned()));
    }
    let is_in = |shared: &&str| {
        parent.strip_suffix(*shared).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    if is_below && SHARED.iter().any(is_in) {
        return Err(SecretRefused::Public(parent.to_owned()));
    }
    if forge.iter().any(|forge| is_same_owner(parent, forge)) {
        return Err(SecretRefused::Forge(host));
    }
    Ok(host)
}

/// Whether both are below one registered domain.
fn is_same_owner(one: &str, other: &str) -> bool {
    let domain = |host: &str| {
        psl::domain(host.as_bytes()).map(|domain| domain.as_bytes().to_ascii_lowercase())
    };
    one == other || domain(one).is_some_and(|of_one| domain(other) == Some(of_one))
}

/// A person's words, fit to stand in a sentence to them.
pub(super) fn quotable(typed: &str) -> String {
    let plain = crate::text::one_line(&crate::base::credentials::redact(typed.trim()));
    crate::text::shorten(&plain.replace('`', "'"), NAME_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::ThreadKey;
    use crate::records::carried::{Carried, ForgeRepository};
    use crate::records::given_secrets::{GivenSecret, GivenSecrets};
    use crate::records::sandbox::SandboxProject;
    use std::collections::BTreeSet;

    fn wish(hosts: &[&str]) -> SecretRequest {
        SecretRequest {
            repository: "Acme/API".to_owned(),
            name: "NPM_TOKEN".to_owned(),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            readable: false,
            set_up: true,
        }
    }

    fn stored(sealed: &str) -> ProjectSecret {
        let by = Person { id: "1".to_owned(), name: "Ada".to_owned() };
        let hosts = vec!["registry.example.com".to_owned()];
        ProjectSecret {
            sealed: sealed.to_owned(),
            hosts,
            readable: false,
            set_up: true,
            by,
            since_ms: 1,
        }
    }

    #[test]
    fn hosts_are_exact_or_below_a_domain() {
        let forge = ["github.com", "git.acme.example"];
        let usable = |host: &str| wish(&[host]).usable(&forge).map(|wish| wish.hosts.join(" "));
        for (typed, becomes) in [
            ("Registry.Example.com", "registry.example.com"),
            ("*.example.com", "*.example.com"),
            (" example.co.uk ", "example.co.uk"),
            ("acme.github.io", "acme.github.io"),
            ("db.internal", "db.internal"),
        ] {
            assert_eq!(usable(typed).as_deref(), Ok(becomes));
        }
        for (typed, why) in [
            ("*.com", "`*.com` is too wide"),
            ("*.co.uk", "too wide"),
            ("*.github.io", "too wide"),
            ("*.vercel.app", "too wide"),
            ("*.amazonaws.com", "too wide"),
            ("*.eu-west-1.amazonaws.com", "too wide"),
            ("*.core.windows.net", "too wide"),
            ("*.internal", "too wide"),
            ("*", "is not a host"),
            ("*.*.example.com", "is not a host"),
            ("a.*.example.com", "is not a host"),
            ("localhost", "is not a host"),
            ("com", "is not a host"),
            ("10.0.0.1", "is not a host"),
            ("0x7f.1", "is not a host"),
            ("[::1]", "is not a host"),
            ("https://example.com", "is not a host"),
            ("example.com:8443", "is not a host"),
            ("example.com/path", "is not a host"),
            ("exam ple.com", "is not a host"),
            ("user@example.com", "is not a host"),
            ("-a.example.com", "is not a host"),
            ("example.com.", "is not a host"),
            ("github.com", "belongs to the forge"),
            ("npm.pkg.github.com", "belongs to the forge"),
            ("*.github.com", "belongs to the forge"),
            ("api.git.acme.example", "belongs to the forge"),
            ("*.acme.example", "belongs to the forge"),
        ] {
            let refused = usable(typed).expect_err(typed).to_string();
            assert!(refused.contains(why), "{typed}: {refused}");
        }
    }

    #[test]
    fn wrong_wishes_are_refused_in_words() {
        let refused = |wish: SecretRequest| wish.usable(&[]).expect_err("refused").to_string();
        let named = |name: &str| {
            refused(SecretRequest { name: name.to_owned(), ..wish(&["a.example.com"]) })
        };
        for name in ["", "1A", "A-B", "A B", &"A".repeat(64)] {
            assert!(named(name).contains("cannot be the name of a secret"), "{name}");
        }
        for name in ["PATH", "LD_PRELOAD", "OPENROUTER_API_KEY", "https_proxy", "BOBBIN_X"] {
            assert!(named(name).contains("Choose another name"), "{name}");
        }
        assert!(refused(wish(&[])).starts_with("Name at least one host"));
        let many: Vec<String> = (0..9).map(|nth| format!("h{nth}.example.com")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(refused(wish(&many)).contains("at most 8 hosts"));
        let nowhere = SecretRequest { repository: "all".to_owned(), ..wish(&["a.example.com"]) };
        assert_eq!(refused(nowhere), "`all` is not a repository: name it as owner/name.");
    }

    #[test]
    fn secrets_are_bounded_replaced_removed() {
        let mut secrets = ProjectSecrets::default();
        let usable = wish(&["registry.example.com"]).usable(&[]).expect("usable");
        secrets.set(&usable, stored("one"));
        let first = secrets.revision(Some("acme/api"));
        secrets.set(&usable, stored("two"));
        assert_ne!(secrets.revision(Some("acme/api")), first);
        assert_eq!(secrets.revision(Some("acme/web")), "");
        for nth in 1..SECRETS_MAX {
            let more = SecretRequest { name: format!("N{nth}"), ..usable.clone() };
            assert_eq!(secrets.room(&more), Ok(()));
            secrets.set(&more, stored("x"));
        }
        let more = SecretRequest { name: "N9".to_owned(), ..usable.clone() };
        assert_eq!(secrets.room(&more), Err(SecretRefused::Full));
        assert_eq!(secrets.room(&usable), Ok(()), "it replaces one");
        // What set-up steps cannot read changes nothing for them.
        assert_eq!(secrets.read_by_set_up("acme/api"), BTreeMap::new());
        let readable = ProjectSecret { readable: true, ..stored("three") };
        secrets.set(&usable, readable.clone());
        let read = secrets.read_by_set_up("acme/api");
        secrets.set(&SecretRequest { name: "N1".to_owned(), ..usable.clone() }, stored("y"));
        assert!(!read.is_empty() && secrets.read_by_set_up("acme/api") == read);
        secrets.set(&usable, ProjectSecret { sealed: "four".to_owned(), ..readable });
        assert_ne!(secrets.read_by_set_up("acme/api"), read);
        assert_eq!(secrets.remove("ACME/api", " NPM_TOKEN "), Ok(()));
        assert_eq!(
            secrets.remove("acme/api", "NPM_TOKEN").map_err(|why| why.to_string()),
            Err("acme/api has no secret named `NPM_TOKEN`.".to_owned())
        );
    }

    #[test]
    fn a_value_opens_for_its_use_alone() {
        let thread = ThreadKey::discord("1", "2").expect("ids");
        let context = |wish: &SecretRequest| secret_sealed_for("prod", &thread.tenant(), wish);
        let one = wish(&["a.example.com"]);
        let readable = SecretRequest { readable: true, ..one.clone() };
        let named = SecretRequest { name: "OTHER".to_owned(), ..one.clone() };
        for other in [&readable, &named, &wish(&["b.example.com"])] {
            assert_ne!(context(&one), context(other));
        }
        assert_eq!(context(&one), context(&one.clone()));
    }

    #[test]
    fn only_a_threads_own_sandbox_has_a_project() {
        let carried = |name: &str| Carried {
            repository: ForgeRepository {
                installation: 1,
                id: 1,
                name: name.to_owned(),
                address: String::new(),
                is_private: true,
                branch: "main".to_owned(),
            },
            default: None,
            folder: None,
            base: None,
        };
        let of = |repo: &str, carried: Option<Carried>| {
            let project = SandboxProject {
                repo: Some(repo.to_owned()),
                carried,
                ..SandboxProject::default()
            };
            SandboxRecord { project, ..SandboxRecord::new(0) }
        };
        let own = of("Acme/API@next", None);
        assert_eq!(project_of(&own).as_deref(), Some("acme/api"));
        // A forge serves the commits of every fork by their ids.
        for at in ["0123456", "0123456789abcdef0123456789abcdef01234567"] {
            let by_id = of(&format!("acme/api@{at}"), Some(carried("acme/api")));
            assert_eq!(project_of(&by_id), None, "{at}");
        }
        let mut from_snapshot = of("acme/api", None);
        from_snapshot.spec.snapshot = Some("kept".to_owned());
        assert_eq!(project_of(&from_snapshot), None);
        let elsewhere = "https://git.example.com/acme/api";
        assert_eq!(project_of(&of(elsewhere, None)), None);
        let brought = of(elsewhere, Some(carried("Acme/Web")));
        assert_eq!(project_of(&brought).as_deref(), Some("acme/web"));
        let mut named = own;
        named.sharing.name = "shop".parse().ok();
        assert!(named.sharing.name.is_some() && project_of(&named).is_none());
        assert_eq!(named_repository(&named).as_deref(), Some("acme/api"));
    }

    #[test]
    fn a_clone_from_inside_has_secrets_where_it_is_open() {
        let forge = BoundForge {
            base: "https://git.example.com".to_owned(),
            owners: BTreeSet::from(["acme".to_owned()]),
            ..BoundForge::default()
        };
        let mut lists = Repositories::default();
        lists.open(Some("C1"), "acme/api".to_owned());
        let of = |repo: &str, place: (Option<&BoundForge>, &str)| {
            let project =
                SandboxProject { repo: Some(repo.to_owned()), ..SandboxProject::default() };
            let sandbox = SandboxRecord { project, ..SandboxRecord::new(0) };
            project_in(&sandbox, &lists, place)
        };
        for repo in ["acme/api", "Acme/API.git@next", "https://github.com/acme/api/"] {
            let given = Some("acme/api".to_owned());
            assert_eq!(of(repo, (Some(&forge), "C1")), given, "{repo}");
            for elsewhere in ["C2", ""] {
                assert_eq!(of(repo, (Some(&forge), elsewhere)), None, "{repo}");
            }
            assert_eq!(of(repo, (None, "C2")), given, "{repo}");
        }
        assert_eq!(of("else/api", (Some(&forge), "C2")).as_deref(), Some("else/api"));
    }

    #[test]
    fn a_carried_checkout_has_secrets_where_it_is_open() {
        let mut lists = Repositories::default();
        lists.open(Some("C1"), "acme/web".to_owned());
        let repository = ForgeRepository {
            installation: 1,
            id: 1,
            name: "Acme/Web".to_owned(),
            address: String::new(),
            is_private: true,
            branch: "main".to_owned(),
        };
        let carried = Carried { repository, default: None, folder: None, base: None };
        let (repo, carried) = (Some("acme/web".to_owned()), Some(carried));
        let project = SandboxProject { repo, carried, ..SandboxProject::default() };
        let mut sandbox = SandboxRecord { project, ..SandboxRecord::new(0) };
        let of = |sandbox: &SandboxRecord, channel: &str| {
            project_in(sandbox, &lists, (None, channel)).is_some()
        };
        assert_eq!(["C1", "C2", ""].map(|channel| of(&sandbox, channel)), [true, false, false]);
        // Work of no channel takes none from a server that has some.
        let given = vec![GivenSecret { name: "NPM_TOKEN".to_owned(), hosts: Vec::new() }];
        sandbox.project.secrets = Some(GivenSecrets { given, ..GivenSecrets::default() });
        assert_eq!(["C1", "C2", ""].map(|channel| of(&sandbox, channel)), [true, false, true]);
        lists.close(Some("C1"), "acme/web");
        assert!(project_in(&sandbox, &lists, (None, "")).is_none());
    }

    #[test]
    fn a_value_is_one_line_of_ascii() {
        assert_eq!(usable_value(" postgres://u:p@h/db?a b \n"), Some("postgres://u:p@h/db?a b"));
        for none in ["short", "two\nlines-of-it", "schlüssel-mit-umlaut", "ghp_0123456789abcdef"] {
            assert_eq!(usable_value(none), None, "{none:?}");
        }
    }
}
