//! Making, waking, halting and removing: look at the hosts, write what is to be, do it, write that it is so.
//!
//! What a look finds half done it finishes, so that a lost answer is repaired by asking again.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::PoisonError;
use std::time::Duration;

use bobbin_core::base::ids::{SandboxKey, sandbox_name};
use bobbin_core::records::sandbox::SandboxState;
use futures::future::join_all;
use tokio::time::{Instant, timeout};

use super::bounds::{KILLS_MAX, LIFECYCLE_MS_MAX, LISTED_MAX, PLACES_TRIED_MAX};
use super::error::SshError;
use super::exec::SlotVerb;
use super::registry::{Ask, Entry, Inventory, Stage, UNCLEAN, failed};
use super::seam::SshSandboxes;
use super::slot::Slot;
use crate::labels::{LABEL_STACK_ID, labels};
use crate::provider::Sandbox;

/// What every host has, or why it does not say.
struct Everywhere(Vec<Result<Inventory, SshError>>);

impl Everywhere {
    fn entries(&self) -> impl Iterator<Item = (usize, &Inventory, &Entry)> {
        let hosts = self.0.iter().enumerate();
        let known = hosts.filter_map(|(at, seen)| Some((at, seen.as_ref().ok()?)));
        known.flat_map(|(at, seen)| seen.entries.iter().map(move |entry| (at, seen, entry)))
    }

    /// The sandbox of this name. Of two, the one that was made because the other's host could not be asked: nobody has
    /// worked in the other.
    fn find(&self, name: &str, hosts: &[&str]) -> Option<(usize, &Inventory, &Entry)> {
        let named = || self.entries().filter(|(_, _, entry)| entry.name == name);
        named()
            .filter(|(at, _, _)| !self.is_void(*at, name, hosts))
            .min_by_key(|(_, _, entry)| entry.created_s)
    }

    fn is_void(&self, at: usize, name: &str, hosts: &[&str]) -> bool {
        self.entries().any(|(other, _, entry)| {
            other != at
                && entry.name == name
                && entry.instead_of.iter().any(|host| host == hosts[at])
        })
    }

    /// Why it is not known that there is no such sandbox: a host did not say what it has.
    fn doubt(&self) -> Option<SshError> {
        let error = self.0.iter().find_map(|seen| seen.as_ref().err())?;
        let somebody_answers = self.0.iter().any(Result::is_ok);
        Some(match error {
            // The others go on working, so this is no outage of all.
            SshError::Unreachable { .. } if somebody_answers => {
                SshError::Busy { what: format!("{error}, and no other host has the sandbox") }
            }
            error => error.clone(),
        })
    }
}

impl SshSandboxes {
    /// Makes it where there is most room, or finds it.
    pub(super) async fn create(
        &self,
        key: &SandboxKey,
        generation: u32,
    ) -> Result<SandboxState, SshError> {
        bounded(self.created(key, generation)).await
    }

