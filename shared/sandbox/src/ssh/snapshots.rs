//! SSH hosts as a [`SnapshotStore`]. A snapshot stays on the host of its sandbox; sandboxes from it are created there.

use async_trait::async_trait;
use futures::future::join_all;

use super::archives::{Archive, ArchiveRequest, Archives};
use super::error::SshError;
use super::exec::SlotVerb;
use super::lifecycle::{Everywhere, bounded};
use super::registry::SlotStage;
use super::sandboxes::SshSandboxes;
use crate::provider::{ProviderResult, SnapshotStore};
use crate::snapshot::{Snapshot, SnapshotName, SnapshotState};

const KIB: u64 = 1024;
const KIB_PER_GIB: f64 = 1_048_576.0;

impl SshSandboxes {
    async fn archives(&self) -> Everywhere<Archives> {
        let hosts = 0..self.hosts.all().len();
        let asked = hosts.map(|host| self.hosts.archives(host, &ArchiveRequest::Look));
        Everywhere(join_all(asked).await)
    }

    /// The host that has the snapshot, whole or not, and its state there. `None`: no host has it.
    async fn kept(&self, name: &SnapshotName) -> Result<Option<(usize, SnapshotState)>, SshError> {
        let seen = self.archives().await;
        let states = seen.known().map(|(host, archives)| (host, archives.state(name)));
        let found = states.into_iter().find(|(_, state)| *state != SnapshotState::Absent);
        match (found, seen.doubt()) {
            (None, Some(doubt)) => Err(doubt),
            (found, _) => Ok(found),
        }
    }

    /// The host on which a sandbox can be created from the snapshot.
    pub(super) async fn holder(&self, name: &SnapshotName) -> Result<usize, SshError> {
        match self.kept(name).await? {
            Some((host, SnapshotState::Ready)) => Ok(host),
            Some((_, SnapshotState::Underway)) => {
                Err(SshError::Busy { what: "the snapshot is not ready yet".to_owned() })
            }
            _ => Err(SshError::SnapshotGone),
        }
    }

    async fn packed(&self, name: &SnapshotName) -> Result<SnapshotState, SshError> {
        let Some((slot, entry)) = self.locate_ours(name.sandbox()).await? else {
            let kept = self.kept(name).await?;
            return kept.map(|(_, state)| state).ok_or(SshError::NotFound);
        };
        match self.settle(&slot, &entry).await? {
            SlotStage::Running | SlotStage::Stopped => {}
            SlotStage::Preparing | SlotStage::Stopping => return Ok(SnapshotState::Underway),
            SlotStage::Destroying => return Err(SshError::NotFound),
        }
        let begun = match self.hosts.archives(slot.host, &ArchiveRequest::Begin(name)).await {
            Err(error @ SshError::NotSetUp { .. }) => {
                return Ok(SnapshotState::Failed { reason: error.failure().to_string() });
            }
            begun => begun?,
        };
        if let Some(pipe) = &begun.pipe {
            self.on_slot(&slot, SlotVerb::Pack { pipe }).await?;
        }
        Ok(begun.state(name))
    }
}

#[async_trait]
impl SnapshotStore for SshSandboxes {
    /// The host begins to receive, then the sandbox's user to pack. If either ends early, a repeat begins again.
    async fn create(&self, name: &SnapshotName) -> ProviderResult<SnapshotState> {
        Ok(bounded(self.packed(name)).await?)
    }

    async fn observe(&self, name: &SnapshotName) -> ProviderResult<SnapshotState> {
        let kept = bounded(self.kept(name)).await?;
        Ok(kept.map_or(SnapshotState::Absent, |(_, state)| state))
    }

    /// Every host must answer. One that failed is none.
    async fn list(&self) -> ProviderResult<Vec<Snapshot>> {
        let stack = self.settings.stack();
        let seen = self.archives().await;
        if let Some(doubt) = seen.doubt() {
            return Err(doubt.into());
        }
        let ours = |one: &Archive| {
            let name = SnapshotName::parse(stack, &one.name)?;
            let is_there = matches!(one.state, SnapshotState::Ready | SnapshotState::Underway);
            let kib = u32::try_from(one.bytes / KIB).unwrap_or(u32::MAX);
            let gib = Some(f64::from(kib) / KIB_PER_GIB);
            is_there.then(|| Snapshot { name, state: one.state.clone(), gib })
        };
        let mut ours: Vec<Snapshot> =
            seen.known().flat_map(|(_, archives)| &archives.all).filter_map(ours).collect();
        ours.sort_by_key(|one| std::cmp::Reverse(one.name.at_ms()));
        Ok(ours)
    }

    async fn delete(&self, name: &SnapshotName) -> ProviderResult<()> {
        let deleted = async {
            if let Some((host, _)) = self.kept(name).await? {
                self.hosts.archives(host, &ArchiveRequest::Forget(name)).await?;
            }
            Ok(())
        };
        Ok(bounded(deleted).await?)
    }
}
