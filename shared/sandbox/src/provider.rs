//! The interface to the providers that run sandboxes.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::time::Duration;

use async_trait::async_trait;
use bobbin_core::base::endpoint::{Endpoint, NoEndpoint};
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, SandboxKey, Tenant};
use bobbin_core::records::account::Account;
use bobbin_core::records::sandbox::SandboxState;
use bobbin_core::text::span;
use tokio::time::Instant;

use crate::labels::{
    LABEL_GENERATION, LABEL_KEYS, LABEL_STACK_ID, LABEL_TENANT, LABEL_THREAD, PLACEHOLDERS,
    StackIdentity, labels,
};
use crate::snapshot::{Snapshot, SnapshotName, SnapshotState};

const DAY_MS: u64 = 24 * 60 * 60_000;

/// A sandbox, as its provider describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// The provider's id.
    pub id: String,
    /// Our name, made of key and generation; unique at the provider.
    pub name: String,
    /// Owner and stack ([`crate::labels`]).
    pub labels: BTreeMap<String, String>,
    /// Its state.
    pub state: SandboxState,
    /// The provider's own state word; may be empty.
    pub said: String,
    /// Creation time, if the provider reports it.
    pub created_ms: Option<Ms>,
    /// When the provider destroys it by itself, whatever it is doing then; `None` if not reported.
    pub ends_ms: Option<Ms>,
    /// Address for commands and files, if the provider reported it; only the provider reads this.
    pub exec_base: Option<String>,
}

impl Sandbox {
    /// Sandbox key and generation, from its labels.
    #[must_use]
    pub fn owner(&self) -> Option<(SandboxKey, u32)> {
        Some((
            self.labels.get(LABEL_THREAD)?.parse().ok()?,
            self.labels.get(LABEL_GENERATION)?.parse().ok()?,
        ))
    }

    /// Whether it has the labels of this stack, key and generation: only then a taken name is adopted. The tenant
    /// follows from the thread; a sandbox created before the tenant or the stack's id was a label still counts as ours.
    #[must_use]
    pub fn belongs_to(&self, stack: StackIdentity<'_>, key: &SandboxKey, generation: u32) -> bool {
        !self.is_foreign(stack.id)
            && labels(stack, key, generation)
                .iter()
                .filter(|(name, _)| ![LABEL_TENANT, LABEL_STACK_ID].contains(&name.as_str()))
                .all(|(name, value)| self.labels.get(name) == Some(value))
    }

    /// The state of a sandbox found under the name of this key and generation, if it is ours.
    ///
    /// # Errors
    /// It does not have this stack's labels.
    pub(crate) fn adopted(
        self,
        stack: StackIdentity<'_>,
        key: &SandboxKey,
        generation: u32,
    ) -> ProviderResult<SandboxState> {
        if self.belongs_to(stack, key, generation) {
            return Ok(self.state);
        }
        let advice = format!(
            "A sandbox named {} exists, but this stack did not create it. The operator has to rename or delete it.",
            self.name
        );
        Err(Failure::NonRecoverable { advice }.into())
    }

    /// Whether it has placeholders for the model keys.
    #[must_use]
    pub fn has_placeholders(&self) -> bool {
        self.labels.get(LABEL_KEYS).map(String::as_str) == Some(PLACEHOLDERS)
    }

    /// Whether its label names another stack than this.
    #[must_use]
    pub fn is_foreign(&self, stack_id: &str) -> bool {
        let said = self.labels.get(LABEL_STACK_ID);
        said.is_some_and(|said| said != stack_id)
    }
}

/// Result of a script in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptOutput {
    /// Exit status; -1 when the shell could not be started.
    pub exit_code: i64,
    /// Standard output and standard error, merged.
    pub text: String,
}

/// A secret that the provider is to keep outside the sandboxes. Its value must not be logged, so there is no `Debug`.
pub struct HostedSecret {
    /// The variable that holds the placeholder in a sandbox.
    pub variable: String,
    /// The value, which no sandbox sees.
    pub value: String,
    /// Identifies the value without revealing it.
    pub version: String,
    /// The only hosts that may receive it; `*.` before a domain stands for all below it.
    pub hosts: Vec<String>,
    /// The tenant that owns it; `None`: the stack.
    pub owner: Option<Tenant>,
    /// The name of the sandbox that it is for alone; `None`: for all.
    pub sandbox: Option<String>,
}

