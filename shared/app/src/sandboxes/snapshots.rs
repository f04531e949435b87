//! Snapshots of a thread's sandbox, and sandboxes created from one.

use std::time::Duration;

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, SandboxKey};
use bobbin_core::protocol::event::Event;
use bobbin_core::records::sandbox::SnapshotSeen;
use bobbin_sandbox::labels::StackIdentity;

use bobbin_sandbox::{ErrorKind, ProviderError, SnapshotName, SnapshotState};
use tokio::time::sleep;

use super::Sandboxes;
use super::lifecycle::Done;

impl Sandboxes {
    fn stack(&self) -> StackIdentity<'_> {
        StackIdentity { name: &self.settings.stack, id: &self.settings.stack_id }
    }

    /// The snapshot with this name, if the tenant's sandboxes may be created from it: it holds another sandbox's data.
    pub(super) fn usable(&self, sandbox: &SandboxKey, name: &str) -> Result<SnapshotName, Failure> {
        let known = SnapshotName::parse(self.stack(), name);
        known
            .filter(|known| known.is_of_tenant(&sandbox.tenant()))
            .ok_or_else(|| Failure::TurnFailed {
                reason: "There is no such snapshot here. The list of sandboxes shows the newest snapshot of each; without a snapshot a fresh sandbox is created.".to_owned(),
            })
    }

    /// Requests a snapshot, or checks the progress of one.
    pub(super) async fn snapshot(
        &self,
        sandbox: &SandboxKey,
        generation: u32,
        at_ms: Ms,
        after_ms: u64,
    ) -> Done {
        let failed = |why: &str| {
            let why = why.to_owned();
            Ok(SnapshotSeen::Failed { why })
        };
        let name = SnapshotName::new(self.stack(), sandbox, generation, at_ms);
        let seen = match self.provider.facts().snapshots() {
            Err(why) => failed(&why),
            Ok(snapshots) => {
                sleep(Duration::from_millis(after_ms)).await;
                match snapshots.create(&name).await {
                    Ok(SnapshotState::Underway) => Ok(SnapshotSeen::UnderWay),
                    Ok(SnapshotState::Ready | SnapshotState::Asleep) => Ok(SnapshotSeen::Ready),
                    Ok(SnapshotState::Failed { reason }) => failed(&reason),
                    Ok(SnapshotState::Absent) => {
                        failed("the provider made none, and does not say why")
                    }
                    Err(ProviderError { kind: ErrorKind::WrongState, .. }) => {
                        failed("the sandbox has to be started first")
                    }
                    Err(ProviderError { kind: ErrorKind::SnapshotsFull, .. }) => {
                        failed("there is no room for another snapshot: delete one first")
                    }
                    Err(error) => Err(error.failure),
                }
            }
        };
        seen.map(|seen| Event::SnapshotSeen { name: name.to_string(), seen })
    }

    pub(super) async fn delete_snapshot(&self, name: &str) -> Done {
        // A name that is not ours is not ours to delete.
        if let Some(known) = SnapshotName::parse(self.stack(), name)
            && let Ok(snapshots) = self.provider.facts().snapshots
        {
            snapshots.delete(&known).await?;
        }
        Ok(Event::SnapshotDeleted { name: name.to_owned() })
    }
}
