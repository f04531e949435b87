//! Shapes of Vercel's API, and how its states map to ours. Optional fields are omitted, never null.

use std::collections::BTreeMap;

use bobbin_core::base::endpoint::Endpoint;
use bobbin_core::base::ids::{Ms, SandboxKey};
use bobbin_core::base::limits::SandboxLimits;
use bobbin_core::base::names::sandbox_name;
use bobbin_core::records::sandbox::SandboxState;
use serde::{Deserialize, Serialize};

use super::policy::NetworkPolicy;
use crate::labels::{LABEL_GENERATION, StackIdentity, labels};
use crate::provider;
use crate::snapshot::SnapshotName;

const MINUTE_MS: u64 = 60_000;
/// Longest life of a session, even if extended (Vercel's documentation: 24 h on its paid plans).
pub(super) const SESSION_MS_MAX: u64 = 24 * 60 * MINUTE_MS;
/// vCPUs of a sandbox; each has 2 GiB of memory.
const VCPUS: u32 = 2;
/// Snapshots that Vercel keeps of a sandbox by itself: the next session starts from the newest.
const KEPT_SNAPSHOTS: u32 = 1;
/// Session time of a sandbox that keeps a snapshot: it stops by itself if nobody stops it.
const KEEPER_MS: u64 = MINUTE_MS;

/// A sandbox with its present session, as returned by every call about one sandbox.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct SandboxAnswer {
    /// The sandbox.
    pub sandbox: VercelSandbox,
    /// Its present or last session.
    #[serde(default)]
    pub session: Option<VercelSession>,
    /// Routes to its ports in that session.
    #[serde(default)]
    pub routes: Vec<Route>,
}

/// A sandbox, also as listed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VercelSandbox {
    /// Unique in the project.
    pub name: String,
    /// Owner and stack ([`crate::labels`]); Vercel allows five.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// Vercel's state of its present session.
    #[serde(default)]
    pub status: String,
    /// Creation time, in milliseconds since 1970.
    #[serde(default)]
    pub created_at: f64,
    /// The snapshot from which the next session starts; `None` before the first stop.
    #[serde(default)]
    pub current_snapshot_id: Option<String>,
}

/// One running machine of a sandbox.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VercelSession {
    /// Id for commands and files; changes with each resume.
    pub id: String,
    /// Vercel's state.
    #[serde(default)]
    pub status: String,
    /// Longest running time in milliseconds, from its start.
    #[serde(default)]
    pub timeout: f64,
    /// Start time, in milliseconds since 1970.
    #[serde(default)]
    pub started_at: Option<f64>,
    /// Creation time, in milliseconds since 1970.
    #[serde(default)]
    pub created_at: f64,
    /// Working directory of its commands.
    #[serde(default)]
    pub cwd: String,
}

/// Route to a port. It is public: the agent's password is the protection.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Route {
    /// Its address.
    pub url: String,
    /// The port inside.
    pub port: u16,
}

impl From<&Route> for Endpoint {
    fn from(route: &Route) -> Self {
        let address = route.url.split('?').next().unwrap_or_default();
        Self { url: address.trim_end_matches('/').to_owned(), headers: Vec::new() }
    }
}

impl VercelSession {
    /// When it ends by itself, in milliseconds since 1970.
    #[must_use]
    pub fn ends_ms(&self) -> Ms {
        whole(self.started_at.unwrap_or(self.created_at) + self.timeout)
    }

    /// The target of commands and files: its id, and its directory.
    fn place(&self) -> String {
        format!("{}/{}", self.id, self.cwd.trim_start_matches('/'))
    }
}

/// Id and directory of a session, parsed from [`provider::Sandbox::exec_base`].
pub(super) fn placed(base: &str) -> (&str, String) {
    let (id, cwd) = base.split_once('/').unwrap_or((base, ""));
    (id, format!("/{cwd}"))
}

/// Their number as an integer: a float beyond the range saturates.
fn whole(number: f64) -> u64 {
    number.max(0.0) as u64
}

/// The sandbox state that a session's state means.
#[must_use]
pub fn state_of(status: &str) -> SandboxState {
    match status {
        "pending" => SandboxState::Provisioning,
        "running" => SandboxState::Running,
        "stopped" => SandboxState::Stopped,
        // The next session starts from the last snapshot.
        "failed" | "aborted" => SandboxState::Broken {
            reason: format!("the provider reports {status}"),
            recoverable: true,
        },
        // stopping, snapshotting, and unknown states.
        _ => SandboxState::Busy,
    }
}

impl SandboxAnswer {
    /// The sandbox state that its state means.
    #[must_use]
    pub fn state(&self) -> SandboxState {
        state_of(self.status())
    }

    pub(super) fn status(&self) -> &str {
        let session = self.session.as_ref().map(|session| session.status.as_str());
        session.unwrap_or(&self.sandbox.status)
    }
}

