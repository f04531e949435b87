//! The registry of a host: its sandboxes, in the control user's own directory, which no sandbox can write.
//!
//! A sandbox is one file, `<slot>.<name>.<state>`, with its labels as JSON. A change of state is a rename, which is
//! atomic. Every read and every change is made under one lock, so that a file that is being renamed is never missed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use bobbin_core::records::sandbox::SandboxState;
use serde::{Deserialize, Serialize};

use super::bounds::{BYTES_MAX, MESSAGE_CHARS_MAX, SCRIPT_MS_MAX};
use super::connection::Ran;
use super::error::SshError;
use super::hosts::Hosts;
use super::settings::is_word;
use crate::provider::Sandbox;

const SCRIPT: &str = include_str!("scripts/registry.sh");

/// Exit statuses that the scripts on a host share.
pub(super) const LOCKED: u32 = 75;
/// See [`LOCKED`].
pub(super) const NOT_SET_UP: u32 = 90;
/// See [`LOCKED`].
pub(super) const FULL: u32 = 91;
/// See [`LOCKED`].
pub(super) const UNCLEAN: u32 = 92;
/// See [`LOCKED`].
pub(super) const NO_DIRECTORY: u32 = 94;
/// See [`LOCKED`].
pub(super) const NO_ARCHIVE: u32 = 95;

/// Life-cycle stage of a sandbox in its host's registry. Transitional stages are completed by the next reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotStage {
    /// Its slot is taken and its directory is being made.
    Preparing,
    /// Processes may run in it.
    Running,
    /// Its processes are being killed.
    Stopping,
    /// Its processes have ended; the directory is kept.
    Stopped,
    /// Its processes are being killed and its directory deleted.
    Destroying,
}

impl SlotStage {
    const ALL: [Self; 5] =
        [Self::Preparing, Self::Running, Self::Stopping, Self::Stopped, Self::Destroying];

    /// Suffix of the file's name.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Preparing => "preparing",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::Destroying => "destroying",
        }
    }

    /// The sandbox state that the stage means.
    pub(super) const fn state(self) -> SandboxState {
        match self {
            Self::Preparing => SandboxState::Provisioning,
            Self::Running => SandboxState::Running,
            Self::Stopping => SandboxState::Busy,
            Self::Stopped => SandboxState::Stopped,
            Self::Destroying => SandboxState::Gone,
        }
    }
}

/// Content of a sandbox's file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct SandboxFile {
    created_s: u64,
    #[serde(default)]
    instead_of: Vec<String>,
    #[serde(default)]
    snapshot: Option<String>,
    labels: BTreeMap<String, String>,
}

/// A sandbox of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RegistryEntry {
    /// Number of its slot.
    pub slot: u16,
    /// Its name.
    pub name: String,
    /// Its life-cycle stage.
    pub stage: SlotStage,
    /// Creation time in seconds since 1970, by the host's clock.
    pub created_s: u64,
    /// Hosts that could not be reached when it was created: nobody has worked in a sandbox with its name there.
    pub instead_of: Vec<String>,
    /// Name of the snapshot that it begins with.
    pub snapshot: Option<String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

impl RegistryEntry {
    /// The sandbox in the provider's form.
    pub(super) fn sandbox(&self, exec_base: String) -> Sandbox {
        Sandbox {
            id: self.name.clone(),
            name: self.name.clone(),
            labels: self.labels.clone(),
            state: self.stage.state(),
            said: self.stage.word().to_owned(),
            created_ms: Some(self.created_s.saturating_mul(1000)),
            ends_ms: None,
            exec_base: Some(exec_base),
        }
    }
}

/// State of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inventory {
    /// Number of slots from its set-up.
    pub slots: u16,
    /// Base port; slot n listens on base + n (n ≥ 1).
    pub first_port: u16,
    /// Its sandboxes.
    pub entries: Vec<RegistryEntry>,
}

