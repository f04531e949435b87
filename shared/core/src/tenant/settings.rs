//! Settings that the managers of a server or workspace have made in the chat: who may use Bobbin there, and defaults.
//!
//! One record per tenant, written under its version. It only narrows what the operator's configuration allows
//! ([`crate::tenant::access`]), so that nobody in a chat can open what the operator has closed.

mod listing;

pub use listing::{change as change_words, listing, network_words, places, secret_words};

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::base::credentials::redact;
use crate::base::ids::Ms;
use crate::base::person::{Membership, Outside, Person};
use crate::schema::{self, Shape, UnknownFields};
use crate::tenant::access::Refusal;
use crate::tenant::bindings::Bindings;
use crate::tenant::budgets::{BudgetKind, Budgets, MicroUsd};
use crate::tenant::environments::{
    self, ENVIRONMENT_BYTES_MAX, ENVIRONMENTS_MAX, Environments, ProjectSetting,
};
use crate::tenant::keys::Key;
use crate::tenant::own_keys::OwnKey;
use crate::tenant::project_networks::{NetworkAccess, NetworkRefused, ProjectNetworks};
use crate::tenant::project_secrets::{ProjectSecret, ProjectSecrets, SecretRefused, SecretRequest};
use crate::tenant::repositories::{self, REPOSITORIES_MAX, Repositories};
use crate::tenant::repositories_beside::RepositoriesBeside;
use crate::tenant::runtime_mode::RuntimeMode;
use crate::tenant::selection::{PullRequests, PullRequestsBy, SUBMODULES, Selection, review_bots};

/// Channels that have defaults of their own.
pub const CHANNELS_MAX: usize = 200;
/// Ids in each of the lists of channels and of people.
pub const IDS_MAX: usize = 200;
/// Changes that are kept.
pub const AUDIT_MAX: usize = 20;
/// Bytes of one value.
pub const VALUE_BYTES_MAX: usize = 300;
/// Bytes of a provider's name.
const PROVIDER_BYTES_MAX: usize = 40;

/// The settings of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Grows by one with every write; the condition of the next write. 0 means that it is not stored.
    pub version: u64,
    /// Channels in which Bobbin may be used; empty means all that the operator allows.
    pub open_channels: BTreeSet<String>,
    /// People and roles who may use it; empty means all whom the operator allows.
    pub open_to: BTreeSet<String>,
    /// Defaults of the tenant.
    pub defaults: Selection,
    /// Defaults of channels; they override the tenant's.
    pub channels: BTreeMap<String, Selection>,
    /// The last changes, newest last.
    pub audit: Vec<Changed>,
    /// All direct messages of a person are one thread; otherwise each one begins a thread. Only Slack has such
    /// messages.
    pub direct_in_one_thread: bool,
    /// The tenant's own keys, by their providers' words ([`crate::tenant::keys::Key::provider`]).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub own_keys: BTreeMap<String, OwnKey>,
    /// The repositories of a forge that may be used.
    #[serde(skip_serializing_if = "Repositories::is_empty")]
    pub repositories: Repositories,
    /// Owners of repositories that managers have bound.
    #[serde(skip_serializing_if = "Bindings::is_empty")]
    pub bindings: Bindings,
    /// What may be spent.
    #[serde(skip_serializing_if = "Budgets::is_empty")]
    pub budgets: Budgets,
    /// How projects are made ready.
    #[serde(skip_serializing_if = "Environments::is_empty")]
    pub environments: Environments,
    /// Repositories beside others.
    #[serde(skip_serializing_if = "RepositoriesBeside::is_empty")]
    pub beside: RepositoriesBeside,
    /// Secrets of projects.
    #[serde(skip_serializing_if = "ProjectSecrets::is_empty")]
    pub project_secrets: ProjectSecrets,
    /// What projects reach of the world.
    #[serde(skip_serializing_if = "ProjectNetworks::is_empty")]
    pub project_networks: ProjectNetworks,
    /// Stored fields that this build does not know; written back unchanged.
    #[serde(skip)]
    pub unknown: UnknownFields,
}

/// A change that was made.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Changed {
    /// Id of the message that requested it, so that a repeat is recognised.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// When it was changed (Unix milliseconds).
    pub at_ms: Ms,
    /// The person who made the change.
    pub by: Person,
    /// The change.
    pub change: SettingsChange,
}

