//! The provider's state: sandboxes and snapshots in memory and in a file per kind, processes and policies in memory
//! only.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bobbin_local_sandbox::clock::Clock;
use bobbin_local_sandbox::disk::{remove_folder, write_atomically};
use bobbin_local_sandbox::init_process::InitProcess;
use bobbin_local_sandbox::machine::LocalMachine;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::api_error::ApiError;
use crate::faults::Faults;
use crate::policy::EgressPolicy;
use crate::record::{Record, SessionRecord, SessionStatus, SnapshotRecord};
use crate::settings::LocalVercelSettings;

/// A command of a session.
#[derive(Clone)]
pub(crate) struct SessionCommand {
    pub(crate) name: String,
    pub(crate) args: Vec<String>,
    pub(crate) cwd: String,
    pub(crate) started_at: i64,
}

/// A route to a session's port. Dropping it stops its server.
pub(crate) struct PortRoute {
    pub(crate) port: u16,
    /// This machine's port.
    pub(crate) local: u16,
    pub(crate) _end: DropGuard,
}

/// A sandbox with its run-time state.
pub(crate) struct LiveSandbox {
    pub(crate) record: Record,
    pub(crate) process: Option<Arc<InitProcess>>,
    pub(crate) policy: Option<EgressPolicy>,
    pub(crate) routes: Vec<PortRoute>,
    /// Commands of the current session, by id.
    pub(crate) commands: BTreeMap<String, SessionCommand>,
}

impl LiveSandbox {
    pub(crate) fn new(record: Record, policy: Option<EgressPolicy>) -> Self {
        Self { record, process: None, policy, routes: Vec::new(), commands: BTreeMap::new() }
    }

    /// The policy's JSON in answers.
    pub(crate) fn policy_view(&self) -> Value {
        self.policy.as_ref().map_or(Value::Null, EgressPolicy::view)
    }

    /// The first process of the session with this id.
    ///
    /// # Errors
    /// It is not running.
    pub(crate) fn running(&self, session: &str) -> Result<Arc<InitProcess>, ApiError> {
        let present = self.record.session().filter(|one| one.id == session);
        match (present.map(|one| one.status), &self.process) {
            (Some(SessionStatus::Running), Some(process)) => Ok(Arc::clone(process)),
            (Some(SessionStatus::Stopping), _) => Err(ApiError::stopping()),
            (Some(SessionStatus::Snapshotting), _) => Err(ApiError::snapshotting()),
            _ => Err(ApiError::stopped()),
        }
    }
}

/// All state behind one lock. Nothing awaits while it is held.
#[derive(Default)]
pub(crate) struct ProviderState {
    /// By name.
    pub(crate) sandboxes: BTreeMap<String, LiveSandbox>,
    /// By id.
    pub(crate) snapshots: BTreeMap<String, SnapshotRecord>,
}

impl ProviderState {
    pub(crate) fn entry(&self, name: &str) -> Result<&LiveSandbox, ApiError> {
        let found = self.sandboxes.get(name);
        found.ok_or_else(|| ApiError::no_sandbox(name))
    }

    /// The sandbox that has or had this session.
    pub(crate) fn of_session(&self, id: &str) -> Result<&LiveSandbox, ApiError> {
        let has = |entry: &&LiveSandbox| entry.record.sessions.iter().any(|one| one.id == id);
        let found = self.sandboxes.values().find(has);
        found.ok_or_else(|| ApiError::not_found(format!("Session not found: {id}")))
    }

    /// A snapshot from which disks can be created.
    pub(crate) fn snapshot(&self, id: &str, now: i64) -> Result<&SnapshotRecord, ApiError> {
        let found = self.snapshots.get(id).filter(|one| one.is_there(now));
        found.ok_or_else(|| ApiError::no_snapshot(id))
    }
}

/// State written to disk.
#[derive(Default, Serialize, Deserialize)]
struct StateFile {
    sandboxes: Vec<Record>,
    snapshots: Vec<SnapshotRecord>,
}

/// Shared state of a running provider.
pub(crate) struct Engine {
    pub(crate) settings: LocalVercelSettings,
    pub(crate) machine: LocalMachine,
    pub(crate) clock: Clock,
    pub(crate) faults: Faults,
    /// Stops servers, timers and transitions.
    pub(crate) stopping: CancellationToken,
    inner: Mutex<ProviderState>,
    changes: watch::Sender<u64>,
}

/// Shared handle of the engine.
pub(crate) type SharedEngine = Arc<Engine>;

