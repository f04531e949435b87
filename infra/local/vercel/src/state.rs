//! What the provider knows: sandboxes and snapshots in memory with a file each kind, processes and policies in memory only.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bobbin_local_sandbox::clock::Clock;
use bobbin_local_sandbox::disk::{remove_folder, write_atomically};
use bobbin_local_sandbox::init_process::InitProcess;
use bobbin_local_sandbox::machine::Machine;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::api_error::ApiError;
use crate::faults::Faults;
use crate::policy::Policy;
use crate::record::{Record, Session, Snapshot, Status};
use crate::settings::Settings;

/// A command that a session was given.
#[derive(Clone)]
pub(crate) struct Command {
    pub(crate) name: String,
    pub(crate) args: Vec<String>,
    pub(crate) cwd: String,
    pub(crate) started_at: i64,
}

/// Where a port of a session is reached. The server that listens there ends when this is dropped.
pub(crate) struct Route {
    pub(crate) port: u16,
    /// The port of this machine.
    pub(crate) local: u16,
    pub(crate) _end: DropGuard,
}

/// A sandbox with what is true only while the provider runs.
pub(crate) struct Entry {
    pub(crate) record: Record,
    pub(crate) process: Option<Arc<InitProcess>>,
    pub(crate) policy: Option<Policy>,
    pub(crate) routes: Vec<Route>,
    /// Of the present session, by id.
    pub(crate) commands: BTreeMap<String, Command>,
}

impl Entry {
    pub(crate) fn new(record: Record, policy: Option<Policy>) -> Self {
        Self { record, process: None, policy, routes: Vec::new(), commands: BTreeMap::new() }
    }

    /// The policy as answers tell of it.
    pub(crate) fn policy_view(&self) -> Value {
        self.policy.as_ref().map_or(Value::Null, Policy::view)
    }

    /// What a session of this id is now.
    ///
    /// # Errors
    /// That it is not running.
    pub(crate) fn running(&self, session: &str) -> Result<Arc<InitProcess>, ApiError> {
        let present = self.record.session().filter(|one| one.id == session);
        match (present.map(|one| one.status), &self.process) {
            (Some(Status::Running), Some(process)) => Ok(Arc::clone(process)),
            (Some(Status::Stopping), _) => Err(ApiError::stopping()),
            (Some(Status::Snapshotting), _) => Err(ApiError::snapshotting()),
            _ => Err(ApiError::stopped()),
        }
    }
}

/// Everything behind one lock. Nothing waits while it is held.
#[derive(Default)]
pub(crate) struct Inner {
    /// By name.
    pub(crate) sandboxes: BTreeMap<String, Entry>,
    /// By id.
    pub(crate) snapshots: BTreeMap<String, Snapshot>,
}

impl Inner {
    pub(crate) fn entry(&self, name: &str) -> Result<&Entry, ApiError> {
        let found = self.sandboxes.get(name);
        found.ok_or_else(|| ApiError::no_sandbox(name))
    }

    /// The sandbox that has, or had, this session.
    pub(crate) fn of_session(&self, id: &str) -> Result<&Entry, ApiError> {
        let has = |entry: &&Entry| entry.record.sessions.iter().any(|one| one.id == id);
        let found = self.sandboxes.values().find(has);
        found.ok_or_else(|| ApiError::not_found(format!("Session not found: {id}")))
    }

    /// A snapshot that disks can be made from.
    pub(crate) fn snapshot(&self, id: &str, now: i64) -> Result<&Snapshot, ApiError> {
        let found = self.snapshots.get(id).filter(|one| one.is_there(now));
        found.ok_or_else(|| ApiError::no_snapshot(id))
    }
}

/// What is written down.
#[derive(Default, Serialize, Deserialize)]
struct Kept {
    sandboxes: Vec<Record>,
    snapshots: Vec<Snapshot>,
}

/// One running provider, as its parts see it.
pub(crate) struct Engine {
    pub(crate) settings: Settings,
    pub(crate) machine: Machine,
    pub(crate) clock: Clock,
    pub(crate) faults: Faults,
    /// Ends servers, timers and transitions.
    pub(crate) stopping: CancellationToken,
    inner: Mutex<Inner>,
    changes: watch::Sender<u64>,
}

/// The engine, as tasks and handlers hold it.
pub(crate) type SharedEngine = Arc<Engine>;

impl Engine {
    /// Reads what is there.
    ///
    /// # Errors
    /// What the system says, or that a file cannot be read: it may belong to somebody's work.
    pub(crate) fn open(settings: Settings, machine: Machine) -> std::io::Result<Self> {
        let folder = PathBuf::from(&machine.state_dir);
        std::fs::create_dir_all(folder.join("sandboxes"))?;
        std::fs::create_dir_all(folder.join("snapshots"))?;
        let kept: Kept = match std::fs::read(folder.join(FILE)) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(std::io::Error::other)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Kept::default(),
            Err(error) => return Err(error),
        };
        let mut inner = Inner::default();
        for mut record in kept.sandboxes {
            if let Some(session) = record.session_mut()
                && !session.status.is_over()
            {
                session.status = Status::Stopped;
                record.disk_is_left = true;
            }
            let name = record.name.clone();
            inner.sandboxes.insert(name, Entry::new(record, None));
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

    /// Name and session of a sandbox, by either of which a fault may reach it.
    pub(crate) fn names(&self, name_or_session: &str) -> Vec<String> {
        let inner = self.lock();
        let entry = inner.entry(name_or_session);
        let Ok(entry) = entry.or_else(|_| inner.of_session(name_or_session)) else {
            return vec![name_or_session.to_owned()];
        };
        let session = entry.record.session().map(|one| one.id.clone());
        std::iter::once(entry.record.name.clone()).chain(session).collect()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes at every change.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Changes what is known and writes it down before anybody is told.
    ///
    /// # Errors
    /// What the change itself says.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(&mut Inner) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let mut inner = self.lock();
        let result = change(&mut inner)?;
        let records = inner.sandboxes.values().map(|entry| entry.record.clone());
        let kept = Kept {
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

    /// Changes a sandbox while this session is its present one; none where it is not any more.
    pub(crate) fn change_session<T>(
        &self,
        name: &str,
        session: &str,
        change: impl FnOnce(&mut Entry, i64) -> T,
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

    /// The directory in which its commands run.
    pub(crate) fn home(&self, record: &Record) -> PathBuf {
        self.sandbox_dir(record).join("home")
    }

    /// The same as text.
    pub(crate) fn cwd(&self, record: &Record) -> String {
        self.home(record).to_string_lossy().into_owned()
    }

    /// The folder of a snapshot's copy.
    pub(crate) fn copy_dir(&self, id: &str) -> PathBuf {
        Path::new(&self.machine.state_dir).join("snapshots").join(id)
    }

    /// A session as answers tell of it.
    pub(crate) fn session_view(&self, entry: &Entry, session: &Session) -> Value {
        let record = &entry.record;
        record.session_view(session, &self.cwd(record), &entry.policy_view())
    }

    /// A sandbox as answers tell of it.
    pub(crate) fn view(&self, entry: &Entry) -> Value {
        entry.record.view(&self.cwd(&entry.record), &entry.policy_view())
    }
}

const FILE: &str = "state.json";

/// Removes the copies that no snapshot is of: a crash came between.
fn sweep(folder: &Path, is_kept: impl Fn(&str) -> bool) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if !is_kept(&entry.file_name().to_string_lossy()) {
            remove_folder(&entry.path())?;
        }
    }
    Ok(())
}
