//! The snapshots of a host: archives in the control user's own directory, which no sandbox can read.
//!
//! A snapshot is `<name>.tar.zst`. Until it is whole it is `<name>.part`, for as long as somebody receives it; for an
//! hour `<name>.failed-<why>` says why there is none. Its bytes go from the slot's user to the control user and back
//! through a pipe on the host, whose place is told to the two alone.

use std::time::Duration;

use super::bounds::{BYTES_MAX, PACK_S_MAX, SCRIPT_MS_MAX, SNAPSHOT_BYTES_MAX, SNAPSHOTS_MAX};
use super::error::SshError;
use super::hosts::Hosts;
use super::registry::{FULL, NO_ARCHIVE, SlotStage, failed, quoted};
use super::settings::is_word;
use super::slot::Slot;
use crate::snapshot::{SnapshotName, SnapshotState};

const SCRIPT: &str = include_str!("scripts/snapshots.sh");
/// Exit status of a host that has no place for snapshots.
const NO_PLACE: u32 = 96;

/// A request to a host about its snapshots; each returns what is there afterwards.
pub(super) enum ArchiveRequest<'a> {
    /// Only reads.
    Look,
    /// Begins to receive this snapshot, unless it is there, being received, or has failed.
    Begin(&'a SnapshotName),
    /// Begins to send this snapshot to the slot of a sandbox that is being prepared.
    Send(&'a SnapshotName, &'a Slot),
    /// Deletes this snapshot, or ends its making.
    Forget(&'a SnapshotName),
}

/// A snapshot of a host, in whatever state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Archive {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: SnapshotState,
    /// Size in bytes.
    pub bytes: u64,
}

/// What a host has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Archives {
    /// Name of the pipe at which the host now waits for the slot's user.
    pub pipe: Option<String>,
    /// Its snapshots, of all stacks.
    pub all: Vec<Archive>,
}

impl Archives {
    /// The state of the snapshot with this name.
    pub(super) fn state(&self, name: &SnapshotName) -> SnapshotState {
        let name = name.to_string();
        let found = self.all.iter().find(|one| one.name == name);
        found.map_or(SnapshotState::Absent, |one| one.state.clone())
    }

    fn read(printed: &str) -> Self {
        let mut read = Self::default();
        for line in printed.lines() {
            let Some((file, value)) = line.split_once('\t') else { continue };
            match file.split_once('.') {
                None if file == "pipe" => read.pipe = Some(value.to_owned()),
                Some((name, kind)) if let Some(state) = state_of(kind) => {
                    let bytes = value.parse().unwrap_or_default();
                    read.all.push(Archive { name: name.to_owned(), state, bytes });
                }
                _ => {}
            }
        }
        read
    }
}

fn state_of(kind: &str) -> Option<SnapshotState> {
    let reason = match kind {
        "tar.zst" => return Some(SnapshotState::Ready),
        "part" => return Some(SnapshotState::Underway),
        "failed-full" => "the disk of the SSH host is full".to_owned(),
        "failed-large" => format!("packed it has more than {SNAPSHOT_BYTES_MAX} bytes"),
        "failed-unread" => "it has a file that its own user may not read".to_owned(),
        _ => return None,
    };
    Some(SnapshotState::Failed { reason })
}

impl ArchiveRequest<'_> {
    fn lines(&self) -> Result<String, SshError> {
        let (verb, name, entry) = match self {
            Self::Look => ("look", None, String::new()),
            Self::Begin(name) => ("begin", Some(*name), String::new()),
            Self::Send(name, to) => {
                let stage = SlotStage::Preparing.word();
                ("send", Some(*name), format!("{}.{}.{stage}", to.number, to.name))
            }
            Self::Forget(name) => ("forget", Some(*name), String::new()),
        };
        let name = name.map(ToString::to_string).unwrap_or_default();
        if !name.is_empty() && !is_word(&name) {
            return Err(SshError::Invalid {
                what: format!("an SSH host can keep no snapshot with the name {name}"),
            });
        }
        Ok(format!(
            "verb={verb}\nname={name}\nentry={}\nbytes_max={SNAPSHOT_BYTES_MAX}\nmost={SNAPSHOTS_MAX}\nseconds={PACK_S_MAX}\n",
            quoted(&entry)
        ))
    }
}

impl Hosts {
    /// Sends a request about a host's snapshots, as its control user.
    ///
    /// # Errors
    /// [`SshError`]; [`SshError::SnapshotGone`] for one that is not there to be sent, [`SshError::NotSetUp`] where none
    /// can be kept.
    pub(super) async fn archives(
        &self,
        host: usize,
        ask: &ArchiveRequest<'_>,
    ) -> Result<Archives, SshError> {
        let settings = &self.all()[host];
        let input = format!("{}{SCRIPT}", ask.lines()?);
        let bounds = (Duration::from_millis(SCRIPT_MS_MAX), BYTES_MAX);
        let ran = self.run((host, &settings.user), "exec sh", input.into_bytes(), bounds).await?;
        let host = settings.name.clone();
        match ran.code {
            Some(0) => Ok(Archives::read(&String::from_utf8_lossy(&ran.out))),
            Some(FULL) => Err(SshError::SnapshotsFull { host, most: SNAPSHOTS_MAX }),
            Some(NO_ARCHIVE) => Err(SshError::SnapshotGone),
            Some(NO_PLACE) => Err(SshError::NotSetUp {
                host,
                what: "it has no place for snapshots, or no zstd".to_owned(),
            }),
            _ => Err(failed(&host, &ran)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archive_files_are_read_by_kind() {
        let printed = "pipe\tAb3\n.lock\t0\na-g1-at5-x.tar.zst\t900\nb.part\t7\nc.failed-full\t0\nd.txt\t3\nnothing\n";
        let read = Archives::read(printed);
        assert_eq!(read.pipe.as_deref(), Some("Ab3"));
        let full = SnapshotState::Failed { reason: "the disk of the SSH host is full".to_owned() };
        let seen: Vec<_> =
            read.all.iter().map(|one| (one.name.as_str(), &one.state, one.bytes)).collect();
        assert_eq!(
            seen,
            [
                ("a-g1-at5-x", &SnapshotState::Ready, 900),
                ("b", &SnapshotState::Underway, 7),
                ("c", &full, 0)
            ]
        );
    }
}