impl Inventory {
    /// The sandbox of this name.
    pub(super) fn entry(&self, name: &str) -> Option<&RegistryEntry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// How many more sandboxes may be created on it, if it may have `sandboxes`.
    pub(super) fn room(&self, sandboxes: u16) -> u16 {
        let bound = sandboxes.min(self.slots);
        bound.saturating_sub(u16::try_from(self.entries.len()).unwrap_or(u16::MAX))
    }

    /// Parses the output of the registry's script. Files that are not ours are ignored.
    fn read(printed: &str) -> Option<Self> {
        let mut lines = printed.lines();
        let mut head = lines.next()?.strip_prefix("host\t")?.split('\t');
        let slots = head.next()?.parse().ok()?;
        let first_port = head.next()?.parse().ok()?;
        Some(Self { slots, first_port, entries: lines.filter_map(entry).collect() })
    }
}

fn entry(line: &str) -> Option<RegistryEntry> {
    let (file, written) = line.split_once('\t')?;
    let mut parts = file.split('.');
    let (slot, name, stage) = (parts.next()?, parts.next()?, parts.next()?);
    let stage = SlotStage::ALL.into_iter().find(|one| one.word() == stage)?;
    let written: SandboxFile = serde_json::from_str(written).ok()?;
    Some(RegistryEntry {
        slot: slot.parse().ok()?,
        name: name.to_owned(),
        stage,
        created_s: written.created_s,
        instead_of: written.instead_of,
        snapshot: written.snapshot,
        labels: written.labels,
    })
}

/// A request to a registry; each returns the state afterwards.
pub(super) enum RegistryRequest<'a> {
    /// Only reads.
    Look,
    /// Claims a slot for this name, unless it has one; never one of `without`.
    Claim {
        name: &'a str,
        labels: &'a BTreeMap<String, String>,
        instead_of: &'a [&'a str],
        snapshot: Option<&'a str>,
        without: &'a [u16],
    },
    /// Moves to another stage, if it is in one of these.
    Move { name: &'a str, from: &'a [SlotStage], to: SlotStage },
    /// Releases the slot, if it is in this stage.
    Release { name: &'a str, from: SlotStage },
}

