//! Snapshots of a thread's sandbox, and sandboxes created from one.

use std::collections::BTreeMap;
use std::time::Duration;

use bobbin_core::base::failure::Failure;
use bobbin_core::base::ids::{Ms, SandboxKey, Tenant, digest};
use bobbin_core::protocol::effect::PrebuildShare;
use bobbin_core::protocol::event::Event;
use bobbin_core::records::recipe::ProjectService;
use bobbin_core::records::sandbox::SnapshotSeen;
use bobbin_sandbox::labels::StackIdentity;

use bobbin_sandbox::{
    ErrorKind, ProviderError, ProviderResult, SnapshotName, SnapshotState, SnapshotStore,
};
use tokio::time::sleep;

use super::Sandboxes;
use super::clone::OF;
use super::lifecycle::Done;

pub(super) const MARK: &str = include_str!("prebuild.sh");
/// Time for marking a disk.
const MARK_TIME: Duration = Duration::from_secs(30);
/// Tries to make a snapshot in the place of one that was given up, and the time between two.
const FREED_LOOKS_MAX: u32 = 10;
const FREED_LOOK: Duration = Duration::from_secs(1);
/// Hex digits that tell images apart.
const IMAGE_DIGITS: usize = 16;

fn is_full(made: &ProviderResult<SnapshotState>) -> bool {
    matches!(made, Err(ProviderError { kind: ErrorKind::SnapshotsFull, .. }))
}

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

    /// The prebuild with this name, if it is the tenant's.
    pub(super) fn usable_prebuild(
        &self,
        sandbox: &SandboxKey,
        name: &str,
    ) -> Result<SnapshotName, Failure> {
        let known = SnapshotName::parse(self.stack(), name);
        known
            .filter(|known| known.is_prebuild_of(&sandbox.tenant()))
            .ok_or_else(|| Failure::TurnFailed { reason: "There is no such prebuild.".to_owned() })
    }

    /// What a sandbox without a snapshot begins with, as a hash; `None`: no snapshots are made here.
    #[must_use]
    pub fn image(&self) -> Option<String> {
        let facts = self.provider.facts();
        facts.snapshots.ok().map(|_| digest(&["image", facts.image])[..IMAGE_DIGITS].to_owned())
    }

    /// Marks the disk as a prebuild's, and makes room for it among the tenant's.
    async fn prepare_prebuild(
        &self,
        (sandbox, generation): (&SandboxKey, u32),
        snapshots: &dyn SnapshotStore,
        at_ms: Ms,
        share: &PrebuildShare,
    ) -> Result<(), Failure> {
        let found = self.find_running(sandbox, generation).await?;
        let environment = BTreeMap::from([(OF.to_owned(), self.name(sandbox, generation))]);
        let marked = self.provider.exec(&found, MARK, &environment, MARK_TIME).await;
        let marked = marked.map_err(|error| error.failure)?;
        if marked.exit_code != 0 {
            return Err(Failure::Wait { after_ms: 0, seen: "the disk was not marked".to_owned() });
        }
        let tenant = sandbox.tenant();
        let listed = snapshots.list().await?.into_iter().map(|one| one.name);
        let (own, mut others): (Vec<_>, Vec<_>) = listed
            .filter(|name| name.is_prebuild_of(&tenant))
            .partition(|name| name.is_of(self.stack(), sandbox));
        others.sort_by_key(SnapshotName::at_ms);
        let surplus = (others.len() + 1).saturating_sub(share.most as usize);
        let is_left =
            |name: &&SnapshotName| name.at_ms() < at_ms && !share.keeps.contains(&name.to_string());
        let left = own.iter().filter(is_left);
        for name in others.iter().take(surplus).chain(left) {
            tracing::info!(event = "prebuild.replaced", %name, "a prebuild gives way to a newer one");
            snapshots.delete(name).await?;
        }
        Ok(())
    }

    /// Deletes the tenant's oldest prebuild, so that a person's snapshot finds room. False: there is none.
    async fn give_up_prebuild(
        &self,
        tenant: &Tenant,
        snapshots: &dyn SnapshotStore,
    ) -> Result<bool, Failure> {
        let listed = snapshots.list().await?.into_iter().map(|one| one.name);
        let oldest =
            listed.filter(|name| name.is_prebuild_of(tenant)).min_by_key(SnapshotName::at_ms);
        let Some(name) = oldest else { return Ok(false) };
        tracing::info!(event = "prebuild.replaced", %name, "a prebuild gives way to a person's snapshot");
        snapshots.delete(&name).await?;
        Ok(true)
    }

    /// Requests a snapshot, or checks the progress of one.
    pub(super) async fn snapshot(
        &self,
        (sandbox, generation): (&SandboxKey, u32),
        (at_ms, after_ms): (Ms, u64),
        services: &[ProjectService],
        share: Option<&PrebuildShare>,
    ) -> Done {
        let failed = |why: &str| {
            let why = why.to_owned();
            Ok(SnapshotSeen::Failed { why })
        };
        let of_kind = if share.is_some() { SnapshotName::prebuild } else { SnapshotName::new };
        let name = of_kind(self.stack(), sandbox, generation, at_ms);
        let seen = match self.provider.facts().snapshots() {
            Err(why) => failed(&why),
            Ok(snapshots) => {
                sleep(Duration::from_millis(after_ms)).await;
                self.hold_services((sandbox, generation), services, "stop").await;
                let made = async {
                    if let (0, Some(share)) = (after_ms, share) {
                        let of = (sandbox, generation);
                        self.prepare_prebuild(of, snapshots, at_ms, share).await?;
                    }
                    let mut made = snapshots.create(&name).await;
                    if share.is_none()
                        && is_full(&made)
                        && self.give_up_prebuild(&sandbox.tenant(), snapshots).await?
                    {
                        // It counts until the provider has deleted it.
                        for _ in 0..FREED_LOOKS_MAX {
                            sleep(FREED_LOOK).await;
                            made = snapshots.create(&name).await;
                            if !is_full(&made) {
                                break;
                            }
                        }
                    }
                    Ok::<_, Failure>(made)
                };
                // Whatever fails, the services are started again.
                match made.await {
                    Ok(Ok(SnapshotState::Underway)) => Ok(SnapshotSeen::UnderWay),
                    Ok(Ok(SnapshotState::Ready | SnapshotState::Asleep)) => Ok(SnapshotSeen::Ready),
                    Ok(Ok(SnapshotState::Failed { reason })) => failed(&reason),
                    Ok(Ok(SnapshotState::Absent)) => {
                        failed("the provider made none, and does not say why")
                    }
                    Ok(Err(ProviderError { kind: ErrorKind::WrongState, .. })) => {
                        failed("the sandbox has to be started first")
                    }
                    Ok(full) if is_full(&full) => {
                        failed("there is no room for another snapshot: delete one first")
                    }
                    Ok(Err(error)) => Err(error.failure),
                    Err(failure) => Err(failure),
                }
            }
        };
        if !matches!(seen, Ok(SnapshotSeen::UnderWay)) {
            self.hold_services((sandbox, generation), services, "start").await;
        }
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
