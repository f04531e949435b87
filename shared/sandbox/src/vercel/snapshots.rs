//! Snapshots that are kept under a name of ours.
//!
//! Vercel identifies a snapshot by its own id, deletes it when its sandbox has newer ones, and keeps no name or label
//! with it. So a snapshot is kept by a sandbox with the snapshot's name, which is created from it and stopped at once:
//! a stopped sandbox is a disk with a name, tags and a place in the listing, and a repeat of any step finds the result
//! of the last one. Making a snapshot ends the session of its sandbox.

use async_trait::async_trait;
use bobbin_core::base::failure::Failure;
use bobbin_core::records::sandbox::SandboxState;

use super::client::VercelError;
use super::sandboxes::VercelSandboxes;
use super::types::{CreateSandbox, SandboxAnswer, VercelSandbox};
use crate::provider::{ErrorKind, ProviderError, ProviderResult, SnapshotStore};
use crate::snapshot::{Snapshot, SnapshotName, SnapshotState, stack_prefix};

impl VercelSandboxes {
    async fn snapshot_session(
        &self,
        source: &SandboxAnswer,
    ) -> Result<Option<String>, VercelError> {
        let Some(session) = &source.session else {
            return Ok(None);
        };
        match self.client.snapshot(&session.id).await {
            Ok(made) => Ok(Some(made.snapshot.id)),
            // It has just ended by itself, or somebody else has stopped it: its disk is kept all the same.
            Err(VercelError::Stopped { .. } | VercelError::InTransition { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Stops the sandbox that keeps a snapshot, if it runs.
    async fn rest(&self, keeper: SandboxAnswer) -> Result<SnapshotState, VercelError> {
        if let Some(session) = &keeper.session
            && session.status == "running"
        {
            match self.client.stop(&session.id).await {
                Ok(_) | Err(VercelError::Stopped { .. } | VercelError::InTransition { .. }) => {}
                Err(error) => return Err(error),
            }
            return Ok(SnapshotState::Underway);
        }
        Ok(kept_as(&keeper.sandbox, &keeper.state()))
    }

    async fn keeper(&self, name: &SnapshotName) -> Result<Option<SandboxAnswer>, VercelError> {
        match self.client.observe(&name.to_string()).await {
            Ok(keeper) => Ok(Some(keeper)),
            Err(VercelError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Vercel's id of the snapshot that is kept under a name.
    pub(super) async fn kept(&self, name: &SnapshotName) -> Result<Option<String>, VercelError> {
        let keeper = self.keeper(name).await?;
        Ok(keeper.and_then(|keeper| keeper.sandbox.current_snapshot_id))
    }
}

#[async_trait]
impl SnapshotStore for VercelSandboxes {
    /// Observes, and takes the next step: a repeat continues where the last call ended.
    async fn create(&self, name: &SnapshotName) -> ProviderResult<SnapshotState> {
        if let Some(keeper) = self.keeper(name).await? {
            return Ok(self.rest(keeper).await?);
        }
        let source = self.client.observe(name.sandbox()).await?;
        let id = match source.state() {
            SandboxState::Running => self.snapshot_session(&source).await?,
            SandboxState::Stopped => source.sandbox.current_snapshot_id.clone(),
            SandboxState::Provisioning | SandboxState::Busy => None,
            SandboxState::Gone => return Err(VercelError::NotFound.into()),
            SandboxState::Broken { .. } => return Err(wrong_state(source.status())),
        };
        let Some(id) = id else {
            return match source.state() {
                SandboxState::Stopped => Err(wrong_state("stopped without a disk")),
                _ => Ok(SnapshotState::Underway),
            };
        };
        let body = CreateSandbox::keeper(&self.made(), name, &source.sandbox, &id);
        match self.client.create(&body).await {
            Ok(keeper) => Ok(self.rest(keeper).await?),
            // Another call came first, the snapshot is not ready, or the answer was lost: the next observation tells.
            Err(VercelError::NameTaken { .. } | VercelError::SnapshotGone { .. }) => {
                Ok(SnapshotState::Underway)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn observe(&self, name: &SnapshotName) -> ProviderResult<SnapshotState> {
        if let Some(keeper) = self.keeper(name).await? {
            return Ok(kept_as(&keeper.sandbox, &keeper.state()));
        }
        match self.client.observe(name.sandbox()).await {
            Ok(source) if source.state() == SandboxState::Busy => Ok(SnapshotState::Underway),
            Ok(_) | Err(VercelError::NotFound) => Ok(SnapshotState::Absent),
            Err(error) => Err(error.into()),
        }
    }

    async fn list(&self) -> ProviderResult<Vec<Snapshot>> {
        let stack = self.settings.stack();
        let listed = self.client.list(&stack_prefix(stack)).await?;
        let ours = |told: VercelSandbox| {
            let name = SnapshotName::parse(stack, &told.name)?;
            let state = super::types::state_of(&told.status);
            let state = kept_as(&told, &state);
            Some(Snapshot { name, state, gib: None })
        };
        let mut ours: Vec<Snapshot> = listed.into_iter().filter_map(ours).collect();
        ours.sort_by_key(|one| std::cmp::Reverse(one.name.at_ms()));
        Ok(ours)
    }

    async fn delete(&self, name: &SnapshotName) -> ProviderResult<()> {
        match self.client.delete(&name.to_string()).await {
            Ok(()) | Err(VercelError::NotFound) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn kept_as(keeper: &VercelSandbox, state: &SandboxState) -> SnapshotState {
    match state {
        SandboxState::Stopped if keeper.current_snapshot_id.is_some() => SnapshotState::Ready,
        SandboxState::Stopped => {
            SnapshotState::Failed { reason: "the provider kept no disk".to_owned() }
        }
        SandboxState::Broken { reason, .. } => SnapshotState::Failed { reason: reason.clone() },
        SandboxState::Gone => SnapshotState::Absent,
        SandboxState::Provisioning | SandboxState::Running | SandboxState::Busy => {
            SnapshotState::Underway
        }
    }
}

fn wrong_state(said: &str) -> ProviderError {
    let reason = format!("the sandbox is {said}: start it, then take the snapshot");
    ProviderError {
        kind: ErrorKind::WrongState,
        seen: reason.clone(),
        failure: Failure::TurnFailed { reason },
    }
}