/// A request about the settings.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum SettingsChange {
    /// Show them.
    Show,
    /// Set or clear a default.
    Default {
        /// The channel; `None` means the tenant.
        channel: Option<String>,
        /// The default that was changed.
        of: DefaultKind,
        /// The value; `None` clears it.
        value: Option<String>,
    },
    /// Allow a channel, a person or a role; the first entry of a list closes Bobbin to all others.
    Allow {
        /// The list.
        list: SettingsList,
        /// The platform's id of the channel, person or role.
        id: String,
    },
    /// Take that back; when the last entry is removed, Bobbin is open to all whom the operator allows.
    Disallow {
        /// The list.
        list: SettingsList,
        /// The platform's id of the channel, person or role.
        id: String,
    },
    /// Open a repository of a forge, or all of them.
    Open {
        /// The channel; `None` means the tenant.
        channel: Option<String>,
        /// `owner/name`, or `all`.
        repository: String,
    },
    /// Close it again.
    Close {
        /// The channel; `None` means the tenant.
        channel: Option<String>,
        /// As it was opened.
        repository: String,
    },
    /// Set or clear budgets.
    Budgets {
        /// In millionths of a US dollar; `None` clears one.
        set: BTreeMap<BudgetKind, Option<MicroUsd>>,
    },
    /// Say how the project of a repository is made ready.
    Environment {
        /// `owner/name`.
        repository: String,
        /// A recipe, [`environments::OFF`] or [`environments::OWN`].
        text: String,
        /// The repositories beside it that the text names; filled in where the text is parsed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        beside: Vec<String>,
    },
    /// Store a secret of a project, whose value is entered on a page.
    Secret(SecretRequest),
    /// Remove a secret of a project.
    RemoveSecret {
        /// `owner/name`.
        repository: String,
        /// Its name.
        name: String,
    },
    /// Set what a project's sandboxes can reach.
    Network {
        /// `owner/name`.
        repository: String,
        /// How much.
        access: NetworkAccess,
        /// Hosts beside the registries.
        hosts: Vec<String>,
    },
    /// Make all direct messages of a person one thread, or each one a thread of its own. Only Slack has such messages.
    Direct {
        /// They are one thread.
        one_thread: bool,
    },
}

/// Kinds of defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DefaultKind {
    /// The repository that a new sandbox clones.
    Repo,
    /// The model of a turn.
    Model,
    /// The agent of a turn.
    Agent,
    /// The provider of a new sandbox.
    Provider,
    /// The runtime mode of a new sandbox.
    Runtime,
    /// How pull requests are opened.
    PullRequests,
    /// Who may have something pushed.
    PullRequestsBy,
    /// Whether submodules come with a repository of the forge.
    Submodules,
    /// Programs at the forge whose reviews count.
    ReviewBots,
}

/// A list of the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingsList {
    /// Channels in which Bobbin may be used.
    Channels,
    /// People and roles who may use it.
    People,
}