/// The placeholder of a secret in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder {
    /// Name of the secret at the provider.
    pub secret: String,
    /// The text that processes in the sandbox see.
    pub text: String,
}

/// Where the provider keeps secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Secrets {
    /// Outside: placeholder by variable.
    Outside(BTreeMap<String, Placeholder>),
    /// Not at all: it keeps none, or none for this stack.
    Nowhere {
        /// The reason, in the provider's own words.
        seen: String,
    },
}

/// Kinds of error that callers handle specially.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The provider does not know the sandbox, or the sandbox does not have the file.
    NotFound,
    /// The script exceeded its time and was killed.
    CommandTimeout,
    /// The provider does not accept the key, or the key lacks the permission.
    KeyRefused,
    /// Another stack created the sandbox.
    Foreign,
    /// A snapshot is not possible in the sandbox's current, stable state: start it first.
    WrongState,
    /// The snapshot quota is used up: one has to be deleted first.
    SnapshotsFull,
    /// Any other error; `failure` says what to do.
    Other,
}

/// A failed call to a provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{seen}")]
pub struct ProviderError {
    /// What a caller may handle itself.
    pub kind: ErrorKind,
    /// What the sandbox's delivery has to do about it.
    pub failure: Failure,
    /// The error message, for logs and people. It contains no key.
    pub seen: String,
}

impl From<ProviderError> for NoEndpoint {
    fn from(error: ProviderError) -> Self {
        Self {
            is_gone: error.kind == ErrorKind::NotFound,
            failure: error.failure,
            seen: error.seen,
        }
    }
}

impl From<ProviderError> for Failure {
    fn from(error: ProviderError) -> Self {
        error.failure
    }
}

impl From<Failure> for ProviderError {
    fn from(failure: Failure) -> Self {
        Self { kind: ErrorKind::Other, seen: failure.to_string(), failure }
    }
}

/// The error of a stop whose time is over.
pub(crate) fn too_late() -> ProviderError {
    let seen = "too little time is left for a stop".to_owned();
    Failure::Wait { after_ms: 0, seen }.into()
}

/// An error of a call into a sandbox, not of one about it: there, a missing answer is the sandbox's problem, and not an
/// outage of the provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InSandbox<E>(pub E);

impl<E> From<E> for InSandbox<E> {
    fn from(error: E) -> Self {
        Self(error)
    }
}

/// Result of a provider call.
pub type ProviderResult<T> = Result<T, ProviderError>;

/// Properties and abilities of a provider: callers read them once, and have a path without each ability.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// Base address of its API: endpoints may be on loopback only if this is.
    pub base: &'a str,
    /// Most sandboxes that a listing returns: from a longer list, missing ones cannot be told.
    pub listed_max: usize,
    /// Its snapshots, or why it makes neither snapshots of sandboxes nor sandboxes from snapshots.
    pub snapshots: Result<&'a dyn SnapshotStore, &'static str>,
    /// Making a snapshot ends all processes in the sandbox, which is stopped afterwards.
    pub snapshot_ends_run: bool,
    /// Milliseconds after creation at which the provider destroys a sandbox by itself, whatever it is doing then. Each
    /// sandbox has its own time ([`Sandbox::ends_ms`]): a provider may allow less than was requested.
    pub life_ms_max: Option<u64>,
    /// The secrets that it keeps outside the sandboxes, or why it keeps none: then model keys are in the environment of
    /// the processes inside.
    pub secrets: Result<&'a dyn SecretStore, &'static str>,
    /// Address on which a server inside has to listen to be reached through [`Provider::endpoint`].
    pub listens_on: Ipv4Addr,
    /// Names what a sandbox without a snapshot begins with; empty: the provider's own choice.
    pub image: &'a str,
    /// What listens on loopback in one sandbox is reached from others, of other tenants too.
    pub shares_loopback: bool,
}

impl<'a> Facts<'a> {
    /// Its snapshots.
    ///
    /// # Errors
    /// A message for people: there are none here, and why.
    pub fn snapshots(&self) -> Result<&'a dyn SnapshotStore, String> {
        self.snapshots.map_err(|why| format!("no snapshots here: {why}"))
    }

    /// Missing or unexpected abilities, in words for people.
    #[must_use]
    pub fn lacking(&self) -> Vec<String> {
        let mut words = Vec::new();
        words.extend(self.snapshots().err());
        if self.snapshot_ends_run {
            words.push("a snapshot ends what runs in the sandbox".to_owned());
        }
        if let Some(life_ms) = self.life_ms_max {
            let life = match life_ms / DAY_MS {
                0 => span(life_ms),
                1 => "a day".to_owned(),
                days => format!("{days} days"),
            };
            words.push(format!(
                "the disk is not kept: a sandbox is deleted {life} after its last use"
            ));
        }
        if self.secrets.is_err() {
            words.push("model keys are inside the sandboxes".to_owned());
        }
        words
    }
}

