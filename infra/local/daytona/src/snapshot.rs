//! A snapshot: an image, which passes through the states of a build although nothing is built, or a copy of a sandbox's
//! folder.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::api_error::ApiError;
use crate::clock::iso;
use crate::limits::SNAPSHOT_IDLE_MS_MAX;
use crate::random::uuid;
use crate::record::{ORGANIZATION, Record, build_info};

/// A prepared image (text and names only), or a copy of a sandbox's folder.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct StoredSnapshot {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) state: String,
    pub(crate) image: Option<String>,
    pub(crate) dockerfile: Option<String>,
    pub(crate) entrypoint: Vec<String>,
    /// Whether it is the provider's own, which nobody can delete.
    pub(crate) general: bool,
    pub(crate) cpu: i64,
    pub(crate) memory: i64,
    pub(crate) disk: i64,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    pub(crate) last_used_at: Option<i64>,
    /// The build error, if any.
    #[serde(default)]
    pub(crate) error: Option<String>,
    /// Source sandbox id; `None` for an image.
    #[serde(default)]
    pub(crate) source: Option<String>,
    /// Size of the copy in bytes.
    #[serde(default)]
    pub(crate) bytes: Option<u64>,
}

/// Unit of `size`.
const GIB: f64 = 1_073_741_824.0;

/// All snapshots, by their ids.
pub(crate) type StoredSnapshots = BTreeMap<String, StoredSnapshot>;

impl StoredSnapshot {
    /// A new snapshot of the smallest size, waiting for its image.
    pub(crate) fn new(name: String, now: i64) -> Self {
        StoredSnapshot {
            id: uuid(),
            name,
            state: "pending".to_owned(),
            image: None,
            dockerfile: None,
            entrypoint: Vec::new(),
            general: false,
            cpu: 1,
            memory: 1,
            disk: 3,
            created_at: now,
            updated_at: now,
            last_used_at: None,
            error: None,
            source: None,
            bytes: None,
        }
    }

    /// A snapshot of a sandbox, already copied.
    pub(crate) fn of(sandbox: &Record, id: String, name: String, bytes: u64, now: i64) -> Self {
        StoredSnapshot {
            id,
            state: "active".to_owned(),
            entrypoint: sandbox.entrypoint.clone(),
            cpu: sandbox.cpu,
            memory: sandbox.memory,
            disk: sandbox.disk,
            last_used_at: Some(now),
            source: Some(sandbox.id.clone()),
            bytes: Some(bytes),
            ..StoredSnapshot::new(name, now)
        }
    }

    /// Unused for as long as Daytona keeps one active.
    pub(crate) fn is_idle(&self, now: i64) -> bool {
        let used = self.last_used_at.unwrap_or(self.created_at);
        self.state == "active" && !self.general && now.saturating_sub(used) >= SNAPSHOT_IDLE_MS_MAX
    }

    /// Whether this is its id or name.
    pub(crate) fn is_called(&self, id_or_name: &str) -> bool {
        self.id == id_or_name || self.name == id_or_name
    }

    /// JSON for the API.
    pub(crate) fn to_json(&self) -> Value {
        let mut json = json!({
            "id": self.id, "organizationId": ORGANIZATION, "general": self.general, "name": self.name,
            "state": self.state, "size": self.bytes.map(|bytes| bytes as f64 / GIB), "entrypoint": self.entrypoint, "cpu": self.cpu, "gpu": 0,
            "mem": self.memory, "disk": self.disk, "errorReason": self.error, "createdAt": iso(self.created_at),
            "updatedAt": iso(self.updated_at), "lastUsedAt": self.last_used_at.map(iso), "sourceSandboxId": self.source,
            "regionIds": ["us"], "sandboxClass": "container",
        });
        if let Some(image) = &self.image {
            json["imageName"] = json!(image);
        }
        if let Some(dockerfile) = &self.dockerfile {
            json["buildInfo"] = build_info(dockerfile, self.created_at);
        }
        json
    }
}

/// Finds by id or name.
pub(crate) fn find(
    snapshots: &StoredSnapshots,
    id_or_name: &str,
) -> Result<StoredSnapshot, ApiError> {
    let found = snapshots.values().find(|one| one.is_called(id_or_name));
    found.cloned().ok_or_else(|| {
        ApiError::new(404, format!("Snapshot with ID or name {id_or_name} not found"))
    })
}

/// Adds the default snapshot if missing, and completes builds and removals that a restart interrupted.
pub(crate) fn prepare(snapshots: &mut StoredSnapshots, default: &str, now: i64) {
    snapshots.retain(|_, snapshot| snapshot.state != "removing");
    for snapshot in snapshots.values_mut() {
        if matches!(snapshot.state.as_str(), "building" | "pending" | "pulling") {
            "active".clone_into(&mut snapshot.state);
        }
    }
    if snapshots.values().any(|snapshot| snapshot.name == default) {
        return;
    }
    let mut snapshot = StoredSnapshot::new(default.to_owned(), now);
    "active".clone_into(&mut snapshot.state);
    snapshot.general = true;
    snapshots.insert(snapshot.id.clone(), snapshot);
}
