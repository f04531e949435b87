//! Shared by the sessions of a daemon: its folder, its agents, its processes.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::agents::Agents;
use crate::changes::RecordedChanges;
use crate::limits::{RESERVE_BYTES, STOP_GRACE_MS};
use crate::names::file_name;

/// The daemon's folder and its contents.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) state_dir: PathBuf,
    pub(crate) agents: Agents,
    pub(crate) changes: RecordedChanges,
    /// Unique to this start of the daemon.
    start: String,
    launches: AtomicU64,
    is_stopping: AtomicBool,
    /// Held while the daemon runs: two in one folder would overwrite each other's files.
    _lock: File,
}

/// Why a daemon cannot use its folder.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostError {
    #[error("{path} cannot be used: {source}")]
    Folder { path: PathBuf, source: std::io::Error },
    #[error(
        "{0} belongs to another running bobbin-agentd; end that one, or give this one its own --state"
    )]
    Locked(PathBuf),
}

impl Host {
    pub(crate) fn open(state_dir: &Path, agents: Agents) -> Result<Self, HostError> {
        let folder = |source| HostError::Folder { path: state_dir.to_owned(), source };
        std::fs::create_dir_all(state_dir.join("sessions")).map_err(folder)?;
        let lock = File::create(state_dir.join("lock")).map_err(folder)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(HostError::Locked(state_dir.to_owned()));
            }
            Err(std::fs::TryLockError::Error(source)) => return Err(folder(source)),
        }
        let host = Self {
            state_dir: state_dir.to_owned(),
            agents,
            changes: RecordedChanges::new(state_dir),
            start: uuid::Uuid::new_v4().to_string(),
            launches: AtomicU64::new(0),
            is_stopping: AtomicBool::new(false),
            _lock: lock,
        };
        host.set_aside();
        Ok(host)
    }

    pub(crate) fn log_of(&self, session: &str) -> PathBuf {
        self.state_dir.join("sessions").join(format!("{}.log", file_name(session)))
    }

    /// A new marker per launch, in the environment of all its descendants.
    pub(crate) fn marker(&self) -> String {
        let number = self.launches.fetch_add(1, Ordering::Relaxed);
        format!("{}/{number}", self.start)
    }

    /// Shortens the time agents have to exit.
    pub(crate) fn stopping(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    /// Whether the daemon is stopping.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    pub(crate) fn grace_ms(&self, grace_ms: u64) -> u64 {
        if self.is_stopping() { grace_ms.min(STOP_GRACE_MS) } else { grace_ms }
    }

    fn reserve(&self) -> PathBuf {
        self.state_dir.join("reserve")
    }

    /// Reserves disk space for the ends of turns that a full disk cuts off.
    fn set_aside(&self) {
        let length = std::fs::metadata(self.reserve()).map_or(0, |found| found.len());
        if length == RESERVE_BYTES {
            return;
        }
        let zeros = vec![0; usize::try_from(RESERVE_BYTES).unwrap_or(0)];
        let written = File::create(self.reserve())
            .and_then(|mut file| file.write_all(&zeros).and_then(|()| file.sync_all()));
        if let Err(error) = written {
            // A disk that is already full still serves its contents.
            tracing::warn!(%error, "no disk space could be reserved");
            self.give_up_reserve();
        }
    }

    pub(crate) fn give_up_reserve(&self) {
        // It may be gone already.
        let _ = std::fs::remove_file(self.reserve());
    }
}
