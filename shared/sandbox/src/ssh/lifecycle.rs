//! Create, start, stop and delete: read the hosts' registries, write the intended stage, do it, write that it is done.
//!
//! A read that finds an unfinished step completes it, so that a lost answer is repaired by a repeat.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::PoisonError;
use std::time::Duration;

use bobbin_core::base::ids::SandboxKey;
use bobbin_core::base::names::sandbox_name;
use futures::future::join_all;
use tokio::time::timeout;

use super::archives::ArchiveRequest;
use super::bounds::{KILLS_MAX, LIFECYCLE_MS_MAX, LISTED_MAX, PLACES_TRIED_MAX};
use super::error::SshError;
use super::exec::SlotVerb;
use super::registry::{
    Inventory, NO_ARCHIVE, RegistryEntry, RegistryRequest, SlotStage, UNCLEAN, failed,
};
use super::sandboxes::SshSandboxes;
use super::slot::Slot;
use crate::labels::{LABEL_STACK_ID, labels};
use crate::provider::Sandbox;
use crate::snapshot::SnapshotName;

/// What a slot says of a snapshot that is not unpacked in it, and of one that is being unpacked.
const ABSENT: &str = "absent";
const UNDERWAY: &str = "underway";

/// What every host has, or why it could not be read.
pub(super) struct Everywhere<T = Inventory>(pub(super) Vec<Result<T, SshError>>);

impl<T> Everywhere<T> {
    /// The hosts that could be read.
    pub(super) fn known(&self) -> impl Iterator<Item = (usize, &T)> {
        let hosts = self.0.iter().enumerate();
        hosts.filter_map(|(at, seen)| Some((at, seen.as_ref().ok()?)))
    }

    /// Why something may exist although it was not found: a host could not be read.
    pub(super) fn doubt(&self) -> Option<SshError> {
        let error = self.0.iter().find_map(|seen| seen.as_ref().err())?;
        let somebody_answers = self.0.iter().any(Result::is_ok);
        Some(match error {
            // The other hosts continue to work, so this is no outage of all.
            SshError::Unreachable { .. } if somebody_answers => {
                SshError::Busy { what: format!("{error}, and no other host has it") }
            }
            error => error.clone(),
        })
    }
}

impl Everywhere {
    pub(super) fn entries(&self) -> impl Iterator<Item = (usize, &Inventory, &RegistryEntry)> {
        let known = self.known();
        known.flat_map(|(at, seen)| seen.entries.iter().map(move |entry| (at, seen, entry)))
    }

    /// The sandbox with this name. If there are two, the one that was created because the other's host could not be
    /// reached: nobody has worked in the other.
    fn find(&self, name: &str, hosts: &[&str]) -> Option<(usize, &Inventory, &RegistryEntry)> {
        let named = || self.entries().filter(|(_, _, entry)| entry.name == name);
        named()
            .filter(|(at, _, _)| !self.is_void(*at, name, hosts))
            .min_by_key(|(_, _, entry)| entry.created_s)
    }

    pub(super) fn is_void(&self, at: usize, name: &str, hosts: &[&str]) -> bool {
        self.entries().any(|(other, _, entry)| {
            other != at
                && entry.name == name
                && entry.instead_of.iter().any(|host| host == hosts[at])
        })
    }
}

