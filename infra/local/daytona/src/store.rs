//! What the provider knows: sandboxes in memory with a file each, snapshots in one file with a folder each where they are of a
//! sandbox, secrets in memory only.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::DropGuard;

use crate::accounts::may_see;
use crate::api_error::ApiError;
use crate::disk::{remove_folder, write_atomically};
use crate::init_process::InitProcess;
use crate::record::Record;
use crate::secret::Secret;
use crate::snapshot::{Snapshot, Snapshots};
use crate::state::SandboxState;

/// Where a port of a sandbox is exposed on this machine. The server that listens there ends when this is dropped.
pub(crate) struct PreviewListener {
    pub(crate) port: u16,
    pub(crate) _end: DropGuard,
}

/// A sandbox with what is true only while the provider runs.
pub(crate) struct Entry {
    pub(crate) record: Record,
    /// Counts the changes of course; a transition that finds another number gives up.
    pub(crate) epoch: u64,
    pub(crate) process: Option<Arc<InitProcess>>,
    pub(crate) previews: BTreeMap<u16, PreviewListener>,
    /// Token to its port and the time it ends.
    pub(crate) signed: BTreeMap<String, (u16, i64)>,
    /// Until then (system time) this token holds and the record's is refused.
    pub(crate) stale_token: Option<(String, i64)>,
    /// Connections through previews that are open now.
    pub(crate) open: usize,
    /// It was stopped because this machine had little memory left.
    pub(crate) relieved: bool,
}

impl Entry {
    pub(crate) fn new(record: Record) -> Self {
        Entry {
            record,
            epoch: 0,
            process: None,
            previews: BTreeMap::new(),
            signed: BTreeMap::new(),
            stale_token: None,
            open: 0,
            relieved: false,
        }
    }
}

/// Everything behind one lock. Nothing waits while it is held.
pub(crate) struct Inner {
    pub(crate) sandboxes: BTreeMap<String, Entry>,
    pub(crate) snapshots: Snapshots,
    pub(crate) secrets: BTreeMap<String, Secret>,
    /// The list as it was, for the fault that makes it lag: taken at (system time).
    pub(crate) lagging: Option<(i64, Vec<(Record, Value)>)>,
}

/// The name under which earlier versions kept it too.
const SNAPSHOT_FILE: &str = "shelf.json";

/// The file of the snapshots.
#[derive(Default, Serialize, Deserialize)]
struct SnapshotFile<'a> {
    snapshots: Cow<'a, Snapshots>,
}

/// What the provider knows, in memory and on disk.
pub(crate) struct Store {
    folder: PathBuf,
    inner: Mutex<Inner>,
    changes: watch::Sender<u64>,
}