/// Why a change was not made, worded for the person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotChanged {
    /// Only managers of the server or workspace may change settings.
    #[error("Only people who may manage this server or workspace can change Bobbin's settings.")]
    NotAllowed,
    /// A bound is reached.
    #[error("At most {0} can be listed. Remove one first.")]
    Full(usize),
    /// Two defaults conflict.
    #[error(
        "The agent {agent} needs the runtime {needed}, and the default runtime here would be {there}. Clear one of them first, or choose two that match."
    )]
    Apart {
        /// The default agent.
        agent: String,
        /// The runtime mode that it needs.
        needed: &'static str,
        /// The default runtime mode.
        there: String,
    },
    /// The value is invalid.
    #[error("`{0}` cannot be used as {1}.")]
    Unusable(String, &'static str),
    /// The value is an address that contains a secret: it is not repeated.
    #[error(
        "An address with a name or a token in it cannot be used as {0}. If it was a token, revoke it: people can read it in this chat now."
    )]
    Secret(&'static str),
    /// A secret of a project cannot be stored or removed.
    #[error("{0} Nothing was changed.")]
    ProjectSecret(#[from] SecretRefused),
    /// What a project reaches cannot be said so.
    #[error("{0} Nothing was changed.")]
    ProjectNetwork(#[from] NetworkRefused),
    /// The value is the address of a page inside a repository.
    #[error("That is a page inside a repository. Use {0} instead.")]
    Page(String),
}

impl Settings {
    /// The stored form.
    ///
    /// # Errors
    /// The encoder's; every field has a JSON form.
    pub fn encode(&self) -> Result<String, serde_json::Error> {
        schema::write(Shape::Settings, self, &self.unknown)
    }

    /// The tenant's own key of a provider, if it has one.
    #[must_use]
    pub fn own_key(&self, key: Key) -> Option<&OwnKey> {
        self.own_keys.get(key.provider()?)
    }

    /// Fingerprint of the tenant's own key with which the next sandbox is created; `None` means the stack's
    /// credentials.
    #[must_use]
    pub fn sandbox_credentials(&self) -> Option<String> {
        let own = self.own_key(Key::OF_ACCOUNT)?;
        Some(own.fingerprint.clone())
    }

    /// Why the repository (`owner/name`, in small letters) has no prebuild; `None`: it may have one.
    #[must_use]
    pub fn why_no_prebuild(&self, repository: &str) -> Option<&'static str> {
        if self.environments.of(repository) == ProjectSetting::Off {
            return Some("managers have switched its set-up off");
        }
        if !self.beside.of(repository).is_empty() {
            return Some("there are repositories beside it");
        }
        let secrets = self.project_secrets.of(repository)?;
        let is_for_set_up = secrets.values().any(|secret| secret.set_up);
        is_for_set_up.then_some("a secret is for its set-up")
    }

    /// Whether the settings admit a person; `user` is their id. The operator is always admitted.
    ///
    /// # Errors
    /// The [`Refusal`] to tell the person.
    pub fn admit(&self, membership: &Membership, user: &str) -> Result<(), Refusal> {
        if membership.operates {
            return Ok(());
        }
        match membership.outside {
            Some(Outside::Outsider) => return Err(Refusal::Outsider),
            Some(Outside::Unread) => return Err(Refusal::Unread),
            None => {}
        }
        if !self.open_channels.is_empty() && !self.open_channels.contains(&membership.channel) {
            return Err(Refusal::Channel);
        }
        let known = |id: &str| self.open_to.contains(id);
        if self.open_to.is_empty() || known(user) || membership.roles.iter().any(|role| known(role))
        {
            Ok(())
        } else {
            Err(Refusal::Person)
        }
    }

    /// The defaults of a channel: its own, then the tenant's.
    #[must_use]
    pub fn defaults_of(&self, channel: &str) -> Selection {
        match self.channels.get(channel) {
            Some(own) => own.or(&self.defaults),
            None => self.defaults.clone(),
        }
    }

    /// The person who set this kind's default for a channel, if there is a default; a person without a name if that was
    /// long ago.
    #[must_use]
    pub fn default_set_by(&self, kind: DefaultKind, channel: &str) -> Option<Person> {
        let defaults = self.defaults_of(channel);
        let there = kind.of(&defaults).as_deref()?;
        let made_it = |made: &&Changed| match &made.change {
            SettingsChange::Default { of, value: Some(value), .. } => {
                *of == kind && value.trim() == there
            }
            _ => false,
        };
        let made = self.audit.iter().rfind(made_it);
        Some(made.map_or_else(Person::default, |made| made.by.clone()))
    }

    /// The settings after a change; `membership` says whether the person may make it. A change whose `id` was already
    /// made is not made again.
    ///
    /// # Errors
    /// [`NotChanged`], to tell the person.
    pub fn changed(
        &self,
        id: &str,
        change: &SettingsChange,
        by: &Person,
        membership: &Membership,
        now_ms: Ms,
    ) -> Result<Self, NotChanged> {
        if *change == SettingsChange::Show {
            return Ok(self.clone());
        }
        if !membership.manages {
            return Err(NotChanged::NotAllowed);
        }
        if self.audit.iter().any(|made| made.id == id) {
            return Ok(self.clone());
        }
        let mut next = self.clone();
        match change {
            SettingsChange::Show => {}
            SettingsChange::Direct { one_thread } => next.direct_in_one_thread = *one_thread,
            SettingsChange::Budgets { set } => {
                set.iter().for_each(|(kind, amount)| next.budgets.set(*kind, *amount));
            }
            SettingsChange::Environment { repository, text, beside } => {
                let name = environments::repository(repository)
                    .ok_or_else(|| unusable(repository, "a repository: name it as owner/name"))?;
                if text.len() > ENVIRONMENT_BYTES_MAX {
                    let what = "an environment: it is longer than 3000 bytes. Put the steps into a script of the repository";
                    return Err(unusable(&name, what));
                }
                if !next.environments.set(&name, text) {
                    return Err(NotChanged::Full(ENVIRONMENTS_MAX));
                }
                if !next.beside.set(&name, beside) {
                    return Err(NotChanged::Full(ENVIRONMENTS_MAX));
                }
            }
            SettingsChange::Secret(_) => return Err(SecretRefused::NoValue.into()),
            SettingsChange::RemoveSecret { repository, name } => {
                next.project_secrets.remove(repository, name)?;
            }
            SettingsChange::Network { repository, access, hosts } => {
                next.project_networks.set(repository, *access, hosts)?;
            }
            SettingsChange::Default { channel, of, value } => {
                let value = value.as_deref().map(|value| of.usable(value)).transpose()?;
                next.set_default(channel.as_deref(), *of, value)?;
                let place = channel.as_deref().unwrap_or_default();
                fit_together(&next.defaults_of(place.trim()))?;
            }
            SettingsChange::Allow { list, id } => {
                let id = usable_id(id)?;
                let ids = next.list(*list);
                if ids.len() >= IDS_MAX && !ids.contains(&id) {
                    return Err(NotChanged::Full(IDS_MAX));
                }
                ids.insert(id);
            }
            SettingsChange::Disallow { list, id } => {
                next.list(*list).remove(id.trim());
            }
            SettingsChange::Open { channel, repository } => {
                let name = repositories::usable(repository).ok_or_else(|| {
                    unusable(repository, "a repository: name it as owner/name, or say all")
                })?;
                let channel = channel.as_deref().map(usable_id).transpose()?;
                let there = next.repositories.of(channel.as_deref());
                let is_full = there.is_some_and(|list| list.len() >= REPOSITORIES_MAX);
                if is_full || next.repositories.channels.len() >= CHANNELS_MAX {
                    return Err(NotChanged::Full(REPOSITORIES_MAX));
                }
                next.repositories.open(channel.as_deref(), name);
            }
            SettingsChange::Close { channel, repository } => {
                next.repositories.close(channel.as_deref().map(str::trim), repository);
            }
        }
        next.note_change(id, change, by, now_ms);
        Ok(next)
    }

    /// The settings with a project's secret, whose sealed value was entered on a page by a person who may manage the
    /// place. A repeat of one that was stored is not stored again.
    ///
    /// # Errors
    /// [`NotChanged`], to tell the person.
    pub fn with_secret(
        &self,
        id: &str,
        wish: &SecretRequest,
        secret: ProjectSecret,
    ) -> Result<Self, NotChanged> {
        if self.audit.iter().any(|made| made.id == id) {
            return Ok(self.clone());
        }
        self.project_secrets.room(wish)?;
        let mut next = self.clone();
        let (by, since_ms) = (secret.by.clone(), secret.since_ms);
        next.project_secrets.set(wish, secret);
        next.note_change(id, &SettingsChange::Secret(wish.clone()), &by, since_ms);
        Ok(next)
    }

    fn note_change(&mut self, id: &str, change: &SettingsChange, by: &Person, at_ms: Ms) {
        let (id, by, change) = (id.to_owned(), by.clone(), change.clone());
        self.audit.push(Changed { id, at_ms, by, change });
        let surplus = self.audit.len().saturating_sub(AUDIT_MAX);
        self.audit.drain(..surplus);
    }

    fn list(&mut self, list: SettingsList) -> &mut BTreeSet<String> {
        match list {
            SettingsList::Channels => &mut self.open_channels,
            SettingsList::People => &mut self.open_to,
        }
    }

    fn set_default(
        &mut self,
        channel: Option<&str>,
        of: DefaultKind,
        value: Option<String>,
    ) -> Result<(), NotChanged> {
        let Some(channel) = channel else {
            of.set(&mut self.defaults, value);
            return Ok(());
        };
        let channel = usable_id(channel)?;
        if self.channels.len() >= CHANNELS_MAX && !self.channels.contains_key(&channel) {
            return Err(NotChanged::Full(CHANNELS_MAX));
        }
        let own = self.channels.entry(channel.clone()).or_default();
        of.set(own, value);
        if own.is_empty() {
            self.channels.remove(&channel);
        }
        Ok(())
    }
}

/// All about one kind of default: a new kind is a variant, its row, and its field of [`Selection`].
struct KindRow {
    /// The word that people type.
    word: &'static str,
    /// The heading above its value.
    label: &'static str,
    /// What a value is, for the person who typed an unusable one.
    expected: &'static str,
    /// The only possible values; empty if there are others.
    choices: &'static [&'static str],
    of: fn(&Selection) -> &Option<String>,
    of_mut: fn(&mut Selection) -> &mut Option<String>,
}

