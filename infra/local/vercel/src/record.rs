//! Stored sandboxes, sessions and snapshots, and their JSON in the API.

use std::collections::BTreeMap;

use bobbin_local_sandbox::random::token;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const MIB_PER_VCPU: u32 = 2_048;
const REGION: &str = "iad1";
/// Letters of an id.
const ID_LETTERS: usize = 24;

/// A new id with this prefix.
pub(crate) fn new_id(prefix: &str) -> String {
    format!("{prefix}_{}", token(ID_LETTERS))
}

/// States of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// Being created.
    Pending,
    /// Accepts commands.
    Running,
    /// Its processes are being ended and its disk kept.
    Stopping,
    /// Ended.
    Stopped,
    /// Its creation failed, or it ended by itself.
    Failed,
    /// Its disk is being kept on request.
    Snapshotting,
}

impl SessionStatus {
    /// Whether a session in this state will not run again.
    pub(crate) const fn is_over(self) -> bool {
        matches!(self, Self::Stopped | Self::Failed)
    }
}

/// One session.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct SessionRecord {
    pub(crate) id: String,
    pub(crate) status: SessionStatus,
    pub(crate) timeout_ms: u64,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    pub(crate) started_at: Option<i64>,
    pub(crate) stopped_at: Option<i64>,
    pub(crate) source_snapshot: Option<String>,
}

impl SessionRecord {
    pub(crate) fn new(timeout_ms: u64, source_snapshot: Option<String>, now: i64) -> Self {
        Self {
            id: new_id("se"),
            status: SessionStatus::Pending,
            timeout_ms,
            created_at: now,
            updated_at: now,
            started_at: None,
            stopped_at: None,
            source_snapshot,
        }
    }

    /// When it times out.
    pub(crate) fn ends_at(&self) -> i64 {
        let timeout = i64::try_from(self.timeout_ms).unwrap_or(i64::MAX);
        let began = self.started_at.unwrap_or(self.created_at);
        began.saturating_add(timeout)
    }
}

/// Retention rule for a sandbox's snapshots.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KeepLast {
    pub(crate) count: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expiration: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) delete_evicted: Option<bool>,
}

/// A sandbox.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) name: String,
    /// Name of its folder.
    pub(crate) folder: String,
    pub(crate) persistent: bool,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    pub(crate) timeout_ms: u64,
    pub(crate) vcpus: u32,
    pub(crate) ports: Vec<u16>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) snapshot_expiration: Option<u64>,
    pub(crate) keep_last: Option<KeepLast>,
    /// Snapshot that the next session's disk is copied from.
    pub(crate) current_snapshot: Option<String>,
    /// The provider was ended during a session: the disk is as it was then.
    pub(crate) disk_is_left: bool,
    /// This machine's port for the agent's port.
    pub(crate) agent_port: u16,
    /// Oldest first; the last one is the current one.
    pub(crate) sessions: Vec<SessionRecord>,
}

impl Record {
    /// The current session.
    pub(crate) fn session(&self) -> Option<&SessionRecord> {
        self.sessions.last()
    }

    pub(crate) fn session_mut(&mut self) -> Option<&mut SessionRecord> {
        self.sessions.last_mut()
    }

    pub(crate) fn status(&self) -> SessionStatus {
        self.session().map_or(SessionStatus::Stopped, |session| session.status)
    }

    /// A session's JSON in the API.
    pub(crate) fn session_view(&self, session: &SessionRecord, cwd: &str, policy: &Value) -> Value {
        let mut view = json!({
            "id": session.id, "memory": self.vcpus * MIB_PER_VCPU, "vcpus": self.vcpus, "region": REGION,
            "timeout": session.timeout_ms, "status": session.status, "requestedAt": session.created_at,
            "createdAt": session.created_at, "updatedAt": session.updated_at, "cwd": cwd,
        });
        let duration = session.stopped_at.and_then(|end| Some(end - session.started_at?));
        let optional = [
            ("startedAt", json!(session.started_at)),
            ("stoppedAt", json!(session.stopped_at)),
            ("duration", json!(duration)),
            ("sourceSnapshotId", json!(session.source_snapshot)),
            ("networkPolicy", policy.clone()),
        ];
        add(&mut view, optional);
        view
    }

    /// The sandbox's JSON in the API.
    pub(crate) fn view(&self, cwd: &str, policy: &Value) -> Value {
        let session = self.session();
        let mut view = json!({
            "name": self.name, "persistent": self.persistent, "region": REGION, "vcpus": self.vcpus,
            "memory": self.vcpus * MIB_PER_VCPU, "timeout": self.timeout_ms, "createdAt": self.created_at,
            "updatedAt": self.updated_at, "status": self.status(), "cwd": cwd,
            "currentSessionId": session.map_or("", |session| &session.id),
        });
        let running = session.filter(|session| session.status == SessionStatus::Running);
        let optional = [
            ("tags", tags(&self.tags)),
            ("currentSnapshotId", json!(self.current_snapshot)),
            ("snapshotExpiration", json!(self.snapshot_expiration)),
            ("keepLastSnapshots", json!(self.keep_last)),
            ("networkPolicy", policy.clone()),
            ("expiresAt", json!(running.map(SessionRecord::ends_at))),
            ("statusUpdatedAt", json!(session.map(|session| session.updated_at))),
        ];
        add(&mut view, optional);
        view
    }
}

fn tags(tags: &BTreeMap<String, String>) -> Value {
    if tags.is_empty() { Value::Null } else { json!(tags) }
}

/// Omits missing fields: the official client accepts no null.
fn add<const N: usize>(view: &mut Value, optional: [(&str, Value); N]) {
    for (field, value) in optional {
        if !value.is_null() {
            view[field] = value;
        }
    }
}

/// A kept disk.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct SnapshotRecord {
    pub(crate) id: String,
    /// Its source sandbox.
    pub(crate) sandbox: String,
    pub(crate) source_session: String,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    pub(crate) expires_at: Option<i64>,
    pub(crate) bytes: u64,
    pub(crate) is_deleted: bool,
}

impl SnapshotRecord {
    /// JSON in the API.
    pub(crate) fn view(&self) -> Value {
        let status = if self.is_deleted { "deleted" } else { "created" };
        let mut view = json!({
            "id": self.id, "sourceSessionId": self.source_session, "region": REGION, "status": status,
            "sizeBytes": self.bytes, "createdAt": self.created_at, "updatedAt": self.updated_at,
        });
        add(&mut view, [("expiresAt", json!(self.expires_at))]);
        view
    }

    /// Whether disks can be created from it.
    pub(crate) fn is_there(&self, now: i64) -> bool {
        !self.is_deleted && self.expires_at.is_none_or(|end| now < end)
    }
}
