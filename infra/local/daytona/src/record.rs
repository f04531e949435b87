//! A stored sandbox, and its wire format.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::accounts::{FIRST, OrganizationNumber, organization};
use crate::clock::iso;
use crate::state::DaytonaState;

/// The organisation of the first key.
pub(crate) const ORGANIZATION: &str = "00000000-0000-4000-8000-000000000001";

/// A sandbox, as written to its file. Times are milliseconds since 1970, intervals minutes.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Name of its folder below `sandboxes/`.
    pub(crate) folder: String,
    /// User name seen by programs inside.
    pub(crate) user: String,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) labels: BTreeMap<String, String>,
    /// Secret name by variable in the sandbox.
    pub(crate) secrets: BTreeMap<String, String>,
    /// Placeholders leave the sandbox unreplaced.
    #[serde(default)]
    pub(crate) leaves_secrets: bool,
    pub(crate) snapshot: Option<String>,
    pub(crate) dockerfile: Option<String>,
    pub(crate) entrypoint: Vec<String>,
    pub(crate) public: bool,
    pub(crate) network_block_all: bool,
    pub(crate) network_allow_list: Option<String>,
    pub(crate) domain_allow_list: Option<String>,
    pub(crate) target: String,
    pub(crate) cpu: i64,
    pub(crate) gpu: i64,
    pub(crate) memory: i64,
    pub(crate) disk: i64,
    pub(crate) state: DaytonaState,
    /// State to return to when the snapshot is done.
    #[serde(default)]
    pub(crate) back_to: Option<DaytonaState>,
    /// Snapshot id whose files are still to be copied in.
    #[serde(default)]
    pub(crate) to_fill: Option<String>,
    pub(crate) error_reason: Option<String>,
    pub(crate) recoverable: bool,
    pub(crate) auto_stop: i64,
    pub(crate) auto_archive: i64,
    pub(crate) auto_delete: i64,
    pub(crate) destroy_at: Option<i64>,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    pub(crate) last_activity: i64,
    /// Preview token of the current run.
    pub(crate) token: String,
    /// This machine's port for the sandbox's 4096.
    pub(crate) port: u16,
    /// Its organisation.
    #[serde(default = "first")]
    pub(crate) account: OrganizationNumber,
}

const fn first() -> OrganizationNumber {
    FIRST
}

impl Record {
    /// This machine's port for a port of the sandbox.
    pub(crate) fn host_port(&self, port: u16) -> u16 {
        if port == 4096 { self.port } else { port }
    }

    /// A list item: without `env` and `buildInfo`.
    pub(crate) fn item(&self, toolbox_url: &str) -> Value {
        let mut item = json!({
            "id": self.id, "organizationId": organization(self.account), "name": self.name, "user": self.user,
            "labels": self.labels, "public": self.public, "networkBlockAll": self.network_block_all,
            "target": self.target, "cpu": self.cpu, "gpu": self.gpu, "memory": self.memory, "disk": self.disk,
            "state": self.state, "desiredState": self.back_to.unwrap_or(self.state).desired(), "recoverable": self.recoverable,
            "spot": false, "kvm": false, "sandboxClass": "container", "runnerId": ORGANIZATION,
            "autoStopInterval": self.auto_stop, "autoArchiveInterval": self.auto_archive,
            "autoDeleteInterval": self.auto_delete, "createdAt": iso(self.created_at),
            "updatedAt": iso(self.updated_at), "lastActivityAt": iso(self.last_activity),
            "daemonVersion": env!("CARGO_PKG_VERSION"), "backupState": "None", "toolboxProxyUrl": toolbox_url,
        });
        let optional = [
            ("snapshot", self.snapshot.clone()),
            ("errorReason", self.error_reason.clone()),
            ("networkAllowList", self.network_allow_list.clone()),
            ("domainAllowList", self.domain_allow_list.clone()),
            ("autoDestroyAt", self.destroy_at.map(iso)),
        ];
        for (field, value) in optional {
            if let Some(value) = value {
                item[field] = Value::String(value);
            }
        }
        item
    }

    /// The whole sandbox, as returned by calls on it alone.
    pub(crate) fn full(&self, toolbox_url: &str) -> Value {
        let mut full = self.item(toolbox_url);
        full["env"] = json!(self.env);
        full["volumes"] = json!([]);
        if let Some(dockerfile) = &self.dockerfile {
            full["buildInfo"] = build_info(dockerfile, self.created_at);
        }
        full
    }
}

/// Image build in a create request.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BuildRequest {
    pub(crate) dockerfile_content: Option<String>,
}

/// Reported build information. The text is stored and hashed, never run.
pub(crate) fn build_info(dockerfile: &str, at: i64) -> Value {
    let hash = hex::encode(Sha256::digest(dockerfile.as_bytes()));
    json!({
        "dockerfileContent": dockerfile, "contextHashes": [], "createdAt": iso(at), "updatedAt": iso(at),
        "snapshotRef": format!("daytona-{hash}:daytona"),
    })
}

/// The last exec-form `ENTRYPOINT` of a Dockerfile; the rest of the text has no effect here.
pub(crate) fn entrypoint_of(dockerfile: &str) -> Vec<String> {
    dockerfile
        .lines()
        .filter_map(|line| line.trim().strip_prefix("ENTRYPOINT "))
        .next_back()
        .and_then(|list| serde_json::from_str(list.trim()).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_exec_form_entrypoint_counts() {
        let text = "FROM a\nENTRYPOINT [\"one\"]\nENTRYPOINT [\"two\", \"-x\"]\nCMD [\"three\"]\n";
        assert_eq!(entrypoint_of(text), ["two", "-x"]);
        assert!(entrypoint_of("FROM a\nCMD [\"b\"]\n").is_empty());
    }
}