impl SshSandboxes {
    /// Creates the sandbox on the host that has the snapshot, or else on the one with most room; or finds it.
    pub(super) async fn made(
        &self,
        key: &SandboxKey,
        generation: u32,
        snapshot: Option<&SnapshotName>,
    ) -> Result<SlotStage, SshError> {
        let stack = self.settings.stack();
        let name = sandbox_name(stack.name, key, generation);
        let labels = labels(stack, key, generation);
        let mut unclean: Vec<(Slot, SshError)> = Vec::new();
        for _ in 0..PLACES_TRIED_MAX {
            let seen = self.everywhere().await;
            let found = seen.find(&name, &self.host_names());
            let claimed = match found {
                Some((host, inventory, entry)) => {
                    let slot = self.slot_of(host, inventory, entry);
                    if !self.told(&slot, entry).belongs_to(stack, key, generation) {
                        return Err(self.foreign(&slot));
                    }
                    Some((slot, entry.clone()))
                }
                None => {
                    let from = match snapshot {
                        Some(snapshot) => Some((snapshot, self.holder(snapshot).await?)),
                        None => None,
                    };
                    let claimed = self.claim(&seen, (&name, from), &labels, &unclean).await;
                    claimed.map_err(|error| match (error, from) {
                        (SshError::Full { .. }, Some((snapshot, host))) => {
                            self.holder_full(host, snapshot.is_prebuild_of(&key.tenant()))
                        }
                        (error, _) => error,
                    })?
                }
            };
            // A sandbox in the way is gone: try again.
            let Some((slot, entry)) = claimed else {
                continue;
            };
            self.remember(&slot);
            let error = match self.settle(&slot, &entry).await {
                Ok(stage) => return Ok(stage),
                Err(error) if error.is_about_snapshot() => {
                    self.deleted(&slot).await?;
                    return Err(error);
                }
                Err(
                    error @ (SshError::Unclean { .. }
                    | SshError::KeyRefused { .. }
                    | SshError::NotSetUp { .. }),
                ) if entry.stage == SlotStage::Preparing => error,
                Err(error) => return Err(error),
            };
            // Nothing of ours is there yet: the slot is left unchanged.
            let release = RegistryRequest::Release { name: &name, from: SlotStage::Preparing };
            self.hosts.registry(slot.host, &release).await?;
            match error {
                SshError::Unclean { .. } => unclean.push((slot, error)),
                error => return Err(error),
            }
        }
        Err(match unclean.pop() {
            Some((_, error)) => error,
            None => SshError::Busy {
                what: "the SSH hosts change faster than they can be read".to_owned(),
            },
        })
    }

