//! Prepared images, the key and the quota: used by the set-up, not by deliveries.

use bobbin_core::base::ids::digest;
use serde::{Deserialize, Serialize};

use super::types::{BUILD_CPU, BUILD_DISK_GIB, BUILD_MEMORY_GIB, BuildInfo};

/// Prefix of every snapshot that is built from our Dockerfile.
pub const SNAPSHOT_PREFIX: &str = "bobbin-sandbox-";
/// Hex digits of the content's hash in a snapshot's name.
const NAME_DIGITS: usize = 12;

/// Permissions that a key needs (Daytona's words), and what for.
pub const NEEDED_PERMISSIONS: [(&str, &str); 4] = [
    ("write:sandboxes", "makes and starts sandboxes"),
    ("delete:sandboxes", "deletes them"),
    ("write:snapshots", "builds the snapshot, while setting up"),
    ("delete:snapshots", "removes it again"),
];

/// Permission to keep the model keys out of the sandboxes; without it they are passed as variables of the agent's
/// server.
pub const SECRETS_PERMISSION: &str = "manage:secrets";

/// The snapshot name of a Dockerfile: another text, or another sandbox size, has another name.
#[must_use]
pub fn snapshot_name(dockerfile: &str) -> String {
    let size = format!("{BUILD_CPU}/{BUILD_MEMORY_GIB}/{BUILD_DISK_GIB}");
    let hash = digest(&["snapshot", &size, dockerfile]);
    format!("{SNAPSHOT_PREFIX}{}", &hash[..NAME_DIGITS])
}

/// Body of `POST /snapshots`: built by Daytona from the Dockerfile's text, so neither a Docker daemon nor a registry is
/// needed. The Dockerfile cannot copy files from a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateSnapshot {
    /// Unique in the organisation.
    pub name: String,
    /// Build instructions.
    pub build_info: BuildInfo,
    /// vCPU of its sandboxes.
    pub cpu: u32,
    /// GiB of memory of its sandboxes.
    pub memory: u32,
    /// GiB of disk of its sandboxes.
    pub disk: u32,
}

impl CreateSnapshot {
    /// For a Dockerfile, with the size that a sandbox built from it would have.
    #[must_use]
    pub fn new(name: &str, dockerfile: &str) -> Self {
        Self {
            name: name.to_owned(),
            build_info: BuildInfo { dockerfile_content: dockerfile.to_owned() },
            cpu: BUILD_CPU,
            memory: BUILD_MEMORY_GIB,
            disk: BUILD_DISK_GIB,
        }
    }
}

/// An image from which sandboxes start without a build. To Daytona a snapshot of a sandbox is one too; they differ by
/// their origin, and here by their names.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DaytonaSnapshot {
    /// Id: calls that change it need this.
    pub id: String,
    /// Name by which sandboxes are created from it.
    pub name: String,
    /// Daytona's state.
    #[serde(default)]
    pub state: String,
    /// Why it cannot be used; `None` if it can.
    #[serde(default)]
    pub error_reason: Option<String>,
    /// Size in GiB, if known.
    #[serde(default)]
    pub size: Option<f64>,
}

/// State of a prepared snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// Sandboxes can be created from it.
    Ready,
    /// Unused for weeks: it has to be activated.
    Asleep,
    /// It will not become ready, for this reason.
    Failed(String),
    /// Being deleted.
    Going,
    /// In progress: wait. Every unknown state counts as this.
    Underway,
}

impl DaytonaSnapshot {
    /// The readiness that its state means.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        match self.state.as_str() {
            "active" => Readiness::Ready,
            "inactive" => Readiness::Asleep,
            state @ ("error" | "build_failed") => Readiness::Failed(
                self.error_reason
                    .clone()
                    .filter(|reason| !reason.is_empty())
                    .unwrap_or_else(|| format!("Daytona reports {state}")),
            ),
            "removing" => Readiness::Going,
            _ => Readiness::Underway,
        }
    }
}

/// Body of `POST /sandbox/{sandbox}/snapshot`: the disk of a container; its memory cannot be kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SnapshotSandbox {
    /// Unique in the organisation, prepared images included.
    pub name: String,
}

/// One page of `GET /snapshots`, which are numbered from 1.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct SnapshotPage {
    /// The entries of this page, the newest first.
    #[serde(default)]
    pub items: Vec<DaytonaSnapshot>,
}

/// The key of the request (`GET /api-keys/current`), without its value.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiKey {
    /// Name given by its owner.
    #[serde(default)]
    pub name: String,
    /// Its permissions.
    #[serde(default)]
    pub permissions: Vec<String>,
    /// Expiry (RFC 3339).
    #[serde(default)]
    pub expires_at: Option<String>,
}

