//! What Bobbin wants of whatever runs its sandboxes.

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
    LABEL_GENERATION, LABEL_KEYS, LABEL_STACK_ID, LABEL_TENANT, LABEL_THREAD, PLACEHOLDERS, Stack,
    labels,
};
use crate::snapshot::{Snapshot, SnapshotName, SnapshotState};

const DAY_MS: u64 = 24 * 60 * 60_000;

/// A sandbox as its provider tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// The id that the provider gave it.
    pub id: String,
    /// Ours, made of key and generation; unique at the provider.
    pub name: String,
    /// Whose it is and which stack made it ([`crate::labels`]).
    pub labels: BTreeMap<String, String>,
    /// What its state means for us.
    pub state: SandboxState,
    /// The provider's own word for that; empty where it has said none.
    pub said: String,
    /// When it was made, where the provider says so.
    pub created_ms: Option<Ms>,
    /// When the provider destroys it by itself, whatever it is doing then, where it says so.
    pub ends_ms: Option<Ms>,
    /// Where the provider takes commands and files for it, if it has said so: only the provider reads this.
    pub exec_base: Option<String>,
}

impl Sandbox {
    /// Which of our sandboxes it is, by its labels: key and generation.
    #[must_use]
    pub fn owner(&self) -> Option<(SandboxKey, u32)> {
        Some((
            self.labels.get(LABEL_THREAD)?.parse().ok()?,
            self.labels.get(LABEL_GENERATION)?.parse().ok()?,
        ))
    }

    /// Whether it carries the labels of this stack, key and generation: a taken name is adopted only then. The tenant
    /// follows from the thread; a sandbox that was made before this, or the stack's id, was a label is ours all the same.
    #[must_use]
    pub fn belongs_to(&self, stack: Stack<'_>, key: &SandboxKey, generation: u32) -> bool {
        !self.is_foreign(stack.id)
            && labels(stack, key, generation)
                .iter()
                .filter(|(name, _)| ![LABEL_TENANT, LABEL_STACK_ID].contains(&name.as_str()))
                .all(|(name, value)| self.labels.get(name) == Some(value))
    }

    /// What it is, where it was found under the name of this key and generation: ours, or in the way.
    ///
    /// # Errors
    /// That another stack made it.
    pub(crate) fn adopted(
        self,
        stack: Stack<'_>,
        key: &SandboxKey,
        generation: u32,
    ) -> ProviderResult<SandboxState> {
        if self.belongs_to(stack, key, generation) {
            return Ok(self.state);
        }
        let advice = format!(
            "A sandbox named {} exists but was not made by this stack. The operator has to rename or delete it.",
            self.name
        );
        Err(Failure::NonRecoverable { advice }.into())
    }

    /// Whether something stands for the model keys in it.
    #[must_use]
    pub fn has_placeholders(&self) -> bool {
        self.labels.get(LABEL_KEYS).map(String::as_str) == Some(PLACEHOLDERS)
    }

    /// Whether it says that another stack than this made it.
    #[must_use]
    pub fn is_foreign(&self, stack_id: &str) -> bool {
        let said = self.labels.get(LABEL_STACK_ID);
        said.is_some_and(|said| said != stack_id)
    }
}

/// What came of a script in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Exit status; -1 when the shell could not be started.
    pub exit_code: i64,
    /// Standard output and standard error, merged.
    pub text: String,
}

/// A secret that the provider is to keep outside the sandboxes. Its value is in no log: there is no `Debug`.
pub struct HostedSecret {
    /// The variable in which a sandbox sees what stands for it.
    pub variable: &'static str,
    /// The value itself, which no sandbox sees.
    pub value: String,
    /// Says which value it is, without saying the value.
    pub version: String,
    /// The only hosts that it is for.
    pub hosts: Vec<String>,
    /// The tenant whose own it is; none: the stack's.
    pub owner: Option<Tenant>,
}

/// What stands for a secret in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder {
    /// Name of the secret at the provider.
    pub secret: String,
    /// What a process in the sandbox sees.
    pub text: String,
}

/// Where the provider has put secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Secrets {
    /// Outside: per variable what stands for it.
    Outside(BTreeMap<String, Placeholder>),
    /// Nowhere: it keeps none, or none for this stack.
    Nowhere {
        /// Why not, in the provider's own words.
        seen: String,
    },
}

/// What went wrong, as far as a caller does something of its own about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The provider does not know the sandbox, or the sandbox does not have the file.
    NotFound,
    /// The script ran over its time and was ended.
    CommandTimeout,
    /// The provider does not take the key, or the key may not do this.
    KeyRefused,
    /// Another stack made the sandbox.
    Foreign,
    /// A snapshot needs the sandbox in another state than the one that it stays in: start it first.
    WrongState,
    /// There are as many snapshots as there may be: one has to be deleted first.
    SnapshotsFull,
    /// Nothing that a caller treats in a way of its own; `failure` says what to do.
    Other,
}