    /// Claims a slot on the host that has the snapshot, or else on the one with most room. `None`: there was no room
    /// until a sandbox that was being deleted was gone.
    async fn claim(
        &self,
        seen: &Everywhere,
        (name, from): (&str, Option<(&SnapshotName, usize)>),
        labels: &BTreeMap<String, String>,
        unclean: &[(Slot, SshError)],
    ) -> Result<Option<(Slot, RegistryEntry)>, SshError> {
        let hosts = self.hosts.all();
        let silent: Vec<&str> = (hosts.iter().zip(&seen.0))
            .filter(|(_, seen)| seen.is_err())
            .map(|(host, _)| host.name.as_str())
            .collect();
        let room = |at: usize, seen: &Inventory| seen.room(hosts[at].sandboxes);
        let is_wanted = |at: usize| from.is_none_or(|(_, holder)| holder == at);
        let answering = seen.known().filter(|(at, _)| is_wanted(*at));
        let answering = answering.map(|(at, seen)| (at, room(at, seen)));
        let mut roomy: Vec<(usize, u16)> = answering.filter(|(_, room)| *room > 0).collect();
        // With equal room, the first in the settings.
        roomy.sort_by_key(|(_, room)| std::cmp::Reverse(*room));
        let snapshot = from.map(|(snapshot, _)| snapshot.to_string());
        for (host, _) in roomy {
            let without: Vec<u16> = (unclean.iter())
                .filter(|(slot, _)| slot.host == host)
                .map(|(slot, _)| slot.number)
                .collect();
            let ask = RegistryRequest::Claim {
                name,
                labels,
                instead_of: &silent,
                snapshot: snapshot.as_deref(),
                without: &without,
            };
            match self.hosts.registry(host, &ask).await {
                Ok(inventory) => {
                    let entry = inventory.entry(name);
                    return Ok(
                        entry.map(|entry| (self.slot_of(host, &inventory, entry), entry.clone()))
                    );
                }
                // Another worker was faster.
                Err(SshError::Full { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        if let Some((_, error)) = unclean.last() {
            return Err(error.clone());
        }
        let leaving = (seen.entries()).find(|(at, _, entry)| {
            is_wanted(*at) && entry.stage == SlotStage::Destroying && self.is_ours(entry)
        });
        if let Some((host, inventory, entry)) = leaving {
            let slot = self.slot_of(host, inventory, entry);
            return self.finish_delete(&slot).await.map(|_| None);
        }
        match seen.0.iter().find_map(|seen| seen.as_ref().err()) {
            Some(error) if silent.len() == hosts.len() => Err(error.clone()),
            _ => Err(self.full(seen)),
        }
    }

    fn full(&self, seen: &Everywhere) -> SshError {
        let told = (self.hosts.all().iter().zip(&seen.0)).map(|(host, seen)| match seen {
            Ok(seen) => format!(
                "{} has {} of {}",
                host.name,
                seen.entries.len(),
                host.sandboxes.min(seen.slots)
            ),
            Err(error) => error.to_string(),
        });
        SshError::Full { hosts: told.collect::<Vec<_>>().join(", ") }
    }

    /// A prebuild is not waited for: there, a repeat without it is better.
    fn holder_full(&self, host: usize, is_prebuild: bool) -> SshError {
        let full = SshError::HolderFull { host: self.host_name(host).to_owned() };
        if is_prebuild { SshError::Busy { what: full.to_string() } } else { full }
    }

    pub(super) async fn deleted(&self, slot: &Slot) -> Result<SlotStage, SshError> {
        let from =
            [SlotStage::Preparing, SlotStage::Running, SlotStage::Stopping, SlotStage::Stopped];
        self.moved(slot, &from, SlotStage::Destroying).await?;
        self.finish_delete(slot).await
    }

    /// Completes an unfinished step.
    pub(super) async fn settle(
        &self,
        slot: &Slot,
        entry: &RegistryEntry,
    ) -> Result<SlotStage, SshError> {
        match entry.stage {
            SlotStage::Running | SlotStage::Stopped => Ok(entry.stage),
            SlotStage::Preparing => self.prepare(slot, entry.snapshot.as_deref()).await,
            SlotStage::Stopping => self.finish_stop(slot).await,
            SlotStage::Destroying => self.finish_delete(slot).await,
        }
    }

    /// Makes the directory. One that begins with a snapshot is unpacked in the background: it is made when it is whole.
    async fn prepare(&self, slot: &Slot, snapshot: Option<&str>) -> Result<SlotStage, SshError> {
        let from = match snapshot {
            Some(name) => {
                let known = SnapshotName::parse(self.settings.stack(), name);
                Some(known.ok_or(SshError::SnapshotGone)?)
            }
            None => None,
        };
        let of = from.as_ref().map(SnapshotName::sandbox);
        let seen = self.on_slot(slot, SlotVerb::Prepare { of }).await?;
        match (seen.trim(), &from) {
            (ABSENT, Some(from)) => {
                let ask = ArchiveRequest::Send(from, slot);
                if let Some(pipe) = &self.hosts.archives(slot.host, &ask).await?.pipe {
                    self.on_slot(slot, SlotVerb::Unpack { of: from.sandbox(), pipe }).await?;
                }
                return Ok(SlotStage::Preparing);
            }
            (UNDERWAY, _) => return Ok(SlotStage::Preparing),
            _ => {}
        }
        self.moved(slot, &[SlotStage::Preparing], SlotStage::Running).await?;
        Ok(SlotStage::Running)
    }

    pub(super) async fn finish_stop(&self, slot: &Slot) -> Result<SlotStage, SshError> {
        self.forwards.close(slot);
        self.end_processes(slot).await?;
        self.moved(slot, &[SlotStage::Stopping], SlotStage::Stopped).await?;
        Ok(SlotStage::Stopped)
    }

    async fn finish_delete(&self, slot: &Slot) -> Result<SlotStage, SshError> {
        self.forwards.close(slot);
        self.end_processes(slot).await?;
        self.on_slot(slot, SlotVerb::Wipe).await?;
        let release = RegistryRequest::Release { name: &slot.name, from: SlotStage::Destroying };
        self.hosts.registry(slot.host, &release).await?;
        Ok(SlotStage::Destroying)
    }

    /// Kills every process of the slot's user. The kernel kills them all at once, including the login that runs the
    /// command: the processes seen before are looked up afterwards.
    async fn end_processes(&self, slot: &Slot) -> Result<(), SshError> {
        for _ in 0..KILLS_MAX {
            let before = self.on_slot(slot, SlotVerb::Halt).await?;
            match self.slot(slot, SlotVerb::Kill).await {
                Ok(_) | Err(SshError::Unreachable { .. }) => {}
                Err(error) => return Err(error),
            }
            let left = self.on_slot(slot, SlotVerb::Left(before.trim())).await?;
            if left.trim().is_empty() {
                return Ok(());
            }
        }
        Err(SshError::Busy {
            what: format!(
                "processes of the user {} on the SSH host {} cannot be ended",
                self.user(slot),
                self.host_name(slot.host)
            ),
        })
    }

    /// Runs the operation and returns its output, or why it failed.
    pub(super) async fn on_slot(
        &self,
        slot: &Slot,
        verb: SlotVerb<'_>,
    ) -> Result<String, SshError> {
        let ran = self.slot(slot, verb).await?;
        match ran.code {
            Some(0) => Ok(String::from_utf8_lossy(&ran.out).into_owned()),
            Some(UNCLEAN) => Err(SshError::Unclean {
                host: self.host_name(slot.host).to_owned(),
                user: self.user(slot),
            }),
            Some(NO_ARCHIVE) => {
                Err(SshError::SnapshotUnusable { host: self.host_name(slot.host).to_owned() })
            }
            _ => Err(failed(self.host_name(slot.host), &ran)),
        }
    }

    /// Writes the next stage, on condition of the present one. In any other stage, another worker has continued with
    /// it.
    pub(super) async fn moved(
        &self,
        slot: &Slot,
        from: &[SlotStage],
        to: SlotStage,
    ) -> Result<(), SshError> {
        let ask = RegistryRequest::Move { name: &slot.name, from, to };
        let inventory = self.hosts.registry(slot.host, &ask).await?;
        match inventory.entry(&slot.name).map(|entry| entry.stage) {
            Some(stage) if stage == to => Ok(()),
            _ => Err(SshError::Busy {
                what: format!("another worker is changing the sandbox {}", slot.name),
            }),
        }
    }

    /// The place of the sandbox with this name, regardless of its stack.
    pub(super) async fn locate(&self, name: &str) -> Result<(Slot, RegistryEntry), SshError> {
        if let Some(host) = self.guess(name)
            && let Ok(seen) = self.hosts.registry(host, &RegistryRequest::Look).await
            && let Some(entry) = seen.entry(name)
        {
            return Ok((self.slot_of(host, &seen, entry), entry.clone()));
        }
        let seen = self.everywhere().await;
        let Some((host, inventory, entry)) = seen.find(name, &self.host_names()) else {
            return Err(seen.doubt().unwrap_or(SshError::NotFound));
        };
        let slot = self.slot_of(host, inventory, entry);
        self.remember(&slot);
        Ok((slot, entry.clone()))
    }

    /// Like [`Self::locate`], but only for our own: another stack's is left alone. `None`: it does not exist.
    pub(super) async fn locate_ours(
        &self,
        name: &str,
    ) -> Result<Option<(Slot, RegistryEntry)>, SshError> {
        match self.locate(name).await {
            Ok((slot, entry)) if self.is_ours(&entry) => Ok(Some((slot, entry))),
            Ok((slot, _)) => Err(self.foreign(&slot)),
            Err(SshError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn everywhere(&self) -> Everywhere {
        let hosts = 0..self.hosts.all().len();
        let asked = hosts.map(|host| self.hosts.registry(host, &RegistryRequest::Look));
        Everywhere(join_all(asked).await)
    }

    /// The sandbox in the provider's form.
    pub(super) fn told(&self, slot: &Slot, entry: &RegistryEntry) -> Sandbox {
        let host = self.host_name(slot.host);
        entry.sandbox(format!("{host}/{}/{}", slot.number, slot.port))
    }

    pub(super) fn slot_of(
        &self,
        host: usize,
        inventory: &Inventory,
        entry: &RegistryEntry,
    ) -> Slot {
        Slot {
            host,
            number: entry.slot,
            port: inventory.first_port.saturating_add(entry.slot),
            name: entry.name.clone(),
        }
    }

    pub(super) fn host_names(&self) -> Vec<&str> {
        self.hosts.all().iter().map(|host| host.name.as_str()).collect()
    }

    pub(super) fn is_ours(&self, entry: &RegistryEntry) -> bool {
        entry.labels.get(LABEL_STACK_ID) == Some(&self.settings.stack_id)
    }

    fn foreign(&self, slot: &Slot) -> SshError {
        SshError::Foreign { host: self.host_name(slot.host).to_owned(), name: slot.name.clone() }
    }

    fn guess(&self, name: &str) -> Option<usize> {
        let seen = self.last_seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(name).copied()
    }

    fn remember(&self, slot: &Slot) {
        let mut seen = self.last_seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= LISTED_MAX {
            seen.clear();
        }
        seen.insert(slot.name.clone(), slot.host);
    }
}

pub(super) fn carries(entry: &RegistryEntry, labels: &BTreeMap<String, String>) -> bool {
    let mut wanted = labels.iter();
    wanted.all(|(name, value)| entry.labels.get(name) == Some(value))
}

/// Bounds the time of a lifecycle call, because a late one cannot be taken back.
pub(super) async fn bounded<T>(
    call: impl Future<Output = Result<T, SshError>>,
) -> Result<T, SshError> {
    match timeout(Duration::from_millis(LIFECYCLE_MS_MAX), call).await {
        Ok(done) => done,
        Err(_) => Err(SshError::Busy { what: "an SSH host takes too long".to_owned() }),
    }
}
