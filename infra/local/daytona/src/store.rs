//! What the provider knows: sandboxes in memory with a file each, snapshots in one file, secrets in memory only.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

use crate::fail::Fail;
use crate::guest::Guest;
use crate::preview::Listener;
use crate::record::Record;
use crate::state::State;

/// A sandbox with what is true only while the provider runs.
pub(crate) struct Entry {
    pub(crate) record: Record,
    /// Counts the changes of course; a transition that finds another number gives up.
    pub(crate) epoch: u64,
    pub(crate) guest: Option<Arc<Guest>>,
    pub(crate) previews: BTreeMap<u16, Listener>,
    /// Token to its port and the time it ends.
    pub(crate) signed: BTreeMap<String, (u16, i64)>,
    /// Until then (system time) this token holds and the record's is refused.
    pub(crate) stale_token: Option<(String, i64)>,
    /// Connections through previews that are open now.
    pub(crate) open: usize,
}

impl Entry {
    pub(crate) fn new(record: Record) -> Self {
        Entry {
            record,
            epoch: 0,
            guest: None,
            previews: BTreeMap::new(),
            signed: BTreeMap::new(),
            stale_token: None,
            open: 0,
        }
    }
}

/// A prepared image. Nothing is built; the text and the names are kept.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) state: String,
    pub(crate) image: Option<String>,
    pub(crate) dockerfile: Option<String>,
    pub(crate) entrypoint: Vec<String>,
    pub(crate) general: bool,
    pub(crate) cpu: i64,
    pub(crate) memory: i64,
    pub(crate) disk: i64,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    pub(crate) last_used_at: Option<i64>,
    /// Why its build failed.
    #[serde(default)]
    pub(crate) error: Option<String>,
}

/// A secret. It is written nowhere: a restart forgets it, and whoever holds the value makes it again.
#[derive(Clone)]
pub(crate) struct Secret {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) placeholder: String,
    pub(crate) value: String,
    pub(crate) description: Option<String>,
    pub(crate) hosts: Vec<String>,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
}

/// Snapshots and secrets.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Shelf {
    pub(crate) snapshots: BTreeMap<String, Snapshot>,
    #[serde(skip)]
    pub(crate) secrets: BTreeMap<String, Secret>,
}

/// Everything behind one lock. Nothing waits while it is held.
pub(crate) struct Inner {
    pub(crate) sandboxes: BTreeMap<String, Entry>,
    pub(crate) shelf: Shelf,
    /// The list as it was, for the fault that makes it lag: taken at (system time).
    pub(crate) lagging: Option<(i64, Vec<(Record, Value)>)>,
}

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
            if record.state == State::Destroying {
                remove_folder(&folder.join("sandboxes").join(&record.folder))?;
                std::fs::remove_file(&path)?;
                continue;
            }
            sandboxes.insert(record.id.clone(), Entry::new(record));
        }
        let shelf = match std::fs::read(folder.join("shelf.json")) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(std::io::Error::other)?,
            Err(_) => Shelf::default(),
        };
        let store = Store {
            folder: folder.to_owned(),
            inner: Mutex::new(Inner {
                sandboxes,
                shelf,
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

    /// The folder of a sandbox.
    pub(crate) fn place(&self, folder: &str) -> PathBuf {
        self.folder.join("sandboxes").join(folder)
    }

    /// Finds by id, then by name.
    pub(crate) fn id_of(&self, id_or_name: &str) -> Result<String, Fail> {
        let inner = self.lock();
        if inner.sandboxes.contains_key(id_or_name) {
            return Ok(id_or_name.to_owned());
        }
        let found = inner
            .sandboxes
            .values()
            .find(|entry| entry.record.name == id_or_name);
        found
            .map(|entry| entry.record.id.clone())
            .ok_or_else(|| Fail::no_sandbox(id_or_name))
    }

    pub(crate) fn record(&self, id: &str) -> Option<Record> {
        self.lock()
            .sandboxes
            .get(id)
            .map(|entry| entry.record.clone())
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
        std::fs::create_dir_all(self.place(&record.folder).join("home"))?;
        self.save(&record)?;
        inner
            .sandboxes
            .insert(record.id.clone(), Entry::new(record));
        self.changes.send_modify(|count| *count += 1);
        Ok(())
    }

    /// Takes a sandbox away: its record and its folder. Answers what ran in it.
    pub(crate) fn remove(&self, id: &str) -> Option<Entry> {
        let entry = self.lock().sandboxes.remove(id)?;
        let folder = remove_folder(&self.place(&entry.record.folder));
        if let Err(error) = folder.and_then(|()| std::fs::remove_file(self.record_path(id))) {
            tracing::warn!(sandbox.id = id, %error, "a sandbox's files could not be removed");
        }
        self.changes.send_modify(|count| *count += 1);
        Some(entry)
    }

    /// What requests of this sandbox to this host get: what stands for each of its secrets, and the value.
    pub(crate) fn swaps(&self, id: &str, host: &str) -> Vec<(String, String)> {
        let inner = self.lock();
        let Some(entry) = inner.sandboxes.get(id) else {
            return Vec::new();
        };
        let named = |one: &&Secret| entry.record.secrets.values().any(|name| *name == one.name);
        let is_for = |one: &&Secret| one.hosts.iter().any(|own| own.eq_ignore_ascii_case(host));
        let secrets = inner.shelf.secrets.values().filter(named).filter(is_for);
        secrets
            .map(|one| (one.placeholder.clone(), one.value.clone()))
            .collect()
    }

    /// Writes snapshots.
    pub(crate) fn save_shelf(&self, shelf: &Shelf) -> Result<(), Fail> {
        let text = serde_json::to_vec_pretty(shelf).map_err(Fail::internal)?;
        write_atomically(&self.folder.join("shelf.json"), &text).map_err(Fail::internal)
    }

    fn record_path(&self, id: &str) -> PathBuf {
        self.folder.join("records").join(format!("{id}.json"))
    }

    fn save(&self, record: &Record) -> std::io::Result<()> {
        write_atomically(
            &self.record_path(&record.id),
            &serde_json::to_vec_pretty(record)?,
        )
    }
}

/// A crash leaves the old text or the new one. The file holds environment and preview token: only its owner reads it.
fn write_atomically(path: &Path, text: &[u8]) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let new = path.with_extension("new");
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)?;
    file.write_all(text)?;
    std::fs::rename(new, path)
}

/// Removes a folder with everything in it; folders that a command made unreadable are opened first.
fn remove_folder(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fn open_up(path: &Path) {
        let Ok(meta) = std::fs::symlink_metadata(path) else {
            return;
        };
        if !meta.is_dir() {
            return;
        }
        // What cannot be opened is reported by the removal.
        let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700));
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            open_up(&entry.path());
        }
    }
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            open_up(path);
            std::fs::remove_dir_all(path)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}
