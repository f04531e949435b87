//! The provider's store: sandboxes in memory and in a file each; snapshots in one file, with a folder each if made from
//! a sandbox; secrets in memory only.

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
use crate::secret::{DaytonaSecret, is_for};
use crate::snapshot::{StoredSnapshot, StoredSnapshots};
use crate::state::DaytonaState;

/// A sandbox port exposed on this machine. Dropping it stops its server.
pub(crate) struct PreviewListener {
    pub(crate) port: u16,
    pub(crate) _end: DropGuard,
}

/// A sandbox with its run-time state.
pub(crate) struct SandboxEntry {
    pub(crate) record: Record,
    /// Incremented by each new transition; an older one that finds another value gives up.
    pub(crate) epoch: u64,
    pub(crate) process: Option<Arc<InitProcess>>,
    pub(crate) previews: BTreeMap<u16, PreviewListener>,
    /// Port and expiry by token.
    pub(crate) signed: BTreeMap<String, (u16, i64)>,
    /// Until this system time this token is valid and the record's is refused.
    pub(crate) stale_token: Option<(String, i64)>,
    /// Open preview connections.
    pub(crate) open: usize,
    /// Stopped because this machine was short of memory.
    pub(crate) relieved: bool,
}

impl SandboxEntry {
    pub(crate) fn new(record: Record) -> Self {
        SandboxEntry {
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

/// All state behind one lock. Nothing awaits while it is held.
pub(crate) struct StoreState {
    pub(crate) sandboxes: BTreeMap<String, SandboxEntry>,
    pub(crate) snapshots: StoredSnapshots,
    pub(crate) secrets: BTreeMap<String, DaytonaSecret>,
    /// A stale copy of the list for the lag fault, with the system time of the copy.
    pub(crate) lagging: Option<(i64, Vec<(Record, Value)>)>,
}

/// The file name that earlier versions used too.
const SNAPSHOT_FILE: &str = "shelf.json";

/// Content of the snapshot file.
#[derive(Default, Serialize, Deserialize)]
struct SnapshotFile<'a> {
    snapshots: Cow<'a, StoredSnapshots>,
}

/// The provider's state, in memory and on disk.
pub(crate) struct ProviderStore {
    folder: PathBuf,
    inner: Mutex<StoreState>,
    changes: watch::Sender<u64>,
}

impl ProviderStore {
    /// Reads the stored state. An unreadable file is an error: it may be somebody's work.
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
            if record.to_fill.take().is_some() && record.state != DaytonaState::Destroying {
                record.state = DaytonaState::Error;
                record.error_reason =
                    Some("the provider was ended while the snapshot was copied".to_owned());
            }
            if record.state == DaytonaState::Destroying {
                remove_folder(&folder.join("sandboxes").join(&record.folder))?;
                std::fs::remove_file(&path)?;
                continue;
            }
            sandboxes.insert(record.id.clone(), SandboxEntry::new(record));
        }
        let kept: SnapshotFile = match std::fs::read(folder.join(SNAPSHOT_FILE)) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(std::io::Error::other)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => SnapshotFile::default(),
            Err(error) => return Err(error),
        };
        sweep_copies(&folder.join("snapshots"), &kept.snapshots)?;
        let store = ProviderStore {
            folder: folder.to_owned(),
            inner: Mutex::new(StoreState {
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

    pub(crate) fn lock(&self) -> MutexGuard<'_, StoreState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Signals every change of a sandbox.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// A sandbox's folder, by the folder name in its record.
    pub(crate) fn sandbox_dir(&self, folder: &str) -> PathBuf {
        self.folder.join("sandboxes").join(folder)
    }

    /// Folder with a snapshot's copy of a sandbox, by the snapshot's id.
    pub(crate) fn copy_dir(&self, id: &str) -> PathBuf {
        self.folder.join("snapshots").join(id)
    }

    /// Finds by id, then by name.
    pub(crate) fn id_of(&self, id_or_name: &str) -> Result<String, ApiError> {
        let inner = self.lock();
        let seen = |entry: &&SandboxEntry| may_see(entry.record.account);
        if inner.sandboxes.get(id_or_name).filter(seen).is_some() {
            return Ok(id_or_name.to_owned());
        }
        let found =
            inner.sandboxes.values().filter(seen).find(|entry| entry.record.name == id_or_name);
        found.map(|entry| entry.record.id.clone()).ok_or_else(|| ApiError::no_sandbox(id_or_name))
    }

    /// A running sandbox, with its first process.
    ///
    /// # Errors
    /// The proxy's answer for a sandbox that is missing or not started.
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

    /// Changes a sandbox and writes it before others can see it; `None` if it is gone.
    pub(crate) fn change<T>(
        &self,
        id: &str,
        change: impl FnOnce(&mut SandboxEntry) -> T,
    ) -> Option<T> {
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

    /// Adds a sandbox; the caller holds the lock.
    pub(crate) fn add(&self, inner: &mut StoreState, record: Record) -> std::io::Result<()> {
        std::fs::create_dir_all(self.sandbox_dir(&record.folder).join("home"))?;
        self.save(&record)?;
        inner.sandboxes.insert(record.id.clone(), SandboxEntry::new(record));
        self.changes.send_modify(|count| *count += 1);
        Ok(())
    }

    /// Removes a sandbox's record and folder; returns what ran in it.
    pub(crate) fn remove(&self, id: &str) -> Option<SandboxEntry> {
        let entry = self.lock().sandboxes.remove(id)?;
        let folder = remove_folder(&self.sandbox_dir(&entry.record.folder));
        if let Err(error) = folder.and_then(|()| std::fs::remove_file(self.record_path(id))) {
            tracing::warn!(sandbox.id = id, %error, "a sandbox's files could not be removed");
        }
        self.changes.send_modify(|count| *count += 1);
        Some(entry)
    }

    /// Whether a sandbox may reach a host. The ports of this machine that all may reach are not of the world.
    pub(crate) fn reaches(&self, id: &str, host: &str) -> bool {
        let inner = self.lock();
        let Some(record) = inner.sandboxes.get(id).map(|entry| &entry.record) else { return true };
        let listed = record.domain_allow_list.as_deref().filter(|list| !list.is_empty());
        let is_named = |list: &str| list.split(',').any(|own| is_for(own.trim(), host));
        host == "127.0.0.1" || (!record.network_block_all && listed.is_none_or(is_named))
    }

    /// Placeholders and values of a sandbox's secrets for a host.
    pub(crate) fn substitutions(&self, id: &str, host: &str) -> Vec<(String, String)> {
        let inner = self.lock();
        let Some(entry) = inner.sandboxes.get(id) else {
            return Vec::new();
        };
        let named =
            |one: &&DaytonaSecret| entry.record.secrets.values().any(|name| *name == one.name);
        let is_put_in = |one: &&DaytonaSecret| one.is_for(host);
        let secrets = inner.secrets.values().filter(named).filter(is_put_in);
        secrets
            .map(|one| {
                let is_left = entry.record.leaves_secrets;
                let put_in = if is_left { &one.placeholder } else { &one.value };
                (one.placeholder.clone(), put_in.clone())
            })
            .collect()
    }

    /// Writes the snapshots to their file; the caller holds the lock.
    pub(crate) fn save_snapshots(&self, snapshots: &StoredSnapshots) -> Result<(), ApiError> {
        let file = SnapshotFile { snapshots: Cow::Borrowed(snapshots) };
        let text = serde_json::to_vec_pretty(&file).map_err(ApiError::internal)?;
        write_atomically(&self.folder.join(SNAPSHOT_FILE), &text).map_err(ApiError::internal)
    }

    /// Removes a snapshot, and its copy if it has one.
    pub(crate) fn drop_snapshot(&self, id: &str) -> Result<(), ApiError> {
        {
            let snapshots = &mut self.lock().snapshots;
            snapshots.remove(id);
            self.save_snapshots(snapshots)?;
        }
        remove_folder(&self.copy_dir(id)).map_err(ApiError::internal)
    }

    /// Adds or replaces a snapshot and writes the file.
    pub(crate) fn put_snapshot(&self, snapshot: StoredSnapshot) -> Result<(), ApiError> {
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

/// Removes copies without a snapshot, left by a crash.
fn sweep_copies(folder: &Path, snapshots: &StoredSnapshots) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_kept = |one: &StoredSnapshot| one.id == name && one.state != "removing";
        if !snapshots.values().any(is_kept) {
            remove_folder(&entry.path())?;
        }
    }
    Ok(())
}