impl DefaultKind {
    /// All kinds, in display order.
    pub const ALL: [Self; 9] = [
        Self::Repo,
        Self::Model,
        Self::Agent,
        Self::Provider,
        Self::Runtime,
        Self::PullRequests,
        Self::PullRequestsBy,
        Self::Submodules,
        Self::ReviewBots,
    ];

    const fn row(self) -> KindRow {
        match self {
            Self::Repo => KindRow {
                word: "repo",
                label: "Repository",
                expected: "a repository: write it as owner/name or as an https address",
                choices: &[],
                of: |selection| &selection.repo,
                of_mut: |selection| &mut selection.repo,
            },
            Self::Model => KindRow {
                word: "model",
                label: "Model",
                expected: "a model: write it as provider/model",
                choices: &[],
                of: |selection| &selection.model,
                of_mut: |selection| &mut selection.model,
            },
            Self::Agent => KindRow {
                word: "agent",
                label: "Agent",
                expected: "an agent: name one, for example plan, claude or codex",
                choices: &[],
                of: |selection| &selection.agent,
                of_mut: |selection| &mut selection.agent,
            },
            Self::Provider => KindRow {
                word: "provider",
                label: "Sandbox provider",
                expected: "a provider: name one that is set up here, for example daytona",
                choices: &[],
                of: |selection| &selection.provider,
                of_mut: |selection| &mut selection.provider,
            },
            Self::Runtime => KindRow {
                word: "runtime",
                label: "Runtime",
                expected: "a runtime: choose opencode, compat, native or outside",
                choices: &RuntimeMode::NAMES,
                of: |selection| &selection.runtime,
                of_mut: |selection| &mut selection.runtime,
            },
            Self::PullRequests => KindRow {
                word: "pull-requests",
                label: "Pull requests",
                expected: "a way to open pull requests: choose draft, ready or off",
                choices: &PullRequests::NAMES,
                of: |selection| &selection.pull_requests,
                of_mut: |selection| &mut selection.pull_requests,
            },
            Self::PullRequestsBy => KindRow {
                word: "pull-requests-by",
                label: "Pull requests by",
                expected: "who may open pull requests: choose everyone or linked",
                choices: &PullRequestsBy::NAMES,
                of: |selection| &selection.pull_requests_by,
                of_mut: |selection| &mut selection.pull_requests_by,
            },
            Self::Submodules => KindRow {
                word: "submodules",
                label: "Submodules",
                expected: "whether submodules come with a repository: choose no or yes",
                choices: &SUBMODULES,
                of: |selection| &selection.submodules,
                of_mut: |selection| &mut selection.submodules,
            },
            Self::ReviewBots => KindRow {
                word: "review-bots",
                label: "Review bots",
                expected: "the bots whose reviews count: up to ten names with commas between them",
                choices: &[],
                of: |selection| &selection.review_bots,
                of_mut: |selection| &mut selection.review_bots,
            },
        }
    }