    async fn created(&self, key: &SandboxKey, generation: u32) -> Result<SandboxState, SshError> {
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
                    Some((slot, entry.stage))
                }
                None => self.claim(&seen, &name, &labels, &unclean).await?,
            };
            // Something that was in the way is gone: look again.
            let Some((slot, stage)) = claimed else {
                continue;
            };
            self.remember(&slot);
            if stage != Stage::Preparing {
                return self.settle(&slot, stage).await;
            }
            let error = match self.prepare(&slot).await {
                Ok(state) => return Ok(state),
                Err(
                    error @ (SshError::Unclean { .. }
                    | SshError::KeyRefused { .. }
                    | SshError::NotSetUp { .. }),
                ) => error,
                Err(error) => return Err(error),
            };
            // Nothing of ours is there yet: the slot is left as it was.
            let release = Ask::Release { name: &name, from: Stage::Preparing };
            self.hosts.registry(slot.host, &release).await?;
            match error {
                SshError::Unclean { .. } => unclean.push((slot, error)),
                error => return Err(error),
            }
        }
        Err(match unclean.pop() {
            Some((_, error)) => error,
            None => SshError::Busy {
                what: "the SSH hosts change faster than they can be looked at".to_owned(),
            },
        })
    }

    /// A slot of the host with most room. None: there was no room until a sandbox that was on its way out is gone.
    async fn claim(
        &self,
        seen: &Everywhere,
        name: &str,
        labels: &BTreeMap<String, String>,
        unclean: &[(Slot, SshError)],
    ) -> Result<Option<(Slot, Stage)>, SshError> {
        let hosts = self.hosts.all();
        let silent: Vec<&str> = (hosts.iter().zip(&seen.0))
            .filter(|(_, seen)| seen.is_err())
            .map(|(host, _)| host.name.as_str())
            .collect();
        let room = |at: usize, seen: &Inventory| seen.room(hosts[at].sandboxes);
        let answering = seen.0.iter().enumerate();
        let answering =
            answering.filter_map(|(at, seen)| Some((at, room(at, seen.as_ref().ok()?))));
        let mut roomy: Vec<(usize, u16)> = answering.filter(|(_, room)| *room > 0).collect();
        // Of as much room, the first in the settings.
        roomy.sort_by_key(|(_, room)| std::cmp::Reverse(*room));
        for (host, _) in roomy {
            let without: Vec<u16> = (unclean.iter())
                .filter(|(slot, _)| slot.host == host)
                .map(|(slot, _)| slot.number)
                .collect();
            let ask = Ask::Claim { name, labels, instead_of: &silent, without: &without };
            match self.hosts.registry(host, &ask).await {
                Ok(inventory) => {
                    let entry = inventory.entry(name);
                    return Ok(
                        entry.map(|entry| (self.slot_of(host, &inventory, entry), entry.stage))
                    );
                }
                // Somebody else was faster.
                Err(SshError::Full { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        if let Some((_, error)) = unclean.last() {
            return Err(error.clone());
        }
        let leaving = (seen.entries())
            .find(|(_, _, entry)| entry.stage == Stage::Destroying && self.is_ours(entry));
        if let Some((host, inventory, entry)) = leaving {
            let slot = self.slot_of(host, inventory, entry);
            return self.finish_removal(&slot).await.map(|_| None);
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

    /// What it is now; what was left half done is finished first.
    pub(super) async fn look(&self, name: &str) -> Result<SandboxState, SshError> {
        let looked = async {
            match self.locate_ours(name).await? {
                Some((slot, entry)) => self.settle(&slot, entry.stage).await,
                None => Ok(SandboxState::Gone),
            }
        };
        bounded(looked).await
    }

    /// Lets programs run in it again.
    pub(super) async fn wake(&self, name: &str) -> Result<SandboxState, SshError> {
        let woken = async {
            let Some((slot, entry)) = self.locate_ours(name).await? else {
                return Ok(SandboxState::Gone);
            };
            let state = self.settle(&slot, entry.stage).await?;
            if state != SandboxState::Stopped {
                return Ok(state);
            }
            self.on_slot(&slot, SlotVerb::Wake).await?;
            self.moved(&slot, &[Stage::Stopped], Stage::Running).await?;
            Ok(SandboxState::Running)
        };
        bounded(woken).await
    }

    /// Ends its processes, unless it is too late for that.
    pub(super) async fn halt(&self, name: &str, latest: Instant) -> Result<SandboxState, SshError> {
        let halted = async {
            let Some((slot, entry)) = self.locate_ours(name).await? else {
                return Ok(SandboxState::Gone);
            };
            if entry.stage != Stage::Running {
                return self.settle(&slot, entry.stage).await;
            }
            if Instant::now() >= latest {
                return Err(SshError::Busy {
                    what: "too little time is left for a stop".to_owned(),
                });
            }
            self.moved(&slot, &[Stage::Running], Stage::Stopping).await?;
            self.finish_halt(&slot).await
        };
        bounded(halted).await
    }

    /// Ends it with its directory. One that nobody knows is gone.
    pub(super) async fn remove(&self, name: &str) -> Result<SandboxState, SshError> {
        let removed = async {
            let Some((slot, _)) = self.locate_ours(name).await? else {
                return Ok(SandboxState::Gone);
            };
            self.removed(&slot).await
        };
        bounded(removed).await
    }

    async fn removed(&self, slot: &Slot) -> Result<SandboxState, SshError> {
        let from = [Stage::Preparing, Stage::Running, Stage::Stopping, Stage::Stopped];
        self.moved(slot, &from, Stage::Destroying).await?;
        self.finish_removal(slot).await
    }

    async fn settle(&self, slot: &Slot, stage: Stage) -> Result<SandboxState, SshError> {
        match stage {
            Stage::Running => Ok(SandboxState::Running),
            Stage::Stopped => Ok(SandboxState::Stopped),
            Stage::Preparing => self.prepare(slot).await,
            Stage::Stopping => self.finish_halt(slot).await,
            Stage::Destroying => self.finish_removal(slot).await,
        }
    }

    async fn prepare(&self, slot: &Slot) -> Result<SandboxState, SshError> {
        self.on_slot(slot, SlotVerb::Prepare).await?;
        self.moved(slot, &[Stage::Preparing], Stage::Running).await?;
        Ok(SandboxState::Running)
    }

    async fn finish_halt(&self, slot: &Slot) -> Result<SandboxState, SshError> {
        self.forwards.close(slot);
        self.end_processes(slot).await?;
        self.moved(slot, &[Stage::Stopping], Stage::Stopped).await?;
        Ok(SandboxState::Stopped)
    }

    async fn finish_removal(&self, slot: &Slot) -> Result<SandboxState, SshError> {
        self.forwards.close(slot);
        self.end_processes(slot).await?;
        self.on_slot(slot, SlotVerb::Wipe).await?;
        let release = Ask::Release { name: &slot.name, from: Stage::Destroying };
        self.hosts.registry(slot.host, &release).await?;
        Ok(SandboxState::Gone)
    }

    /// Ends every process of the slot's user. The kernel ends them all at once, and with them the login that asks for it:
    /// what was seen before is looked for afterwards.
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
                "processes of the user {} on the SSH host {} do not end",
                self.user(slot),
                self.host_name(slot.host)
            ),
        })
    }

    /// Does it, or says why not; what it printed.
    async fn on_slot(&self, slot: &Slot, verb: SlotVerb<'_>) -> Result<String, SshError> {
        let ran = self.slot(slot, verb).await?;
        match ran.code {
            Some(0) => Ok(String::from_utf8_lossy(&ran.out).into_owned()),
            Some(UNCLEAN) => Err(SshError::Unclean {
                host: self.host_name(slot.host).to_owned(),
                user: self.user(slot),
            }),
            _ => Err(failed(self.host_name(slot.host), &ran)),
        }
    }

    /// Writes the next stage, on condition of the present one. In whatever other one it is, somebody else went on with it.
    async fn moved(&self, slot: &Slot, from: &[Stage], to: Stage) -> Result<(), SshError> {
        let ask = Ask::Move { name: &slot.name, from, to };
        let inventory = self.hosts.registry(slot.host, &ask).await?;
        match inventory.entry(&slot.name).map(|entry| entry.stage) {
            Some(stage) if stage == to => Ok(()),
            _ => Err(SshError::Busy {
                what: format!("somebody else changes the sandbox {}", slot.name),
            }),
        }
    }

    /// The port of this machine that leads to its agent.
    pub(super) async fn reached(&self, name: &str, port: u16) -> Result<u16, SshError> {
        let agent = &self.settings.agent;
        if port != agent.port {
            return Err(SshError::Invalid {
                what: format!(
                    "of a sandbox on an SSH host only port {} can be reached",
                    agent.port
                ),
            });
        }
        let (slot, entry) = self.locate(name).await?;
        if entry.stage != Stage::Running {
            return Err(SshError::NotRunning);
        }
        self.forwards.port(&self.hosts, &self.user(&slot), &slot).await
    }

    /// Where the sandbox of this name is, whoever's.
    pub(super) async fn locate(&self, name: &str) -> Result<(Slot, Entry), SshError> {
        if let Some(host) = self.guess(name)
            && let Ok(seen) = self.hosts.registry(host, &Ask::Look).await
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

    /// The same, for who changes it: another stack's is left alone. None: there is none.
    async fn locate_ours(&self, name: &str) -> Result<Option<(Slot, Entry)>, SshError> {
        match self.locate(name).await {
            Ok((slot, entry)) if self.is_ours(&entry) => Ok(Some((slot, entry))),
            Ok((slot, _)) => Err(self.foreign(&slot)),
            Err(SshError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sandboxes with these labels, in order of creation. Every host has to answer: what is missing from a list counts as
    /// gone. One that was made twice because its host could not be asked is removed where nobody has worked in it.
    pub(super) async fn listed(
        &self,
        labels: &BTreeMap<String, String>,
    ) -> Result<Vec<Sandbox>, SshError> {
        let seen = self.everywhere().await;
        if let Some(doubt) = seen.doubt() {
            return Err(doubt);
        }
        let hosts = self.host_names();
        let mut listed = Vec::new();
        for (host, inventory, entry) in seen.entries() {
            let slot = self.slot_of(host, inventory, entry);
            if !carries(entry, labels) {
                continue;
            }
            if self.is_ours(entry) && seen.is_void(host, &entry.name, &hosts) {
                let removed = bounded(self.removed(&slot)).await;
                tracing::warn!(
                    event = "ssh.twice",
                    removed = removed.is_ok(),
                    "a sandbox was on two SSH hosts"
                );
                continue;
            }
            listed.push(self.told(&slot, entry));
        }
        listed.sort_by(|one, other| {
            (one.created_ms, &one.name).cmp(&(other.created_ms, &other.name))
        });
        listed.truncate(LISTED_MAX);
        Ok(listed)
    }

    /// How many with these labels are not on their way out. A host that does not answer is passed over, as long as another
    /// one does: its sandboxes hold nobody else up.
    pub(super) async fn counted(
        &self,
        labels: &BTreeMap<String, String>,
        older_than: Option<&str>,
    ) -> Result<u32, SshError> {
        let seen = self.everywhere().await;
        if seen.0.iter().all(Result::is_err) {
            return Err(seen.doubt().unwrap_or(SshError::NotFound));
        }
        let hosts = self.host_names();
        let mut all: Vec<(u64, &str)> = seen
            .entries()
            .filter(|(at, _, entry)| {
                carries(entry, labels)
                    && self.is_ours(entry)
                    && entry.stage != Stage::Destroying
                    && !seen.is_void(*at, &entry.name, &hosts)
            })
            .map(|(_, _, entry)| (entry.created_s, entry.name.as_str()))
            .collect();
        all.sort_unstable();
        let own = older_than.and_then(|own| all.iter().position(|(_, name)| *name == own));
        Ok(u32::try_from(own.unwrap_or(all.len())).unwrap_or(u32::MAX))
    }

    async fn everywhere(&self) -> Everywhere {
        let hosts = 0..self.hosts.all().len();
        let asked = hosts.map(|host| self.hosts.registry(host, &Ask::Look));
        Everywhere(join_all(asked).await)
    }

    /// As a provider tells of it.
    pub(super) fn told(&self, slot: &Slot, entry: &Entry) -> Sandbox {
        let host = self.host_name(slot.host);
        entry.sandbox(format!("{host}/{}/{}", slot.number, slot.port))
    }

    fn slot_of(&self, host: usize, inventory: &Inventory, entry: &Entry) -> Slot {
        Slot {
            host,
            number: entry.slot,
            port: inventory.first_port.saturating_add(entry.slot),
            name: entry.name.clone(),
        }
    }

    fn host_names(&self) -> Vec<&str> {
        self.hosts.all().iter().map(|host| host.name.as_str()).collect()
    }

    fn is_ours(&self, entry: &Entry) -> bool {
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

fn carries(entry: &Entry, labels: &BTreeMap<String, String>) -> bool {
    let mut wanted = labels.iter();
    wanted.all(|(name, value)| entry.labels.get(name) == Some(value))
}

/// A call of the life cycle ends in time, because nothing can take back one that comes late.
async fn bounded(
    call: impl Future<Output = Result<SandboxState, SshError>>,
) -> Result<SandboxState, SshError> {
    match timeout(Duration::from_millis(LIFECYCLE_MS_MAX), call).await {
        Ok(done) => done,
        Err(_) => Err(SshError::Busy { what: "an SSH host takes longer than it may".to_owned() }),
    }
}
