//! Settings of a provider.

use std::path::PathBuf;

use bobbin_local_sandbox::settings::RunSettings;

/// Time per transition state: Daytona's are slow enough to be visible.
const TRANSITION_MS: u64 = 150;

/// Settings of a provider.
#[derive(Clone)]
pub struct LocalDaytonaSettings {
    /// Settings of every local provider.
    pub run: RunSettings,
    /// The key that clients send as Bearer.
    pub api_key: String,
    /// Reported as `toolboxProxyUrl` instead of our own, for a proxy in front.
    pub toolbox_url: Option<String>,
    /// Snapshot of a create that names neither one nor a build; always present and active.
    pub default_snapshot: String,
    /// The key's permissions as in `GET /api-keys/current`; never enforced.
    pub key_permissions: Vec<String>,
}

impl LocalDaytonaSettings {
    /// The defaults of [`RunSettings`], but 150 ms transitions.
    #[must_use]
    pub fn new(state_dir: PathBuf, api_key: String) -> Self {
        let mut run = RunSettings::new(state_dir);
        run.transition_ms = TRANSITION_MS;
        LocalDaytonaSettings {
            run,
            api_key,
            toolbox_url: None,
            default_snapshot: "bobbin-opencode".to_owned(),
            key_permissions: [
                "write:sandboxes",
                "delete:sandboxes",
                "write:snapshots",
                "delete:snapshots",
                "manage:secrets",
                "read:limits",
            ]
            .map(str::to_owned)
            .to_vec(),
        }
    }
}