/// The content of a sandbox, besides its name.
#[derive(Debug, Clone, Copy)]
pub struct SandboxSpec<'a> {
    /// Secrets that are kept outside: variable to the secret's name.
    pub secrets: &'a BTreeMap<String, String>,
    /// The snapshot that its disk is a copy of; `None`: the stack's image.
    pub snapshot: Option<&'a SnapshotName>,
}

/// The sandbox to delete, and whether it is observed.
#[derive(Debug, Clone, Copy)]
pub enum Deletion<'a> {
    /// By name. It is observed: already gone or being deleted is success, and an obstacle to the delete is returned as
    /// a state.
    Named(&'a str),
    /// One that was found a moment ago. It is deleted without observing it, so that every refusal is an error.
    Found(&'a Sandbox),
}

/// Runs the sandboxes of one stack. A name stands for one sandbox for ever; a repeat of any call is harmless.
#[async_trait]
pub trait Provider: fmt::Debug + Send + Sync {
    /// Its properties and abilities.
    fn facts(&self) -> Facts<'_>;

    /// The account of the key and the settings, in which its sandboxes are created and looked up. `None`: the provider
    /// does not name it.
    async fn account(&self) -> ProviderResult<Option<Account>>;

    /// Creates the sandbox of this key and generation. One with that name and our labels is adopted. Returns the state
    /// observed afterwards, which may lag. A snapshot that no longer exists is [`Failure::TurnFailed`].
    async fn create(
        &self,
        key: &SandboxKey,
        generation: u32,
        spec: SandboxSpec<'_>,
    ) -> ProviderResult<SandboxState>;

    /// Reads the sandbox with this name or id. An unknown one is [`ErrorKind::NotFound`].
    async fn observe(&self, name: &str) -> ProviderResult<Sandbox>;

    /// Starts or repairs it, if it is stopped.
    async fn start(&self, name: &str) -> ProviderResult<SandboxState>;

    /// Stops it, if it runs: every process ends, the disk stays. After `latest` the stop is no longer requested
    /// ([`Failure::Wait`]): a late one cannot be taken back.
    async fn stop(&self, name: &str, latest: Instant) -> ProviderResult<SandboxState>;

    /// Deletes it with its disk.
    async fn delete(&self, sandbox: Deletion<'_>) -> ProviderResult<SandboxState>;

    /// The sandboxes with this stack's name, including those of a namesake, all of them or one tenant's, in order of
    /// creation. The list may lag: observe a sandbox before acting on it.
    async fn list(&self, tenant: Option<&Tenant>) -> ProviderResult<Vec<Sandbox>>;

    /// Counts a tenant's sandboxes that are not being deleted: only those created before the one with this name, or all
    /// others while that is not listed yet.
    async fn count(&self, tenant: &Tenant, older_than: Option<&str>) -> ProviderResult<u32>;

    /// Prevents a working sandbox from being stopped or deleted as idle or expired: for providers that limit a
    /// sandbox's lifetime, used or not. Harmless to repeat; a stopped one is left alone.
    async fn keep_alive(&self, _name: &str) -> ProviderResult<()> {
        Ok(())
    }

    /// Endpoint for reaching a port from outside. It changes with every start.
    async fn endpoint(&self, name: &str, port: u16) -> ProviderResult<Endpoint>;

    /// Runs a shell script. `env` is set only for its processes. The script is the shell's standard input.
    async fn exec(
        &self,
        sandbox: &Sandbox,
        script: &str,
        env: &BTreeMap<String, String>,
        timeout: Duration,
    ) -> ProviderResult<ScriptOutput>;

    /// Writes files; parent folders are created. Paths are relative to the sandbox's working directory.
    async fn put_files(
        &self,
        sandbox: &Sandbox,
        files: Vec<(String, Vec<u8>)>,
    ) -> ProviderResult<()>;

    /// The bytes of a file; a missing one is [`ErrorKind::NotFound`].
    async fn get_file(&self, sandbox: &Sandbox, path: &str) -> ProviderResult<Vec<u8>>;

    /// The files directly in a folder, with their sizes in bytes.
    async fn list_files(
        &self,
        sandbox: &Sandbox,
        path: &str,
    ) -> ProviderResult<BTreeMap<String, u64>>;
}

/// Snapshots of sandboxes, for providers that support them ([`Facts::snapshots`]).
#[async_trait]
pub trait SnapshotStore: Send + Sync {
    /// Creates the snapshot with this name, of the sandbox that the name contains: an existing one or one in progress
    /// is left alone, so that a repeat is harmless. It is not awaited: observe it until it is [`SnapshotState::Ready`]
    /// or [`SnapshotState::Failed`]. The sandbox may be [`SandboxState::Busy`] until the snapshot exists; its processes
    /// continue, unless [`Facts::snapshot_ends_run`].
    ///
    /// [`ErrorKind::WrongState`] and [`ErrorKind::SnapshotsFull`] say what has to be done first;
    /// [`ErrorKind::NotFound`] that there is no such sandbox.
    async fn create(&self, name: &SnapshotName) -> ProviderResult<SnapshotState>;

    /// Observes the snapshot with this name. [`SnapshotState::Absent`] for a requested one means that it was not made;
    /// if the provider does not say why, the reason is unknown and it may be requested again.
    async fn observe(&self, name: &SnapshotName) -> ProviderResult<SnapshotState>;

    /// The snapshots that this stack has made of its sandboxes, newest first. Their names identify the owner.
    async fn list(&self) -> ProviderResult<Vec<Snapshot>>;

    /// Deletes a snapshot; already gone is success. Sandboxes created from it stay.
    async fn delete(&self, name: &SnapshotName) -> ProviderResult<()>;
}

/// Secrets that stay outside the sandboxes, and where these reach, for providers that keep them ([`Facts::secrets`]).
#[async_trait]
pub trait SecretStore: Send + Sync {
    /// Makes the provider keep these secrets outside the sandboxes, with these values.
    async fn keep(&self, secrets: &[HostedSecret]) -> ProviderResult<Secrets>;

    /// Puts placeholders of secrets into a sandbox in the place of those that it has (variable to the secret's name).
    /// Processes that start later have them.
    async fn mount(
        &self,
        sandbox: &Sandbox,
        names: &BTreeMap<String, String>,
    ) -> ProviderResult<()>;

    /// From now on the sandbox reaches these hosts alone (`*.` before a domain stands for all below it); `None`: all.
    /// False: this provider cannot limit that. Secrets that are mounted before this may not be put in any more.
    async fn limit_network(
        &self,
        sandbox: &Sandbox,
        hosts: Option<&[String]>,
    ) -> ProviderResult<bool>;

    /// Deletes what was kept for the sandbox with this name alone, but for these variables; nothing is success.
    async fn forget(&self, sandbox: &str, but: &[&str]) -> ProviderResult<()>;

    /// Deletes what was kept before that time for single sandboxes of this stack other than these.
    async fn forget_all_but(&self, living: &[&str], before_ms: Ms) -> ProviderResult<()>;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use bobbin_core::base::ids::ThreadKey;

    use super::*;

    #[test]
    fn sandbox_ownership_needs_all_labels() {
        let key = ThreadKey::discord("1", "2").unwrap().sandbox();
        let mut found = Sandbox {
            id: "i".to_owned(),
            name: "n".to_owned(),
            labels: BTreeMap::new(),
            state: SandboxState::Running,
            said: String::new(),
            created_ms: None,
            ends_ms: None,
            exec_base: None,
        };
        let dev = StackIdentity { name: "dev", id: "a" };
        assert!(!found.belongs_to(dev, &key, 1));
        found.labels = labels(dev, &key, 1);
        found.labels.insert("more".into(), "x".into());
        assert!(found.belongs_to(dev, &key, 1));
        let prod = StackIdentity { name: "prod", ..dev };
        assert!(!found.belongs_to(prod, &key, 1) && !found.belongs_to(dev, &key, 2));
        let namesake = StackIdentity { id: "b", ..dev };
        assert!(!found.belongs_to(namesake, &key, 1) && found.is_foreign("b"));
        assert_eq!(found.owner(), Some((key.clone(), 1)));
        for label in [LABEL_TENANT, LABEL_STACK_ID] {
            found.labels.remove(label);
            assert!(found.belongs_to(dev, &key, 1), "of before {label}");
        }
    }
}
