//! Snapshots of sandboxes at Daytona.
//!
//! Facts, from Daytona's last public server source (v0.190.0: `createSnapshotFromSandbox` of its API,
//! `CreateSnapshotFromSandbox` of its runner) and its issue 4990, none of them checked against the live service:
//! - The call works for a sandbox that is `started` or `stopped`; in any other state it returns 400, in transition 409.
//!   A running container is paused while its disk is committed, and continues while the image is pushed.
//! - The call answers at once. The sandbox's state is `snapshotting` until it is done, perhaps for minutes, and every
//!   other change is refused with 409 meanwhile; then the previous state returns.
//! - A snapshot in progress has no record, a taken name is not refused, and a failure is reported nowhere: the sandbox
//!   returns to its previous state, and the name stays unknown. Newer servers may keep a record from the beginning
//!   (`snapshotting`, then `active` or `error` with a reason) and refuse a taken name with 409. This module supports
//!   both.
//! - Names are unique in an organisation, prepared images among them; their number is limited by its quota.
//! - A snapshot that is unused for two weeks becomes `inactive`, and a create from it is refused until it is activated.
//! - A delete answers at once too: the snapshot's state is `removing` until it is gone, and its name stays taken until
//!   then.

use async_trait::async_trait;
use bobbin_core::base::failure::Failure;
use bobbin_core::records::sandbox::SandboxState;

use super::client::DaytonaError;
use super::prepared::{self, Readiness};
use super::sandboxes::DaytonaSandboxes;
use crate::provider::{ErrorKind, ProviderError, ProviderResult, SnapshotStore};
use crate::snapshot::{Snapshot, SnapshotName, SnapshotState, stack_prefix};

/// Daytona's state of a sandbox while a snapshot of it is made.
const SNAPSHOTTING: &str = "snapshotting";

impl DaytonaSandboxes {
    /// After a refusal, observes the snapshot and the sandbox: either the same snapshot was requested before, or it is
    /// not possible now.
    async fn why_no_snapshot(
        &self,
        name: &SnapshotName,
        error: DaytonaError,
    ) -> ProviderResult<SnapshotState> {
        let seen = self.observe(name).await?;
        if seen != SnapshotState::Absent {
            return Ok(seen);
        }
        let sandbox = self.client.observe(name.sandbox()).await?;
        match sandbox.sandbox_state() {
            SandboxState::Gone => Err(DaytonaError::NotFound.into()),
            SandboxState::Provisioning | SandboxState::Busy => {
                let message = format!("a snapshot has to wait: {error}");
                Err(DaytonaError::Conflict { message }.into())
            }
            // Archived, paused or broken: Daytona makes no snapshot in this state.
            SandboxState::Stopped | SandboxState::Broken { .. }
                if sandbox.state.as_deref() != Some("stopped") =>
            {
                let said = sandbox.state.unwrap_or_default();
                let reason =
                    format!("the sandbox is {said}: start it, then take the snapshot ({error})");
                Err(ProviderError {
                    kind: ErrorKind::WrongState,
                    seen: reason.clone(),
                    failure: Failure::TurnFailed { reason },
                })
            }
            _ => Err(error.into()),
        }
    }