impl Store {
    /// Reads what is there. A file that cannot be read is an error: it may belong to somebody's work.
    pub(crate) fn open(folder: &Path) -> std::io::Result<Self> {
        std::fs::create_dir_all(folder.join("sandboxes"))?;
        std::fs::create_dir_all(folder.join("records"))?;
        let mut sandboxes = BTreeMap::new();
        for entry in std::fs::read_dir(folder.join("records"))? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let named = |error: serde_json::Error| {
                std::io::Error::other(format!("{}: {error}", path.display()))
            };
            let mut record: Record =
                serde_json::from_slice(&std::fs::read(&path)?).map_err(named)?;
            record.state = record.state.after_restart();
            record.back_to = None;
            if record.to_fill.take().is_some() && record.state != SandboxState::Destroying {
                record.state = SandboxState::Error;
                record.error_reason =
                    Some("the provider was ended while the snapshot was copied".to_owned());
            }
            if record.state == SandboxState::Destroying {
                remove_folder(&folder.join("sandboxes").join(&record.folder))?;
                std::fs::remove_file(&path)?;
                continue;
            }
            sandboxes.insert(record.id.clone(), Entry::new(record));
        }
        let kept: SnapshotFile = match std::fs::read(folder.join(SNAPSHOT_FILE)) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(std::io::Error::other)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => SnapshotFile::default(),
            Err(error) => return Err(error),
        };
        sweep_copies(&folder.join("snapshots"), &kept.snapshots)?;
        let store = Store {
            folder: folder.to_owned(),
            inner: Mutex::new(Inner {
                sandboxes,
                snapshots: kept.snapshots.into_owned(),
                secrets: BTreeMap::new(),
                lagging: None,
            }),
            changes: watch::channel(0).0,
        };
        for entry in store.lock().sandboxes.values() {
            store.save(&entry.record)?;
        }
        Ok(store)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes at every change of a sandbox.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The folder of a sandbox, by the name that its record has for it.
    pub(crate) fn sandbox_dir(&self, folder: &str) -> PathBuf {
        self.folder.join("sandboxes").join(folder)
    }

    /// The folder in which the copy of a snapshot of a sandbox lies, by the snapshot's id.
    pub(crate) fn copy_dir(&self, id: &str) -> PathBuf {
        self.folder.join("snapshots").join(id)
    }

    /// Finds by id, then by name.
    pub(crate) fn id_of(&self, id_or_name: &str) -> Result<String, ApiError> {
        let inner = self.lock();
        let seen = |entry: &&Entry| may_see(entry.record.account);
        if inner.sandboxes.get(id_or_name).filter(seen).is_some() {
            return Ok(id_or_name.to_owned());
        }
        let found =
            inner.sandboxes.values().filter(seen).find(|entry| entry.record.name == id_or_name);
        found.map(|entry| entry.record.id.clone()).ok_or_else(|| ApiError::no_sandbox(id_or_name))
    }

    /// A sandbox that runs, with its first process.
    ///
    /// # Errors
    /// What the proxy says of one that is not there, or that is not started.
    pub(crate) fn running(&self, id: &str) -> Result<(Record, Arc<InitProcess>), ApiError> {
        let inner = self.lock();
        let entry = inner.sandboxes.get(id);
        let entry = entry.ok_or_else(|| ApiError::no_container(id))?;
        let process = entry.process.clone();
        let process = process.ok_or_else(|| ApiError::not_started(id))?;
        Ok((entry.record.clone(), process))
    }

    /// A sandbox by its id, whatever its state.
    pub(crate) fn record(&self, id: &str) -> Option<Record> {
        self.lock().sandboxes.get(id).map(|entry| entry.record.clone())
    }

    /// Changes a sandbox and writes it down before anybody sees it. `None`: it is gone.
    pub(crate) fn change<T>(&self, id: &str, change: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        let mut inner = self.lock();
        let entry = inner.sandboxes.get_mut(id)?;
        let result = change(entry);
        if let Err(error) = self.save(&entry.record) {
            tracing::error!(sandbox.id = id, %error, "a sandbox's record could not be written");
        }
        drop(inner);
        self.changes.send_modify(|count| *count += 1);
        Some(result)
    }

    /// Adds a sandbox under the lock that the caller holds.
    pub(crate) fn add(&self, inner: &mut Inner, record: Record) -> std::io::Result<()> {
        std::fs::create_dir_all(self.sandbox_dir(&record.folder).join("home"))?;
        self.save(&record)?;
        inner.sandboxes.insert(record.id.clone(), Entry::new(record));
        self.changes.send_modify(|count| *count += 1);
        Ok(())
    }

    /// Takes a sandbox away: its record and its folder. Answers what ran in it.
    pub(crate) fn remove(&self, id: &str) -> Option<Entry> {
        let entry = self.lock().sandboxes.remove(id)?;
        let folder = remove_folder(&self.sandbox_dir(&entry.record.folder));
        if let Err(error) = folder.and_then(|()| std::fs::remove_file(self.record_path(id))) {
            tracing::warn!(sandbox.id = id, %error, "a sandbox's files could not be removed");
        }
        self.changes.send_modify(|count| *count += 1);
        Some(entry)
    }

    /// What requests of this sandbox to this host get: what stands for each of its secrets, and the value.
    pub(crate) fn substitutions(&self, id: &str, host: &str) -> Vec<(String, String)> {
        let inner = self.lock();
        let Some(entry) = inner.sandboxes.get(id) else {
            return Vec::new();
        };
        let named = |one: &&Secret| entry.record.secrets.values().any(|name| *name == one.name);
        let is_for = |one: &&Secret| one.hosts.iter().any(|own| own.eq_ignore_ascii_case(host));
        let secrets = inner.secrets.values().filter(named).filter(is_for);
        secrets
            .map(|one| {
                let is_left = entry.record.leaves_secrets;
                let put_in = if is_left { &one.placeholder } else { &one.value };
                (one.placeholder.clone(), put_in.clone())
            })
            .collect()
    }

    /// Writes the snapshots to their file, from under the lock that the caller holds.
    pub(crate) fn save_snapshots(&self, snapshots: &Snapshots) -> Result<(), ApiError> {
        let file = SnapshotFile { snapshots: Cow::Borrowed(snapshots) };
        let text = serde_json::to_vec_pretty(&file).map_err(ApiError::internal)?;
        write_atomically(&self.folder.join(SNAPSHOT_FILE), &text).map_err(ApiError::internal)
    }

    /// Takes a snapshot away, with its copy where it has one.
    pub(crate) fn drop_snapshot(&self, id: &str) -> Result<(), ApiError> {
        {
            let snapshots = &mut self.lock().snapshots;
            snapshots.remove(id);
            self.save_snapshots(snapshots)?;
        }
        remove_folder(&self.copy_dir(id)).map_err(ApiError::internal)
    }

    /// Adds or replaces a snapshot and writes it down.
    pub(crate) fn put_snapshot(&self, snapshot: Snapshot) -> Result<(), ApiError> {
        let snapshots = &mut self.lock().snapshots;
        snapshots.insert(snapshot.id.clone(), snapshot);
        self.save_snapshots(snapshots)
    }

    fn record_path(&self, id: &str) -> PathBuf {
        self.folder.join("records").join(format!("{id}.json"))
    }

    fn save(&self, record: &Record) -> std::io::Result<()> {
        write_atomically(&self.record_path(&record.id), &serde_json::to_vec_pretty(record)?)
    }
}

/// Removes the copies that no snapshot is of: a crash came between.
fn sweep_copies(folder: &Path, snapshots: &Snapshots) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_kept = |one: &Snapshot| one.id == name && one.state != "removing";
        if !snapshots.values().any(is_kept) {
            remove_folder(&entry.path())?;
        }
    }
    Ok(())
}
