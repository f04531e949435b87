//! Shapes of Daytona's v0 API, and how its states map to ours.

use std::collections::BTreeMap;

use bobbin_core::base::endpoint::Endpoint;
use bobbin_core::base::ids::{Ms, SandboxKey};
use bobbin_core::base::limits::SandboxLimits;
use bobbin_core::base::names::sandbox_name;
use bobbin_core::records::sandbox::SandboxState;
use chrono::DateTime;
use serde::{Deserialize, Serialize};

use crate::labels::{StackIdentity, labels};
use crate::provider;

/// Sent as `X-Daytona-SDK-Version`: the daemon in the sandbox uses it as a protocol version. Pinned.
pub const PROTOCOL_VERSION: &str = "0.205.1";

/// A sandbox, as returned by reads and lists.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DaytonaSandbox {
    /// Id: the toolbox needs this, never the name.
    pub id: String,
    /// Name, unique in the organisation.
    pub name: String,
    /// Its organisation.
    #[serde(default)]
    pub organization_id: String,
    /// Owner and stack ([`crate::labels`]).
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Daytona's state.
    #[serde(default)]
    pub state: Option<String>,
    /// The state that it is to reach.
    #[serde(default)]
    pub desired_state: Option<String>,
    /// Reason of the error state.
    #[serde(default)]
    pub error_reason: Option<String>,
    /// `POST /recover` may help.
    #[serde(default)]
    pub recoverable: Option<bool>,
    /// Base address of the toolbox, to which the id is appended.
    #[serde(default)]
    pub toolbox_proxy_url: Option<String>,
    /// Creation time (RFC 3339).
    #[serde(default)]
    pub created_at: Option<String>,
    /// When Daytona destroys it, in any state (RFC 3339).
    #[serde(default)]
    pub auto_destroy_at: Option<String>,
}

impl DaytonaSandbox {
    /// The sandbox state that Daytona's state means.
    #[must_use]
    pub fn sandbox_state(&self) -> SandboxState {
        match self.state.as_deref().unwrap_or("") {
            "pending_build" | "building_snapshot" | "pulling_snapshot" | "creating"
            | "restoring" | "starting" | "resuming" => SandboxState::Provisioning,
            "unknown" if self.desired_state.as_deref() == Some("started") => {
                SandboxState::Provisioning
            }
            "started" => SandboxState::Running,
            "stopped" | "archived" | "archiving" | "paused" => SandboxState::Stopped,
            state @ ("error" | "build_failed") => SandboxState::Broken {
                reason: self
                    .error_reason
                    .clone()
                    .unwrap_or_else(|| format!("the provider reports {state}")),
                recoverable: state == "error" && self.recoverable == Some(true),
            },
            "destroying" | "destroyed" => SandboxState::Gone,
            // stopping, pausing, snapshotting, resizing, forking, and unknown states.
            _ => SandboxState::Busy,
        }
    }

    /// Creation time; `None` if it is not RFC 3339, or before 1970.
    #[must_use]
    pub fn created_ms(&self) -> Option<Ms> {
        ms_of(self.created_at.as_deref())
    }
}

/// A time from Daytona; `None` if it is not RFC 3339, or before 1970.
pub(super) fn ms_of(told: Option<&str>) -> Option<Ms> {
    let at = DateTime::parse_from_rfc3339(told?).ok()?;
    at.timestamp_millis().try_into().ok()
}

impl From<DaytonaSandbox> for provider::Sandbox {
    fn from(told: DaytonaSandbox) -> Self {
        Self {
            state: told.sandbox_state(),
            created_ms: told.created_ms(),
            ends_ms: ms_of(told.auto_destroy_at.as_deref()),
            id: told.id,
            name: told.name,
            labels: told.labels,
            said: told.state.unwrap_or_default(),
            exec_base: told.toolbox_proxy_url,
        }
    }
}

/// The image of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceImage {
    /// A prepared snapshot, by name: starts in seconds.
    Snapshot(String),
    /// A Dockerfile's text: built by Daytona, cached about a day.
    Dockerfile(String),
}

/// Body of `POST /sandbox`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateSandbox {
    /// The name makes a repeat harmless: Daytona creates no second sandbox with a taken name.
    pub name: String,
    /// Owner and stack ([`crate::labels`]).
    pub labels: BTreeMap<String, String>,
    /// Snapshot; `None` with a build.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// Build; `None` with a snapshot (both together are refused).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_info: Option<BuildInfo>,
    /// vCPUs; only with a build.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// GiB; only with a build. OpenCode alone takes half a GiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u32>,
    /// GiB; only with a build.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<u32>,
    /// Minutes without activity after which Daytona stops it: the last safety net.
    pub auto_stop_interval: u32,
    /// Minutes since creation after which Daytona destroys it in any state: the last safety net.
    pub ttl_minutes: u32,
    /// Variables that hold a placeholder for a secret, each with the secret's name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<BTreeMap<String, String>>,
}

/// Build instructions of a sandbox's image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BuildInfo {
    /// The Dockerfile's text: Daytona builds from it without other files.
    pub dockerfile_content: String,
}