impl From<SandboxAnswer> for provider::Sandbox {
    fn from(told: SandboxAnswer) -> Self {
        let running = told.session.as_ref().filter(|one| one.status == "running");
        let exec_base = running.map(VercelSession::place);
        let status = told.status().to_owned();
        let mut sandbox = Self::from(told.sandbox);
        sandbox.state = state_of(&status);
        sandbox.said = status;
        sandbox.exec_base = exec_base;
        sandbox
    }
}

impl From<VercelSandbox> for provider::Sandbox {
    fn from(told: VercelSandbox) -> Self {
        let mut labels = told.tags;
        // There is no room for a sixth tag, and the name contains it.
        if let Some((_, generation)) = told.name.rsplit_once("-g") {
            labels.insert(LABEL_GENERATION.to_owned(), generation.to_owned());
        }
        Self {
            state: state_of(&told.status),
            created_ms: Some(whole(told.created_at)).filter(|at| *at > 0),
            ends_ms: None,
            id: told.name.clone(),
            name: told.name,
            labels,
            said: told.status,
            exec_base: None,
        }
    }
}

/// Body of `POST /v3/sandboxes`. Its policy contains keys, so there is no `Debug`.
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateSandbox {
    /// The project in which it is created.
    pub project_id: String,
    /// The name makes a repeat harmless: Vercel creates no second sandbox with a taken name.
    pub name: String,
    /// The source of its first disk; `None`: the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Image in Vercel's registry; `None`: Vercel's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Ports that get a route.
    pub ports: Vec<u16>,
    /// Milliseconds of wall-clock time after which a session stops by itself: the last safety net.
    pub timeout: u64,
    /// Its size.
    pub resources: Resources,
    /// Whether a stop keeps the disk.
    pub persistent: bool,
    /// Owner and stack.
    pub tags: BTreeMap<String, String>,
    /// Milliseconds after which a snapshot is deleted; 0: never. A deleted snapshot is a lost disk.
    pub snapshot_expiration: u64,
    /// The snapshots that Vercel keeps by itself.
    pub keep_last_snapshots: KeepLastSnapshots,
    /// Policy for its outgoing requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_policy: Option<NetworkPolicy>,
}

/// The source of a sandbox's first disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Source {
    /// A snapshot.
    #[serde(rename_all = "camelCase")]
    Snapshot {
        /// Vercel's id.
        snapshot_id: String,
    },
}

/// Size of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Resources {
    /// Each comes with 2 GiB of memory.
    pub vcpus: u32,
}

/// How many of a sandbox's snapshots Vercel keeps; earlier ones are deleted when a new one is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct KeepLastSnapshots {
    /// 1 to 10.
    pub count: u32,
    /// Milliseconds that they are kept; 0: for ever.
    pub expiration: u64,
}

/// Common settings of a stack's sandboxes.
pub(super) struct CommonSettings<'a> {
    pub(super) stack: StackIdentity<'a>,
    pub(super) project: &'a str,
    pub(super) image: &'a str,
    pub(super) ports: &'a [u16],
    pub(super) limits: &'a SandboxLimits,
}

impl CreateSandbox {
    /// The body for a sandbox of this key and generation.
    pub(super) fn new(made: &CommonSettings<'_>, key: &SandboxKey, generation: u32) -> Self {
        let mut tags = labels(made.stack, key, generation);
        tags.remove(LABEL_GENERATION);
        Self {
            project_id: made.project.to_owned(),
            name: sandbox_name(made.stack.name, key, generation),
            source: None,
            image: Some(made.image.to_owned()).filter(|image| !image.is_empty()),
            ports: made.ports.to_vec(),
            timeout: session_ms(made.limits),
            resources: Resources { vcpus: VCPUS },
            persistent: true,
            tags,
            snapshot_expiration: 0,
            keep_last_snapshots: KeepLastSnapshots { count: KEPT_SNAPSHOTS, expiration: 0 },
            network_policy: None,
        }
    }

    /// The body for the sandbox that keeps a snapshot under its name: it runs nothing, and has no routes.
    pub(super) fn keeper(
        made: &CommonSettings<'_>,
        name: &SnapshotName,
        of: &VercelSandbox,
        snapshot: &str,
    ) -> Self {
        Self {
            project_id: made.project.to_owned(),
            name: name.to_string(),
            source: None,
            image: None,
            ports: Vec::new(),
            timeout: KEEPER_MS,
            resources: Resources { vcpus: VCPUS },
            persistent: true,
            tags: of.tags.clone(),
            snapshot_expiration: 0,
            keep_last_snapshots: KeepLastSnapshots { count: KEPT_SNAPSHOTS, expiration: 0 },
            network_policy: None,
        }
        .on_snapshot(snapshot)
    }

