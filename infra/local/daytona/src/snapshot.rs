//! A snapshot as it is kept and told. Nothing is built of one, but it goes through the states of a build.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::api_error::ApiError;
use crate::clock::iso;
use crate::random::uuid;
use crate::record::{ORGANIZATION, build_info};

/// A prepared image. Nothing is built; the text and the names are kept.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Snapshot {
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
    /// Why its build failed, if it did.
    #[serde(default)]
    pub(crate) error: Option<String>,
}

/// All snapshots, by their ids.
pub(crate) type Snapshots = BTreeMap<String, Snapshot>;

impl Snapshot {
    /// One of the smallest size, which waits for its image.
    pub(crate) fn new(name: String, now: i64) -> Self {
        Snapshot {
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
        }
    }

    /// Reports whether it goes by this id or name.
    pub(crate) fn is_called(&self, id_or_name: &str) -> bool {
        self.id == id_or_name || self.name == id_or_name
    }

    /// What the API tells of it.
    pub(crate) fn to_json(&self) -> Value {
        let mut json = json!({
            "id": self.id, "organizationId": ORGANIZATION, "general": self.general, "name": self.name,
            "state": self.state, "size": null, "entrypoint": self.entrypoint, "cpu": self.cpu, "gpu": 0,
            "mem": self.memory, "disk": self.disk, "errorReason": self.error, "createdAt": iso(self.created_at),
            "updatedAt": iso(self.updated_at), "lastUsedAt": self.last_used_at.map(iso), "sourceSandboxId": null,
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
pub(crate) fn find(snapshots: &Snapshots, id_or_name: &str) -> Result<Snapshot, ApiError> {
    let found = snapshots.values().find(|one| one.is_called(id_or_name));
    found.cloned().ok_or_else(|| {
        ApiError::new(
            404,
            format!("Snapshot with ID or name {id_or_name} not found"),
        )
    })
}

/// The default snapshot is always there; one whose build a restart interrupted is done.
pub(crate) fn prepare(snapshots: &mut Snapshots, default: &str, now: i64) {
    for snapshot in snapshots.values_mut() {
        if matches!(snapshot.state.as_str(), "building" | "pending" | "pulling") {
            "active".clone_into(&mut snapshot.state);
        }
    }
    if snapshots.values().any(|snapshot| snapshot.name == default) {
        return;
    }
    let mut snapshot = Snapshot::new(default.to_owned(), now);
    "active".clone_into(&mut snapshot.state);
    snapshot.general = true;
    snapshots.insert(snapshot.id.clone(), snapshot);
}