pub(super) const BUILD_CPU: u32 = 2;
pub(super) const BUILD_MEMORY_GIB: u32 = 4;
pub(super) const BUILD_DISK_GIB: u32 = 8;

impl CreateSandbox {
    /// The body for a sandbox from this image, or from this snapshot of an earlier one. No key goes into its
    /// environment: every read would return it in plain text.
    #[must_use]
    pub fn new(
        stack: StackIdentity<'_>,
        key: &SandboxKey,
        generation: u32,
        image: &SourceImage,
        limits: &SandboxLimits,
    ) -> Self {
        let (snapshot, build_info) = match image {
            SourceImage::Snapshot(name) => (Some(name.clone()), None),
            SourceImage::Dockerfile(text) => {
                (None, Some(BuildInfo { dockerfile_content: text.clone() }))
            }
        };
        let with_build = |value: u32| build_info.is_some().then_some(value);
        Self {
            name: sandbox_name(stack.name, key, generation),
            labels: labels(stack, key, generation),
            cpu: with_build(BUILD_CPU),
            memory: with_build(BUILD_MEMORY_GIB),
            disk: with_build(BUILD_DISK_GIB),
            snapshot,
            build_info,
            auto_stop_interval: limits.auto_stop_min,
            ttl_minutes: limits.auto_destroy_min,
            secrets: Vec::new(),
        }
    }
}

/// One page of a listing with a cursor: `GET /sandbox`, `GET /secret/paginated`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    /// The entries of this page.
    #[serde(default = "Vec::new")]
    pub items: Vec<T>,
    /// Cursor of the next page.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

/// Address and token for a port of a sandbox.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct PreviewLink {
    /// Address of the port from outside.
    pub url: String,
    /// Value of the header `x-daytona-preview-token`; changes with every start.
    #[serde(default)]
    pub token: String,
}

impl std::fmt::Debug for PreviewLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PreviewLink").field("url", &"…").field("token", &"…").finish()
    }
}

impl From<PreviewLink> for Endpoint {
    fn from(link: PreviewLink) -> Self {
        let mut headers = vec![("x-daytona-skip-preview-warning", "true".to_owned())];
        if !link.token.is_empty() {
            headers.push(("x-daytona-preview-token", link.token));
        }
        Self { url: link.url, headers }
    }
}

impl PreviewLink {
    /// Moves a token that is in the address to the token field: an address ends up in logs. The address is left without
    /// query and trailing slash.
    #[must_use]
    pub fn normalised(self) -> Self {
        let (address, query) = self.url.split_once('?').unwrap_or((&self.url, ""));
        let in_query = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find(|(name, _)| matches!(*name, "tkn" | "token" | "DAYTONA_SANDBOX_AUTH_KEY"))
            .map(|(_, value)| value.to_owned());
        let token =
            if self.token.is_empty() { in_query.unwrap_or_default() } else { self.token.clone() };
        Self { url: address.trim_end_matches('/').to_owned(), token }
    }
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileInfo {
    /// Last part of its path.
    pub name: String,
    /// Whether it is a folder.
    #[serde(default)]
    pub is_dir: bool,
    /// Size in bytes.
    #[serde(default)]
    pub size: u64,
}

/// Result of an exec.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Executed {
    /// Exit status; -1 when the shell could not be started.
    #[serde(default)]
    pub exit_code: i64,
    /// Standard output and standard error, merged.
    #[serde(default)]
    pub result: String,
}

/// The body of an error, if there is one: some answers have none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ErrorBody {
    /// Status, repeated; its presence marks Daytona's own answer.
    pub status_code: Option<u16>,
    /// Error code.
    pub code: Option<String>,
    /// Message; sometimes a list.
    message: serde_json::Value,
}

impl ErrorBody {
    /// Parses a body; an unreadable one counts as empty.
    #[must_use]
    pub fn parse(body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }

    /// Daytona's message, from whichever field holds it; empty if none does.
    #[must_use]
    pub fn message(&self) -> String {
        bobbin_http::sentence(&self.message)
    }

    /// Whether this is the proxy's message that the sandbox cannot be reached, in one of its three forms. It also
    /// appears for a while with healthy sandboxes (a stale cache): observe, then try again.
    #[must_use]
    pub fn says_unreachable(&self) -> bool {
        let message = self.message().to_lowercase();
        [
            "is the sandbox started",
            "failed to get runner info",
            "sandbox container not found",
            "sandbox not found",
        ]
        .iter()
        .any(|words| message.contains(words))
    }
}

/// How many of these were created before the one with this name; all others while that is not listed yet. For equal
/// times the name decides, so that all callers count alike.
pub(super) fn older(listed: &[DaytonaSandbox], own: &str) -> usize {
    let made = |sandbox: &DaytonaSandbox| (sandbox.created_at.clone(), sandbox.name.clone());
    let at = listed.iter().find(|one| one.name == own).map(made);
    let is_older =
        |one: &&DaytonaSandbox| one.name != own && at.as_ref().is_none_or(|at| made(one) < *at);
    listed.iter().filter(is_older).count()
}

#[cfg(test)]
mod tests;