    /// Uses the disk of a snapshot. An image beside it would be refused.
    pub(super) fn on_snapshot(self, id: &str) -> Self {
        Self { image: None, source: Some(Source::Snapshot { snapshot_id: id.to_owned() }), ..self }
    }
}

/// How long a session lives without work.
pub(super) fn session_ms(limits: &SandboxLimits) -> u64 {
    (u64::from(limits.auto_stop_min) * MINUTE_MS).min(SESSION_MS_MAX)
}

/// Whether a sandbox with this name keeps a snapshot, of any stack: its name is a [`SnapshotName`]'s.
pub(super) fn is_keeper(name: &str) -> bool {
    let (sandbox, stack) = name.rsplit_once('-').unwrap_or_default();
    let at = sandbox.rsplit_once("-at").map(|(_, at)| at);
    let is_number = |at: &str| !at.is_empty() && at.bytes().all(|b| b.is_ascii_digit());
    !stack.is_empty() && stack.bytes().all(|b| b.is_ascii_hexdigit()) && at.is_some_and(is_number)
}

/// One page of `GET /v2/sandboxes`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct VercelPage {
    /// The entries of this page.
    #[serde(default)]
    pub sandboxes: Vec<VercelSandbox>,
    /// Cursor of the next page.
    #[serde(default)]
    pub pagination: Pagination,
}

/// Position of a listing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Pagination {
    /// `None` at the end.
    #[serde(default)]
    pub next: Option<String>,
}

/// Answer of a stop.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct StoppedSession {
    /// The session as it is now.
    pub session: VercelSession,
}

/// Answer of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct MadeSnapshot {
    /// The new snapshot.
    pub snapshot: SnapshotId,
}

/// A snapshot; only the fields that are needed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SnapshotId {
    /// Vercel's id.
    pub id: String,
}

/// How many of these were created before the one with this name; all others while that is not listed yet. For equal
/// times the name decides, so that all callers count alike.
pub(super) fn older(listed: &[provider::Sandbox], own: &str) -> usize {
    let made = |sandbox: &provider::Sandbox| (sandbox.created_ms, sandbox.name.clone());
    let at = listed.iter().find(|one| one.name == own).map(made);
    let is_older =
        |one: &&provider::Sandbox| one.name != own && at.as_ref().is_none_or(|at| made(one) < *at);
    listed.iter().filter(is_older).count()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use bobbin_core::base::ids::ThreadKey;
    use serde_json::json;

    use super::*;

    #[test]
    fn vercel_session_states_are_mapped() {
        for (status, state) in [
            ("pending", SandboxState::Provisioning),
            ("running", SandboxState::Running),
            ("stopped", SandboxState::Stopped),
            ("stopping", SandboxState::Busy),
            ("snapshotting", SandboxState::Busy),
            ("hatching", SandboxState::Busy),
        ] {
            assert_eq!(state_of(status), state, "{status}");
        }
        for status in ["failed", "aborted"] {
            let SandboxState::Broken { recoverable, reason } = state_of(status) else {
                panic!("{status}");
            };
            assert!(recoverable && reason.ends_with(status));
        }
    }

    #[test]
    fn vercel_sandbox_name_carries_generation() {
        let told: SandboxAnswer = serde_json::from_value(json!({
            "sandbox": {"name": "bobbin-dev-0a-g12", "tags": {"bobbin": "dev"}, "createdAt": 1_700_000_000_123.0_f64,
                "status": "running", "currentSessionId": "se_1", "persistent": true, "updatedAt": 1},
            "session": {"id": "se_1", "status": "running", "cwd": "/vercel/sandbox", "timeout": 60000, "createdAt": 1000,
                "startedAt": 2000},
            "routes": [{"url": "https://x.vercel.run/?a=b", "subdomain": "x", "port": 4096}],
        }))
        .unwrap();
        assert_eq!(told.session.as_ref().unwrap().ends_ms(), 62_000);
        assert_eq!(Endpoint::from(&told.routes[0]).url, "https://x.vercel.run");
        let found = provider::Sandbox::from(told);
        assert_eq!(found.labels[LABEL_GENERATION], "12");
        assert_eq!(found.created_ms, Some(1_700_000_000_123));
        let (id, cwd) = placed(found.exec_base.as_deref().unwrap());
        assert_eq!((id, cwd.as_str()), ("se_1", "/vercel/sandbox"));
    }

    #[test]
    fn snapshot_keeper_is_known_by_name() {
        let dev = StackIdentity { name: "dev", id: "a" };
        let key = ThreadKey::discord("1", "2").unwrap().sandbox();
        let name = SnapshotName::new(dev, &key, 3, 1_700_000_000_123);
        assert!(is_keeper(&name.to_string()));
        assert!(!is_keeper(name.sandbox()));
    }
}