    /// What to do about a create from a snapshot that Daytona refused.
    pub(super) async fn why_not_of(
        &self,
        name: Option<&SnapshotName>,
        refused: DaytonaError,
    ) -> ProviderError {
        let Some(name) = name else {
            return refused.into();
        };
        let found = match self.client.observe_snapshot(&name.to_string()).await {
            Ok(found) => found,
            Err(error) => return error.into(),
        };
        let wait = |seen: &str| -> ProviderError {
            Failure::Wait { after_ms: 0, seen: format!("{seen} ({refused})") }.into()
        };
        let lost = |what: &str| -> ProviderError {
            let reason = format!(
                "The snapshot for the new sandbox {what}. Choose another snapshot, or create the sandbox without one."
            );
            Failure::TurnFailed { reason }.into()
        };
        match found.as_ref().map(prepared::DaytonaSnapshot::readiness) {
            Some(Readiness::Ready) => refused.into(),
            Some(Readiness::Underway) => wait("the snapshot is not ready yet"),
            Some(Readiness::Asleep) => {
                let id = found.map(|found| found.id).unwrap_or_default();
                match self.client.activate_snapshot(&id).await {
                    // Somebody else has activated it.
                    Ok(()) | Err(DaytonaError::Refused { status: 400, .. }) => {
                        wait("the snapshot was inactive")
                    }
                    Err(error) => error.into(),
                }
            }
            Some(Readiness::Failed(reason)) => lost(&format!("cannot be used ({reason})")),
            Some(Readiness::Going) | None => lost("no longer exists"),
        }
    }
}

#[async_trait]
impl SnapshotStore for DaytonaSandboxes {
    /// Observe, call, observe again.
    async fn create(&self, name: &SnapshotName) -> ProviderResult<SnapshotState> {
        let seen = self.observe(name).await?;
        if seen != SnapshotState::Absent {
            return Ok(seen);
        }
        let asked = self.client.snapshot_sandbox(name.sandbox(), &name.to_string()).await;
        match asked {
            // Only a later observation tells whether it has been made.
            Ok(()) => Ok(SnapshotState::Underway),
            Err(
                error @ (DaytonaError::Conflict { .. } | DaytonaError::Refused { status: 400, .. }),
            ) if !error.says_snapshots_full() => self.why_no_snapshot(name, error).await,
            Err(error) => Err(error.into()),
        }
    }

    async fn observe(&self, name: &SnapshotName) -> ProviderResult<SnapshotState> {
        let text = name.to_string();
        if let Some(found) = self.client.observe_snapshot(&text).await? {
            return Ok(state_of(&found));
        }
        match self.client.observe(name.sandbox()).await {
            Ok(sandbox) if sandbox.state.as_deref() == Some(SNAPSHOTTING) => {
                return Ok(SnapshotState::Underway);
            }
            Ok(_) | Err(DaytonaError::NotFound) => {}
            Err(error) => return Err(error.into()),
        }
        // The record is written before the sandbox returns to its state, so one observation after that is enough.
        let again = self.client.observe_snapshot(&text).await?;
        Ok(again.map_or(SnapshotState::Absent, |found| state_of(&found)))
    }

    async fn list(&self) -> ProviderResult<Vec<Snapshot>> {
        let stack = self.settings.stack();
        let found = self.client.list_snapshots(&stack_prefix(stack)).await?;
        let ours = |told: prepared::DaytonaSnapshot| {
            let state = state_of(&told);
            let name = SnapshotName::parse(stack, &told.name)?;
            (state != SnapshotState::Absent).then_some(Snapshot { name, state, gib: told.size })
        };
        let mut ours: Vec<Snapshot> = found.into_iter().filter_map(ours).collect();
        ours.sort_by_key(|one| std::cmp::Reverse(one.name.at_ms()));
        Ok(ours)
    }

    async fn delete(&self, name: &SnapshotName) -> ProviderResult<()> {
        let found = self.client.observe_snapshot(&name.to_string()).await?;
        let Some(found) = found.filter(|found| found.readiness() != Readiness::Going) else {
            return Ok(());
        };
        match self.client.delete_snapshot(&found.id).await {
            Ok(()) | Err(DaytonaError::NotFound) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn state_of(found: &prepared::DaytonaSnapshot) -> SnapshotState {
    match found.readiness() {
        Readiness::Ready => SnapshotState::Ready,
        Readiness::Asleep => SnapshotState::Asleep,
        Readiness::Failed(reason) => SnapshotState::Failed { reason },
        Readiness::Going => SnapshotState::Absent,
        Readiness::Underway => SnapshotState::Underway,
    }
}