/// A call to a provider that did not do what it was made for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{seen}")]
pub struct ProviderError {
    /// What a caller may do about it itself.
    pub kind: ErrorKind,
    /// What the sandbox's delivery has to do about it.
    pub failure: Failure,
    /// What went wrong, in a sentence for logs and people. It holds no key.
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

/// What a stop is whose time is over.
pub(crate) fn too_late() -> ProviderError {
    let seen = "too little time is left for a stop".to_owned();
    Failure::Wait { after_ms: 0, seen }.into()
}

/// A client's error of a call into a sandbox, not of one about it: there, silence is the sandbox's own, and not an outage of
/// the provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InSandbox<E>(pub E);

impl<E> From<E> for InSandbox<E> {
    fn from(error: E) -> Self {
        Self(error)
    }
}

/// What the provider answered, or why it did not.
pub type ProviderResult<T> = Result<T, ProviderError>;

/// What a provider is and can do: callers ask once, and have a path without each ability.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// Base of its API: endpoints may be on loopback where this is.
    pub base: &'a str,
    /// Sandboxes that a listing holds at the most: of a longer one it cannot be told what is missing from it.
    pub listed_max: usize,
    /// Its snapshots, or why it makes none of sandboxes, and no sandboxes from them.
    pub snapshots: Result<&'a dyn SnapshotStore, &'static str>,
    /// Making a snapshot ends what runs in the sandbox, which stands still afterwards.
    pub snapshot_ends_run: bool,
    /// So many milliseconds after it was made it destroys a sandbox by itself, whatever that is doing then. A sandbox of its
    /// own says when that is ([`Sandbox::ends_ms`]): a provider may allow less than it was asked for.
    pub life_ms_max: Option<u64>,
    /// The secrets that it keeps outside of the sandboxes, or why it keeps none: then model keys are in the environment of
    /// what runs inside.
    pub secrets: Result<&'a dyn SecretStore, &'static str>,
    /// The address on which a server inside has to listen to be reached through [`Provider::endpoint`].
    pub listens_on: Ipv4Addr,
}

impl<'a> Facts<'a> {
    /// Its snapshots.
    ///
    /// # Errors
    /// Words for people: that there are none here, and why.
    pub fn snapshots(&self) -> Result<&'a dyn SnapshotStore, String> {
        self.snapshots.map_err(|why| format!("no snapshots here: {why}"))
    }

    /// What people do not find here, or find otherwise than they may expect, in words.
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
                "no disk beyond its end: a sandbox is deleted {life} after it was last worked in"
            ));
        }
        if self.secrets.is_err() {
            words.push("model keys are inside the sandboxes".to_owned());
        }
        words
    }
}

/// What a sandbox is made of besides its name.
#[derive(Debug, Clone, Copy)]
pub struct SandboxSpec<'a> {
    /// Secrets that it has outside of it: variable to the secret's name.
    pub secrets: &'a BTreeMap<String, String>,
    /// The snapshot that its disk is a copy of; none: the image of the stack.
    pub snapshot: Option<&'a SnapshotName>,
}