impl Engine {
    /// Reads the stored state.
    ///
    /// # Errors
    /// The system's error, or an unreadable file, which may be somebody's work.
    pub(crate) fn open(
        settings: LocalVercelSettings,
        machine: LocalMachine,
    ) -> std::io::Result<Self> {
        let folder = PathBuf::from(&machine.state_dir);
        std::fs::create_dir_all(folder.join("sandboxes"))?;
        std::fs::create_dir_all(folder.join("snapshots"))?;
        let kept: StateFile = match std::fs::read(folder.join(FILE)) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(std::io::Error::other)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => StateFile::default(),
            Err(error) => return Err(error),
        };
        let mut inner = ProviderState::default();
        for mut record in kept.sandboxes {
            if let Some(session) = record.session_mut()
                && !session.status.is_over()
            {
                session.status = SessionStatus::Stopped;
                record.disk_is_left = true;
            }
            let name = record.name.clone();
            inner.sandboxes.insert(name, LiveSandbox::new(record, None));
        }
        let snapshots = kept.snapshots.into_iter().map(|one| (one.id.clone(), one));
        inner.snapshots = snapshots.collect();
        sweep(&folder.join("snapshots"), |id| {
            inner.snapshots.get(id).is_some_and(|one| !one.is_deleted)
        })?;
        Ok(Self {
            settings,
            machine,
            clock: Clock::default(),
            faults: Faults::default(),
            stopping: CancellationToken::new(),
            inner: Mutex::new(inner),
            changes: watch::Sender::new(0),
        })
    }

    /// Name and session of a sandbox; a fault may use either.
    pub(crate) fn names(&self, name_or_session: &str) -> Vec<String> {
        let inner = self.lock();
        let entry = inner.entry(name_or_session);
        let Ok(entry) = entry.or_else(|_| inner.of_session(name_or_session)) else {
            return vec![name_or_session.to_owned()];
        };
        let session = entry.record.session().map(|one| one.id.clone());
        std::iter::once(entry.record.name.clone()).chain(session).collect()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, ProviderState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Signals every change.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Changes the state and writes it before anybody can see it.
    ///
    /// # Errors
    /// The error of the change itself.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(&mut ProviderState) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let mut inner = self.lock();
        let result = change(&mut inner)?;
        let records = inner.sandboxes.values().map(|entry| entry.record.clone());
        let kept = StateFile {
            sandboxes: records.collect(),
            snapshots: inner.snapshots.values().cloned().collect(),
        };
        let text = serde_json::to_vec(&kept).map_err(ApiError::internal)?;
        let file = Path::new(&self.machine.state_dir).join(FILE);
        write_atomically(&file, &text).map_err(ApiError::internal)?;
        drop(inner);
        self.changes.send_modify(|count| *count += 1);
        Ok(result)
    }

    /// Changes a sandbox if this is its current session; `None` if it no longer is.
    pub(crate) fn change_session<T>(
        &self,
        name: &str,
        session: &str,
        change: impl FnOnce(&mut LiveSandbox, i64) -> T,
    ) -> Option<T> {
        let now = self.clock.now_ms();
        let changed = self.change(|inner| {
            let entry = inner.sandboxes.get_mut(name);
            let entry = entry.ok_or_else(|| ApiError::no_sandbox(name))?;
            if entry.record.session().is_none_or(|one| one.id != session) {
                return Ok(None);
            }
            let result = change(entry, now);
            entry.record.updated_at = now;
            if let Some(session) = entry.record.session_mut() {
                session.updated_at = now;
            }
            Ok(Some(result))
        });
        changed.ok().flatten()
    }

    /// The folder of a sandbox.
    pub(crate) fn sandbox_dir(&self, record: &Record) -> PathBuf {
        Path::new(&self.machine.state_dir).join("sandboxes").join(&record.folder)
    }

    /// Working directory of its commands.
    pub(crate) fn home(&self, record: &Record) -> PathBuf {
        self.sandbox_dir(record).join("home")
    }

    /// The same as text.
    pub(crate) fn cwd(&self, record: &Record) -> String {
        self.home(record).to_string_lossy().into_owned()
    }

    /// Folder of a snapshot's copy.
    pub(crate) fn copy_dir(&self, id: &str) -> PathBuf {
        Path::new(&self.machine.state_dir).join("snapshots").join(id)
    }

    /// A session's JSON in answers.
    pub(crate) fn session_view(&self, entry: &LiveSandbox, session: &SessionRecord) -> Value {
        let record = &entry.record;
        record.session_view(session, &self.cwd(record), &entry.policy_view())
    }

    /// A sandbox's JSON in answers.
    pub(crate) fn view(&self, entry: &LiveSandbox) -> Value {
        entry.record.view(&self.cwd(&entry.record), &entry.policy_view())
    }
}

const FILE: &str = "state.json";

/// Removes copies without a snapshot, left by a crash.
fn sweep(folder: &Path, is_kept: impl Fn(&str) -> bool) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if !is_kept(&entry.file_name().to_string_lossy()) {
            remove_folder(&entry.path())?;
        }
    }
    Ok(())
}