    /// The word that people type.
    #[must_use]
    pub const fn word(self) -> &'static str {
        self.row().word
    }

    /// The heading above its value.
    #[must_use]
    pub const fn label(self) -> &'static str {
        self.row().label
    }

    /// The only possible values; empty if there are others.
    pub(super) const fn choices(self) -> &'static [&'static str] {
        self.row().choices
    }

    /// The kind with this word.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// The value without surrounding white space, if it is valid.
    ///
    /// # Errors
    /// [`NotChanged::Unusable`].
    pub fn usable(self, value: &str) -> Result<String, NotChanged> {
        let value = value.trim();
        let KindRow { expected, choices, .. } = self.row();
        let unusable = || unusable(value, expected);
        let name = value.to_ascii_lowercase();
        if !choices.is_empty() {
            return if choices.contains(&&*name) { Ok(name) } else { Err(unusable()) };
        }
        if self == Self::Provider {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            let fits = (1..=PROVIDER_BYTES_MAX).contains(&value.len()) && value.chars().all(plain);
            return if fits { Ok(name) } else { Err(unusable()) };
        }
        if self == Self::ReviewBots {
            let names = review_bots(value).join(",");
            return if names.is_empty() { Err(unusable()) } else { Ok(names) };
        }
        // In the form in which people copy it.
        let value = match self {
            Self::Repo => value.trim_end_matches('/'),
            _ => value,
        };
        if self == Self::Repo
            && let Some(repo) = page_of(repositories::apart(value).0)
        {
            return Err(NotChanged::Page(repo));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/@+~".contains(c);
        let fits = !value.is_empty()
            && value.len() <= VALUE_BYTES_MAX
            && !value.starts_with('-')
            && value.chars().all(plain);
        let shaped = match self {
            Self::Repo => is_repo(value),
            Self::Model => value
                .split_once('/')
                .is_some_and(|(provider, model)| !provider.is_empty() && !model.is_empty()),
            _ => !value.contains('/'),
        };
        if fits && shaped { Ok(value.to_owned()) } else { Err(unusable()) }
    }

    /// The selection's value of this kind.
    #[must_use]
    pub fn of(self, selection: &Selection) -> &Option<String> {
        (self.row().of)(selection)
    }

    /// Sets the selection's value of this kind.
    pub fn set(self, selection: &mut Selection, value: Option<String>) {
        *(self.row().of_mut)(selection) = value;
    }
}

/// Checks that a default agent and a default runtime mode fit together.
fn fit_together(defaults: &Selection) -> Result<(), NotChanged> {
    let (Some(agent), Some(runtime)) = (&defaults.agent, &defaults.runtime) else {
        return Ok(());
    };
    match RuntimeMode::of_agent(agent) {
        Some(needed) if needed.name() != runtime => Err(NotChanged::Apart {
            agent: agent.clone(),
            needed: needed.name(),
            there: runtime.clone(),
        }),
        _ => Ok(()),
    }
}

/// The error for an unusable value; shows no secret that the value contains.
fn unusable(value: &str, what: &'static str) -> NotChanged {
    if names_somebody(value) {
        return NotChanged::Secret(what);
    }
    let value = crate::text::one_line(value);
    // A query may contain a token under any name.
    let value = match value.split_once('?') {
        Some((address, _)) if address.contains("://") => format!("{address}?…"),
        _ => value,
    };
    // Before it is shortened: half of a credential would not be recognised.
    let shown = crate::text::shorten(&redact(&value), 60);
    NotChanged::Unusable(shown, what)
}