impl ApiKey {
    /// The needed permissions that it lacks.
    #[must_use]
    pub fn missing(&self) -> Vec<(&'static str, &'static str)> {
        let lacks = |(name, _): &(&str, &str)| !self.permissions.iter().any(|has| has == name);
        NEEDED_PERMISSIONS.into_iter().filter(lacks).collect()
    }

    /// Whether it may create secrets.
    #[must_use]
    pub fn may_keep_secrets(&self) -> bool {
        self.permissions.iter().any(|has| has == SECRETS_PERMISSION)
    }
}

/// An organisation of the key's owner.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Organization {
    /// Id, as used in the routes of its quota.
    pub id: String,
    /// Display name.
    #[serde(default)]
    pub name: String,
    /// Suspended: it cannot create anything now.
    #[serde(default)]
    pub suspended: bool,
}

/// Usage and quota of an organisation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrganizationUsage {
    /// Usage and quota of each region.
    #[serde(default)]
    pub region_usage: Vec<RegionUsage>,
}

/// Usage and quota of a region. Numbers may be fractional.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RegionUsage {
    /// Daytona's id of the region.
    pub region_id: String,
    /// Kind of sandbox; ours are containers.
    pub sandbox_class: String,
    /// vCPU quota of the region.
    pub total_cpu_quota: f64,
    /// vCPUs in use.
    pub current_cpu_usage: f64,
    /// Memory quota, in GiB.
    pub total_memory_quota: f64,
    /// Memory in use, in GiB.
    pub current_memory_usage: f64,
    /// Disk quota, in GiB.
    pub total_disk_quota: f64,
    /// Disk in use, in GiB.
    pub current_disk_usage: f64,
}

impl Default for RegionUsage {
    fn default() -> Self {
        Self {
            region_id: String::new(),
            sandbox_class: "container".to_owned(),
            total_cpu_quota: 0.0,
            current_cpu_usage: 0.0,
            total_memory_quota: 0.0,
            current_memory_usage: 0.0,
            total_disk_quota: 0.0,
            current_disk_usage: 0.0,
        }
    }
}

impl RegionUsage {
    /// How many more of our sandboxes fit, limited by the scarcest resource; and the name of that resource.
    #[must_use]
    pub fn room(&self) -> (u64, &'static str) {
        let fits = |total: f64, used: f64, each: u32| {
            // Rounded down to whole sandboxes; negative values and NaN count as zero.
            ((total - used) / f64::from(each)).max(0.0) as u64
        };
        let each = [
            (fits(self.total_cpu_quota, self.current_cpu_usage, BUILD_CPU), "vCPU"),
            (fits(self.total_memory_quota, self.current_memory_usage, BUILD_MEMORY_GIB), "memory"),
            (fits(self.total_disk_quota, self.current_disk_usage, BUILD_DISK_GIB), "disk"),
        ];
        each.into_iter().min().unwrap_or((0, "vCPU"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn snapshot_name_depends_only_on_content() {
        let name = snapshot_name("FROM a\n");
        assert_eq!(name, snapshot_name("FROM a\n"));
        assert_ne!(name, snapshot_name("FROM b\n"));
        assert_eq!(name.len(), SNAPSHOT_PREFIX.len() + NAME_DIGITS);
    }

    #[test]
    fn daytona_snapshot_states_are_mapped() {
        let of = |state: &str, reason: Option<&str>| {
            let read = json!({"id": "i", "name": "n", "state": state, "errorReason": reason});
            serde_json::from_value::<DaytonaSnapshot>(read).unwrap().readiness()
        };
        assert_eq!(of("active", None), Readiness::Ready);
        assert_eq!(of("inactive", None), Readiness::Asleep);
        assert_eq!(of("removing", None), Readiness::Going);
        for state in ["building", "pending", "pulling", "snapshotting", "hatching"] {
            assert_eq!(of(state, None), Readiness::Underway, "{state}");
        }
        assert_eq!(of("error", Some("no disk")), Readiness::Failed("no disk".to_owned()));
        assert_eq!(
            of("build_failed", None),
            Readiness::Failed("Daytona reports build_failed".to_owned())
        );
    }

    #[test]
    fn permissions_and_room_are_computed() {
        let key: ApiKey = serde_json::from_value(
            json!({"permissions": ["write:sandboxes", "write:snapshots", "read:volumes"]}),
        )
        .unwrap();
        assert_eq!(
            key.missing(),
            [("delete:sandboxes", "deletes them"), ("delete:snapshots", "removes it again")]
        );
        let region: RegionUsage = serde_json::from_value(json!({
            "totalCpuQuota": 10, "currentCpuUsage": 2.5, "totalMemoryQuota": 20, "currentMemoryUsage": 4,
            "totalDiskQuota": 30, "currentDiskUsage": 8,
        }))
        .unwrap();
        assert_eq!(region.room(), (2, "disk"));
        let over = RegionUsage { current_cpu_usage: 11.0, ..region };
        assert_eq!(over.room(), (0, "vCPU"));
    }
}
