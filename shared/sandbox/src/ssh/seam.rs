//! SSH hosts as a [`Provider`].

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bobbin_core::base::endpoint::Endpoint;
use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{SandboxKey, Tenant};
use bobbin_core::records::account::Account;
use bobbin_core::records::sandbox::SandboxState;
use tokio::time::Instant;

use super::bounds::LISTED_MAX;
use super::error::SshError;
use super::forward::Forwards;
use super::hosts::Hosts;
use super::settings::{SshHost, SshSettings};
use super::slot::Slot;
use crate::labels::{stack_label, tenant_labels};
use crate::provider::{
    Caps, HostedSecret, Observed, Output, Provider, ProviderResult, Sandbox, SandboxSpec, Secrets,
};
use crate::snapshot::{Snapshot, SnapshotName, SnapshotState};

/// Where agents are reached: on this program's own loopback, by its listeners.
const BASE: &str = "http://127.0.0.1";
/// What is said where a snapshot is wanted.
const NO_SNAPSHOTS: &str = "SSH hosts make no snapshots";
/// Why that is so.
const WHY_NO_SNAPSHOTS: &str = "an SSH host has a sandbox's files in one place alone";

/// The sandboxes of a stack on SSH hosts.
#[derive(Debug)]
pub struct SshSandboxes {
    pub(super) settings: SshSettings,
    pub(super) hosts: Arc<Hosts>,
    /// Which host had a sandbox when it was last looked for: a first guess, and nothing more.
    pub(super) last_seen: Mutex<HashMap<String, usize>>,
    pub(super) forwards: Forwards,
}

impl SshSandboxes {
    /// With this private key; without one every call says that it is missing.
    ///
    /// # Errors
    /// [`SshError::Settings`] when the hosts cannot be used.
    pub fn new(settings: SshSettings, private_key: &str) -> Result<Self, SshError> {
        Ok(Self {
            hosts: Arc::new(Hosts::new(settings.hosts.clone(), private_key)?),
            settings,
            last_seen: Mutex::default(),
            forwards: Forwards::default(),
        })
    }

    pub(super) fn host_name(&self, host: usize) -> &str {
        &self.hosts.all()[host].name
    }

    /// The user that a slot is.
    pub(super) fn user(&self, slot: &Slot) -> String {
        format!("{}-{}", self.hosts.all()[slot.host].user, slot.number)
    }

    /// Where a sandbox that was found a moment ago takes commands and files.
    fn place_of(&self, found: &Sandbox) -> Result<Slot, SshError> {
        if found.state != SandboxState::Running {
            return Err(SshError::NotRunning);
        }
        let read = || {
            let mut parts = found.exec_base.as_deref()?.split('/');
            let host = parts.next()?;
            let number = parts.next()?.parse().ok()?;
            let port = parts.next()?.parse().ok()?;
            let host = self.hosts.all().iter().position(|one| one.name == host)?;
            Some(Slot { host, number, port, name: found.name.clone() })
        };
        read().ok_or(SshError::NotFound)
    }

    fn labels_of(&self, tenant: Option<&Tenant>) -> BTreeMap<String, String> {
        match tenant {
            Some(tenant) => tenant_labels(&self.settings.stack, tenant),
            None => stack_label(&self.settings.stack),
        }
    }
}

#[async_trait]
impl Provider for SshSandboxes {
    fn base(&self) -> &str {
        BASE
    }

    fn listed_max(&self) -> usize {
        LISTED_MAX
    }

    fn caps(&self) -> Caps {
        Caps {
            no_snapshots: Some(WHY_NO_SNAPSHOTS),
            keys_inside: true,
            snapshot_ends_run: false,
            life_ms_max: None,
            // All addresses would be open to whoever reaches the host.
            listens_on: Ipv4Addr::LOCALHOST,
        }
    }

    async fn account(&self) -> ProviderResult<Option<Account>> {
        let parts = self.hosts.all().iter().map(SshHost::identity).collect();
        Ok(Some(Account { parts }))
    }

    async fn ensure(&self, key: &SandboxKey, generation: u32, spec: SandboxSpec<'_>) -> Observed {
        if spec.snapshot.is_some() {
            return Err(Failure::TurnFailed {
                reason: format!("{NO_SNAPSHOTS}, so no sandbox begins with one there."),
            });
        }
        seen(self.create(key, generation).await)
    }