/// The sandbox to delete, and whether it is looked at.
#[derive(Debug, Clone, Copy)]
pub enum Deletion<'a> {
    /// The one of this name. It is looked at: what is gone, or on its way out, is a success, and what stands in the way of a
    /// delete is a state.
    Named(&'a str),
    /// One that was found a moment ago. It is asked to go and not looked at, so that every refusal is an error.
    Found(&'a Sandbox),
}

/// Runs the sandboxes of one stack. A name stands for one sandbox for ever; a repeat of any call is harmless.
#[async_trait]
pub trait Provider: fmt::Debug + Send + Sync {
    /// What it is and can do.
    fn facts(&self) -> Facts<'_>;

    /// The account that the key and the settings open: where its sandboxes are and are looked for. None: it does not say.
    async fn account(&self) -> ProviderResult<Option<Account>>;

    /// Creates the sandbox of this key and generation. One of that name that carries our labels is adopted. The answer is what
    /// is seen afterwards, and may lag. A snapshot that is not there any more is [`Failure::TurnFailed`].
    async fn create(
        &self,
        key: &SandboxKey,
        generation: u32,
        spec: SandboxSpec<'_>,
    ) -> ProviderResult<SandboxState>;

    /// Reads the sandbox of this name or id. One that the provider does not know is [`ErrorKind::NotFound`].
    async fn observe(&self, name: &str) -> ProviderResult<Sandbox>;

    /// Starts it, or repairs it, if it stands still.
    async fn start(&self, name: &str) -> ProviderResult<SandboxState>;

    /// Stops it, if it runs: every process ends, the disk stays. From this time on the stop itself is not asked for any more
    /// ([`Failure::Wait`]): nothing can take back one that comes late.
    async fn stop(&self, name: &str, latest: Instant) -> ProviderResult<SandboxState>;

    /// Deletes it with its disk.
    async fn delete(&self, sandbox: Deletion<'_>) -> ProviderResult<SandboxState>;

    /// The sandboxes that carry this stack's name, those of a namesake too, all of them or one tenant's, in order of
    /// creation. The list may lag: observe a sandbox before acting on it.
    async fn list(&self, tenant: Option<&Tenant>) -> ProviderResult<Vec<Sandbox>>;

    /// Counts a tenant's sandboxes that are not on their way out; those alone that were made before the one of this name,
    /// or all others while that is not listed yet.
    async fn count(&self, tenant: &Tenant, older_than: Option<&str>) -> ProviderResult<u32>;

    /// Sees to it that a sandbox in which work goes on is not stopped or deleted for want of it: for providers whose sandboxes
    /// have a time, used or not. Harmless to repeat; one that stands still is left alone.
    async fn keep_alive(&self, _name: &str) -> ProviderResult<()> {
        Ok(())
    }

    /// How a port is reached from outside. New with every start.
    async fn endpoint(&self, name: &str, port: u16) -> ProviderResult<Endpoint>;

    /// Runs a shell script. `env` lives only in its processes. The script is the shell's standard input.
    async fn exec(
        &self,
        sandbox: &Sandbox,
        script: &str,
        env: &BTreeMap<String, String>,
        timeout: Duration,
    ) -> ProviderResult<Output>;

    /// Writes files; parents are made. Paths are relative to the sandbox's working directory.
    async fn put_files(
        &self,
        sandbox: &Sandbox,
        files: Vec<(String, Vec<u8>)>,
    ) -> ProviderResult<()>;

    /// The bytes of a file; a missing one is [`ErrorKind::NotFound`].
    async fn get_file(&self, sandbox: &Sandbox, path: &str) -> ProviderResult<Vec<u8>>;

    /// The files of a folder, not of those below it, with their bytes.
    async fn list_files(
        &self,
        sandbox: &Sandbox,
        path: &str,
    ) -> ProviderResult<BTreeMap<String, u64>>;
}

/// Snapshots of sandboxes, where a provider makes them ([`Facts::snapshots`]).
#[async_trait]
pub trait SnapshotStore: Send + Sync {
    /// Creates the snapshot of this name, of the sandbox that the name says: one that is there or under way is left alone, so
    /// that a repeat is harmless. Nothing is waited for: observe it until it is [`SnapshotState::Ready`] or
    /// [`SnapshotState::Failed`]. The sandbox changes for a moment and is [`SandboxState::Busy`] until the snapshot is there;
    /// what runs in it goes on, unless [`Facts::snapshot_ends_run`].
    ///
    /// [`ErrorKind::WrongState`] and [`ErrorKind::SnapshotsFull`] say what is to be done first; [`ErrorKind::NotFound`] that
    /// there is no such sandbox.
    async fn create(&self, name: &SnapshotName) -> ProviderResult<SnapshotState>;

    /// Looks at the snapshot of this name. [`SnapshotState::Absent`] for one that was asked for means that it was not made,
    /// and where the provider does not say why, nobody does: it may be asked for again.
    async fn observe(&self, name: &SnapshotName) -> ProviderResult<SnapshotState>;

    /// The snapshots that this stack has made of its sandboxes, the newest first. Whose they are, their names say.
    async fn list(&self) -> ProviderResult<Vec<Snapshot>>;

    /// Deletes a snapshot; gone is success. Sandboxes that were made from it stay.
    async fn delete(&self, name: &SnapshotName) -> ProviderResult<()>;
}

/// Secrets that stay outside of the sandboxes, where a provider keeps them ([`Facts::secrets`]).
#[async_trait]
pub trait SecretStore: Send + Sync {
    /// Sees to it that these secrets are kept outside the sandboxes, with these values.
    async fn keep(&self, secrets: &[HostedSecret]) -> ProviderResult<Secrets>;

    /// Puts what stands for secrets into a sandbox that was made before they were (variable to the secret's name).
    async fn mount(
        &self,
        sandbox: &Sandbox,
        names: &BTreeMap<String, String>,
    ) -> ProviderResult<()>;
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
        let dev = Stack { name: "dev", id: "a" };
        assert!(!found.belongs_to(dev, &key, 1));
        found.labels = labels(dev, &key, 1);
        found.labels.insert("more".into(), "x".into());
        assert!(found.belongs_to(dev, &key, 1));
        let prod = Stack { name: "prod", ..dev };
        assert!(!found.belongs_to(prod, &key, 1) && !found.belongs_to(dev, &key, 2));
        let namesake = Stack { id: "b", ..dev };
        assert!(!found.belongs_to(namesake, &key, 1) && found.is_foreign("b"));
        assert_eq!(found.owner(), Some((key.clone(), 1)));
        for label in [LABEL_TENANT, LABEL_STACK_ID] {
            found.labels.remove(label);
            assert!(found.belongs_to(dev, &key, 1), "of before {label}");
        }
    }
}