/// Whether it is an address with a name, a password or a token before its host.
fn names_somebody(value: &str) -> bool {
    let (has_scheme, rest) = match value.split_once("://") {
        Some((_, rest)) => (true, rest),
        None => (false, value),
    };
    let authority = rest.split('/').next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(before, _)| has_scheme || before.contains(':'))
}

/// The name of the repository to which a page's address on a known host belongs; `None` if it is not such a page.
fn page_of(value: &str) -> Option<String> {
    let rest = value.strip_prefix("https://")?;
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = rest.split_once('/')?;
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let (owner, name) = (parts.first()?, parts.get(1)?);
    let repo = match host.to_ascii_lowercase().as_str() {
        "github.com" | "www.github.com" if parts.len() > 2 => format!("{owner}/{name}"),
        "bitbucket.org" if parts.len() > 2 => format!("https://bitbucket.org/{owner}/{name}"),
        "gitlab.com" => {
            let at = parts.iter().position(|part| *part == "-").filter(|at| *at >= 2)?;
            format!("https://gitlab.com/{}", parts[..at].join("/"))
        }
        _ => return None,
    };
    DefaultKind::Repo.usable(&repo).ok()
}

/// `owner/name` (GitHub), or an https address without credentials and without parent-directory steps; either with a
/// branch, tag or commit behind `@`.
fn is_repo(value: &str) -> bool {
    let (value, at) = repositories::apart(value);
    if !at.is_none_or(repositories::is_ref) {
        return false;
    }
    let part = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains(':');
    match value.strip_prefix("https://") {
        Some(rest) => {
            !rest.contains('@')
                && rest.split('/').count() >= 2
                && rest.split('/').enumerate().all(|(n, one)| match n {
                    0 => !one.is_empty() && !one.starts_with('.'),
                    _ => part(one),
                })
        }
        None => value.split('/').count() == 2 && value.split('/').all(part),
    }
}

/// Whether two people who named these want the same checkout.
#[must_use]
pub fn is_same_checkout(one: &str, other: &str) -> bool {
    let wanted = |repo| repositories::apart(repo).1;
    let number = |repo| repositories::numbered(repo).1;
    clone_address(one) == clone_address(other)
        && wanted(one.trim()) == wanted(other.trim())
        && number(one.trim()) == number(other.trim())
}

/// The host of a repository that is named without one.
pub(crate) const DEFAULT_HOST: &str = "https://github.com/";

/// The address to clone a repository from, whatever is wanted of it: https, without secrets. Two ways to name one
/// repository give the same address.
#[must_use]
pub fn clone_address(repo: &str) -> String {
    let (repo, _) = repositories::apart(repo.trim());
    let repo = repo.trim_end_matches('/');
    let repo = repo.strip_suffix(".git").unwrap_or(repo);
    match repo.strip_prefix("https://") {
        Some(rest) => {
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            format!("https://{}/{path}", host.to_lowercase())
        }
        None => format!("{DEFAULT_HOST}{repo}"),
    }
}