    async fn observe(&self, name: &str) -> Observed {
        seen(self.look(name).await)
    }

    async fn resume(&self, name: &str) -> Observed {
        seen(self.wake(name).await)
    }

    async fn stop(&self, name: &str, latest: Instant) -> Observed {
        seen(self.halt(name, latest).await)
    }

    async fn destroy(&self, name: &str) -> Observed {
        seen(self.remove(name).await)
    }

    async fn delete(&self, found: &Sandbox) -> ProviderResult<()> {
        let removed = self.remove(&found.name).await;
        removed.map(drop).map_err(SshError::told)
    }

    async fn find(&self, name: &str) -> ProviderResult<Sandbox> {
        let (slot, entry) = self.locate(name).await.map_err(SshError::told)?;
        Ok(self.told(&slot, &entry))
    }

    async fn list(&self, tenant: Option<&Tenant>) -> ProviderResult<Vec<Sandbox>> {
        let labels = self.labels_of(tenant);
        self.listed(&labels).await.map_err(SshError::told)
    }

    async fn count(&self, tenant: &Tenant, older_than: Option<&str>) -> ProviderResult<u32> {
        let labels = self.labels_of(Some(tenant));
        let counted = self.counted(&labels, older_than).await;
        counted.map_err(SshError::told)
    }

    async fn snapshot(&self, _: &SnapshotName) -> ProviderResult<SnapshotState> {
        Err(no_snapshots().told())
    }

    async fn find_snapshot(&self, _: &SnapshotName) -> ProviderResult<SnapshotState> {
        Ok(SnapshotState::Absent)
    }

    async fn snapshots(&self) -> ProviderResult<Vec<Snapshot>> {
        Ok(Vec::new())
    }

    async fn delete_snapshot(&self, _: &SnapshotName) -> ProviderResult<()> {
        Ok(())
    }

    async fn endpoint(&self, name: &str, port: u16) -> ProviderResult<Endpoint> {
        let reached = self.reached(name, port).await.map_err(SshError::told)?;
        Ok(Endpoint { url: format!("{BASE}:{reached}"), headers: Vec::new() })
    }

    async fn exec(
        &self,
        sandbox: &Sandbox,
        script: &str,
        env: &BTreeMap<String, String>,
        timeout: Duration,
    ) -> ProviderResult<Output> {
        let slot = self.place_of(sandbox).map_err(SshError::told_inside)?;
        let ran = self.execute(&slot, script, env, timeout).await;
        ran.map_err(SshError::told_inside)
    }

    async fn put_files(
        &self,
        sandbox: &Sandbox,
        files: Vec<(String, Vec<u8>)>,
    ) -> ProviderResult<()> {
        let slot = self.place_of(sandbox).map_err(SshError::told_inside)?;
        let written = self.write(&slot, files).await;
        written.map_err(SshError::told_inside)
    }

    async fn get_file(&self, sandbox: &Sandbox, path: &str) -> ProviderResult<Vec<u8>> {
        let slot = self.place_of(sandbox).map_err(SshError::told_inside)?;
        let read = self.read(&slot, path).await;
        read.map_err(SshError::told_inside)
    }

    async fn list_files(
        &self,
        sandbox: &Sandbox,
        path: &str,
    ) -> ProviderResult<BTreeMap<String, u64>> {
        let slot = self.place_of(sandbox).map_err(SshError::told_inside)?;
        let files = self.files(&slot, path).await;
        files.map_err(SshError::told_inside)
    }

    async fn keep_secrets(&self, _: &[HostedSecret]) -> Result<Secrets, Failure> {
        Ok(Secrets::Nowhere {
            seen: "an SSH host keeps no secrets outside of its sandboxes".to_owned(),
        })
    }

    async fn mount_secrets(
        &self,
        _: &Sandbox,
        names: &BTreeMap<String, String>,
    ) -> Result<(), Failure> {
        if names.is_empty() {
            return Ok(());
        }
        Err(Failure::NonRecoverable {
            advice: "An SSH host keeps no secrets outside of its sandboxes.".to_owned(),
        })
    }
}

fn seen(seen: Result<SandboxState, SshError>) -> Observed {
    seen.map_err(|error| error.failure())
}

fn no_snapshots() -> SshError {
    SshError::Invalid { what: NO_SNAPSHOTS.to_owned() }
}