impl RegistryRequest<'_> {
    fn lines(&self, sandboxes: u16) -> Result<String, SshError> {
        let mut set = format!("max={sandboxes}\n");
        let words =
            |stages: &[SlotStage]| stages.iter().map(|s| s.word()).collect::<Vec<_>>().join(" ");
        let (verb, name) = match self {
            Self::Look => ("look", None),
            Self::Claim { name, labels, instead_of, snapshot, without } => {
                let without: Vec<String> = without.iter().map(u16::to_string).collect();
                let _ = writeln!(set, "labels={}", quoted(&json(labels)));
                let _ = writeln!(set, "instead={}", quoted(&json(instead_of)));
                let _ = writeln!(set, "snapshot={}", quoted(&json(snapshot)));
                let _ = writeln!(set, "without='{}'", without.join(" "));
                ("claim", Some(*name))
            }
            Self::Move { name, from, to } => {
                let _ = writeln!(set, "from='{}'\nto={}", words(from), to.word());
                ("move", Some(*name))
            }
            Self::Release { name, from } => {
                let _ = writeln!(set, "from={}", from.word());
                ("release", Some(*name))
            }
        };
        let name = name.unwrap_or_default();
        if !name.is_empty() && !is_word(name) {
            return Err(SshError::NotFound);
        }
        let _ = writeln!(set, "verb={verb}\nname={name}");
        Ok(set)
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// A text quoted as one shell word.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

impl Hosts {
    /// Sends a request to a host's registry, as its control user.
    ///
    /// # Errors
    /// [`SshError`]; [`SshError::Full`] for a claim without room.
    pub(super) async fn registry(
        &self,
        host: usize,
        ask: &RegistryRequest<'_>,
    ) -> Result<Inventory, SshError> {
        let settings = &self.all()[host];
        let input = format!("{}{SCRIPT}", ask.lines(settings.sandboxes)?);
        let bounds = (Duration::from_millis(SCRIPT_MS_MAX), BYTES_MAX);
        let ran = self.run((host, &settings.user), "exec sh", input.into_bytes(), bounds).await?;
        let name = &settings.name;
        match ran.code {
            Some(0) => {}
            Some(FULL) => {
                return Err(SshError::Full {
                    hosts: format!("{name} has at most {}", settings.sandboxes),
                });
            }
            _ => return Err(failed(name, &ran)),
        }
        let printed = String::from_utf8_lossy(&ran.out);
        Inventory::read(&printed).ok_or_else(|| SshError::NotSetUp {
            host: name.clone(),
            what: "its registry cannot be read".to_owned(),
        })
    }
}

/// The meaning of a script's failure, for the exit statuses that all scripts share.
pub(super) fn failed(host: &str, ran: &Ran) -> SshError {
    let host = host.to_owned();
    match ran.code {
        Some(LOCKED) => {
            SshError::Busy { what: format!("the registry of the SSH host {host} is in use") }
        }
        Some(NOT_SET_UP) => {
            SshError::NotSetUp { host, what: "it has no registry or no such slot".to_owned() }
        }
        Some(NO_DIRECTORY) => SshError::DirectoryGone { host },
        code => {
            let words = String::from_utf8_lossy(&ran.err);
            let words: String = words.trim().chars().take(MESSAGE_CHARS_MAX).collect();
            let status = code.map_or_else(|| "a signal".to_owned(), |code| code.to_string());
            SshError::Failed { host, what: format!("status {status}: {words}") }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn registry_reading_skips_foreign_entries() {
        let printed = "host\t8\t21000\n\
            3.bobbin-dev-ab-g1.running\t{\"created_s\":5,\"instead_of\":[\"two\"],\"labels\":{\"bobbin\":\"dev\"}}\n\
            4.bobbin-dev-ac-g1.asleep\t{\"created_s\":5,\"labels\":{}}\n\
            x.notes\thello\n\
            5.bobbin-dev-ad-g2.stopped\t{\"created_s\":\n";
        let read = Inventory::read(printed).unwrap();
        assert_eq!((read.slots, read.first_port), (8, 21000));
        let [only] = &read.entries[..] else {
            panic!("{:?}", read.entries);
        };
        let sandbox = only.sandbox("one/3/21003".to_owned());
        assert_eq!(
            (sandbox.name.as_str(), sandbox.state, sandbox.created_ms),
            ("bobbin-dev-ab-g1", SandboxState::Running, Some(5000))
        );
        assert_eq!((only.slot, sandbox.said.as_str()), (3, "running"));
        assert_eq!(only.instead_of, ["two"]);
        assert_eq!(only.snapshot, None, "of before there were snapshots");
        // Both limits apply, the host's and the setting's.
        assert_eq!((read.room(2), read.room(100)), (1, 7));
        assert_eq!(Inventory::read("hello\n"), None);
    }

    #[test]
    fn script_quotes_names_and_labels() {
        let labels = BTreeMap::from([("a".to_owned(), "it's $(reboot)".to_owned())]);
        let ask = |name| RegistryRequest::Claim {
            name,
            labels: &labels,
            instead_of: &[],
            snapshot: Some("bobbin-dev-g1-at5-x"),
            without: &[1, 2],
        };
        assert_eq!(
            ask("bobbin-dev-g1").lines(4).unwrap(),
            "max=4\nlabels='{\"a\":\"it'\\''s $(reboot)\"}'\ninstead='[]'\nsnapshot='\"bobbin-dev-g1-at5-x\"'\nwithout='1 2'\nverb=claim\nname=bobbin-dev-g1\n"
        );
        for bad in ["a b", "a;b", "a.b", "../a", "$(x)", "a\nb"] {
            assert_eq!(ask(bad).lines(4), Err(SshError::NotFound), "{bad:?}");
        }
    }
}