fn usable_id(id: &str) -> Result<String, NotChanged> {
    let id = id.trim();
    let plain = !id.is_empty() && id.len() <= 64 && id.bytes().all(|b| b.is_ascii_alphanumeric());
    if plain {
        Ok(id.to_owned())
    } else {
        Err(unusable(id, "an id of a channel, a person or a role"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manager() -> Membership {
        Membership {
            channel: "10".to_owned(),
            roles: vec!["50".to_owned()],
            manages: true,
            outside: None,
            operates: false,
        }
    }

    #[test]
    fn operator_bypasses_tenant_settings() {
        let mut closed = Settings::default();
        closed.open_channels.insert("20".to_owned());
        closed.open_to.insert("1".to_owned());
        let operator =
            Membership { channel: "10".to_owned(), operates: true, ..Membership::default() };
        assert_eq!(closed.admit(&operator, ""), Ok(()));
        let anybody = Membership { operates: false, ..operator };
        assert_eq!(closed.admit(&anybody, ""), Err(Refusal::Channel));
    }

    #[test]
    fn outsiders_are_refused_with_reason() {
        let open = Settings::default();
        let who = |outside| Membership { outside, ..manager() };
        assert_eq!(open.admit(&who(None), "1"), Ok(()));
        let outsider = open.admit(&who(Some(Outside::Outsider)), "1");
        assert_eq!(outsider, Err(Refusal::Outsider));
        let unread = open.admit(&who(Some(Outside::Unread)), "1");
        assert_eq!(unread, Err(Refusal::Unread));
    }

    fn set(settings: &Settings, change: SettingsChange) -> Settings {
        let id = format!("{change:?}");
        settings.changed(&id, &change, &Person::default(), &manager(), 7).expect("may")
    }

    #[test]
    fn only_managers_change_settings() {
        let change = SettingsChange::Allow { list: SettingsList::Channels, id: "10".to_owned() };
        let visitor = Membership::default();
        let refused = Settings::default().changed("c", &change, &Person::default(), &visitor, 7);
        assert_eq!(refused, Err(NotChanged::NotAllowed));
        let shown = Settings::default().changed(
            "c",
            &SettingsChange::Show,
            &Person::default(),
            &visitor,
            7,
        );
        assert_eq!(shown, Ok(Settings::default()));
    }

    #[test]
    fn only_managers_make_direct_messages_one_thread() {
        let fresh = Settings::default();
        assert!(!fresh.direct_in_one_thread);
        let change = SettingsChange::Direct { one_thread: true };
        let visitor = Membership::default();
        let refused = fresh.changed("a", &change, &Person::default(), &visitor, 1);
        assert_eq!(refused, Err(NotChanged::NotAllowed));
        let one = set(&fresh, change.clone());
        assert!(one.direct_in_one_thread);
        let each = set(&one, SettingsChange::Direct { one_thread: false });
        assert!(!each.direct_in_one_thread);
        // The first change again, delivered late.
        assert_eq!(set(&each, change), each);
    }

    #[test]
    fn settings_only_narrow_access() {
        let open = Settings::default();
        assert_eq!(open.admit(&manager(), "1"), Ok(()));
        let allow = |settings: &Settings, list, id: &str| {
            set(settings, SettingsChange::Allow { list, id: id.to_owned() })
        };
        let elsewhere = allow(&open, SettingsList::Channels, "11");
        assert_eq!(elsewhere.admit(&manager(), "1"), Err(Refusal::Channel));
        let here = allow(&elsewhere, SettingsList::Channels, "10");
        assert_eq!(here.admit(&manager(), "1"), Ok(()));
        let by_role = allow(&here, SettingsList::People, "50");
        assert_eq!(by_role.admit(&manager(), "1"), Ok(()));
        let other = allow(&here, SettingsList::People, "51");
        assert_eq!(other.admit(&manager(), "1"), Err(Refusal::Person));
        assert_eq!(other.admit(&manager(), "51"), Ok(()));
        let taken_back = set(
            &other,
            SettingsChange::Disallow { list: SettingsList::People, id: "51".to_owned() },
        );
        assert_eq!(taken_back.admit(&manager(), "1"), Ok(()));
        assert_eq!(taken_back.audit.len(), 4);
    }

    #[test]
    fn channel_default_outranks_tenant_default() {
        let default = |settings: &Settings, channel: Option<&str>, value: Option<&str>| {
            set(
                settings,
                SettingsChange::Default {
                    channel: channel.map(str::to_owned),
                    of: DefaultKind::Model,
                    value: value.map(str::to_owned),
                },
            )
        };
        let settings = default(&Settings::default(), None, Some("anthropic/a"));
        let settings = default(&settings, Some("10"), Some(" openai/b "));
        let model = |settings: &Settings, channel| settings.defaults_of(channel).model;
        assert_eq!(model(&settings, "10").as_deref(), Some("openai/b"));
        assert_eq!(model(&settings, "11").as_deref(), Some("anthropic/a"));
        let settings = default(&settings, Some("10"), None);
        assert!(settings.channels.is_empty());
    }

    #[test]
    fn refusals_never_echo_secrets() {
        const SECRET: &str = "ghp_EXAMPLEEXAMPLEEXAMPLEEXAMPLEEXAMPLE1";
        let typed = [
            format!("https://ada:{SECRET}@github.com/acme/api"),
            format!("https://{SECRET}@github.com/acme/api"),
            format!("https://ada:hunter2@git.example.com/{SECRET}"),
            format!("ada:{SECRET}@github.com/acme/api"),
            format!("http://git.example.com/acme/api?private={SECRET}"),
            format!("{} {SECRET}", "x".repeat(20)),
            // Cut in the middle, it would not be recognised.
            format!("{} {SECRET}", "x".repeat(50)),
            format!("/{SECRET}/"),
        ];
        for typed in &typed {
            for kind in DefaultKind::ALL {
                if let Err(refused) = kind.usable(typed) {
                    let refused = refused.to_string();
                    let half = &SECRET[..SECRET.len() / 2];
                    assert!(!refused.contains(half), "{kind:?}: {refused}");
                    assert!(!refused.contains("hunter2"), "{kind:?}: {refused}");
                }
            }
            let id = usable_id(typed).expect_err("no id").to_string();
            assert!(!id.contains(SECRET), "{id}");
        }
        let refused = DefaultKind::Repo.usable(&typed[0]).expect_err("refused");
        assert_eq!(
            refused.to_string(),
            "An address with a name or a token in it cannot be used as a repository: write it as owner/name or as an https address. If it was a token, revoke it: people can read it in this chat now."
        );
    }

    #[test]
    fn copied_repository_addresses_are_understood() {
        for (typed, taken) in [
            ("https://github.com/acme/trunk/", "https://github.com/acme/trunk"),
            (" acme/trunk/ ", "acme/trunk"),
            ("https://github.com/acme/trunk.git", "https://github.com/acme/trunk.git"),
            ("https://git.example.com/a/b/tree/main", "https://git.example.com/a/b/tree/main"),
            ("https://gitlab.com/a/b/c", "https://gitlab.com/a/b/c"),
        ] {
            assert_eq!(DefaultKind::Repo.usable(typed).as_deref(), Ok(taken));
        }
        for (page, of) in [
            ("https://github.com/acme/trunk/tree/main", "acme/trunk"),
            ("https://github.com/acme/trunk/pull/3", "acme/trunk"),
            ("https://github.com/acme/trunk/blob/main/a.rs#L3", "acme/trunk"),
            ("https://GitHub.com/acme/trunk/issues?q=is", "acme/trunk"),
            ("https://gitlab.com/a/b/c/-/tree/main", "https://gitlab.com/a/b/c"),
            ("https://bitbucket.org/a/b/src/main/", "https://bitbucket.org/a/b"),
        ] {
            let refused = DefaultKind::Repo.usable(page).expect_err(page).to_string();
            assert_eq!(refused, format!("That is a page inside a repository. Use {of} instead."));
        }
    }

    #[test]
    fn bad_value_refusal_suggests_valid_one() {
        for good in [
            "acme/api",
            "acme/api@release-2",
            "https://git.example.com/acme/api.git",
            "https://git.example.com/acme/api@feature/x",
            "https://github.com/acme/api@feature/x",
            "https://example.com:8443/x",
        ] {
            assert_eq!(DefaultKind::Repo.usable(good).as_deref(), Ok(good));
        }
        for bad in [
            "",
            "api",
            "--upload-pack=x/y",
            "acme/../etc",
            "../x",
            "https://token@example.com/x",
            "https://example.com",
            "ssh://x/y",
            "file:///etc/x",
            "http://x/y",
            "a/b;rm",
            "acme/api@",
            "acme/api@../x",
            "acme/api@--upload-pack=x",
            "a/$(x)",
        ] {
            let refused = DefaultKind::Repo.usable(bad).expect_err(bad).to_string();
            assert!(refused.contains("write it as owner/name"), "{refused}");
        }
        assert!(DefaultKind::Model.usable("gpt").is_err());
        assert!(DefaultKind::Agent.usable("build").is_ok());
        assert_eq!(DefaultKind::Provider.usable(" Vercel ").as_deref(), Ok("vercel"));
        assert_eq!(
            DefaultKind::Provider.usable("my cloud").expect_err("two words").to_string(),
            "`my cloud` cannot be used as a provider: name one that is set up here, for example daytona."
        );
    }

    #[test]
    fn repeated_change_is_made_once() {
        let change = SettingsChange::Default {
            channel: None,
            of: DefaultKind::Agent,
            value: Some("plan".to_owned()),
        };
        let once = Settings::default()
            .changed("c1", &change, &Person::default(), &manager(), 7)
            .expect("may");
        let twice = once.changed("c1", &change, &Person::default(), &manager(), 9);
        assert_eq!(twice, Ok(once));
    }

    #[test]
    fn repository_names_share_one_address() {
        for name in [
            "acme/api",
            "acme/api.git",
            "https://GitHub.com/acme/api",
            "https://github.com/acme/api.git/",
            "acme/api@v1",
            "https://github.com/acme/api.git@feature/x",
        ] {
            assert_eq!(clone_address(name), "https://github.com/acme/api");
        }
        assert_eq!(
            clone_address("https://git.example.com:8443/Team/Repo"),
            "https://git.example.com:8443/Team/Repo"
        );
    }

    #[test]
    fn another_ref_is_another_checkout() {
        assert!(is_same_checkout("acme/api", "https://github.com/acme/api.git"));
        assert!(is_same_checkout("acme/api@v1", "https://github.com/acme/api@v1"));
        assert!(!is_same_checkout("acme/api", "acme/api@v1"));
    }

    #[test]
    fn lists_and_audit_are_bounded() {
        let mut settings = Settings::default();
        for n in 0..IDS_MAX {
            settings.open_channels.insert(format!("c{n}"));
        }
        let more = SettingsChange::Allow { list: SettingsList::Channels, id: "more".to_owned() };
        let refused = settings.changed("c", &more, &Person::default(), &manager(), 7);
        assert_eq!(refused, Err(NotChanged::Full(IDS_MAX)));
        for n in 0..2 * AUDIT_MAX {
            settings = set(
                &settings,
                SettingsChange::Allow { list: SettingsList::People, id: format!("p{n}") },
            );
        }
        assert_eq!(settings.audit.len(), AUDIT_MAX);
    }
}
