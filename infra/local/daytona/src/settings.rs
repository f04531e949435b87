//! How a provider is run.

use std::path::PathBuf;

use bobbin_local_sandbox::settings::RunSettings;

/// Time in each state of transition: Daytona's are slow enough to be seen.
const TRANSITION_MS: u64 = 150;

/// How to run a provider.
#[derive(Clone)]
pub struct Settings {
    /// What every local provider is told.
    pub run: RunSettings,
    /// The key that clients send as Bearer.
    pub api_key: String,
    /// Announced as `toolboxProxyUrl` instead of our own, for a proxy in front.
    pub toolbox_url: Option<String>,
    /// The snapshot of a create that names neither one nor a build; it is always there and active.
    pub default_snapshot: String,
    /// What the key may do, as `GET /api-keys/current` tells it; nothing is refused for it.
    pub key_permissions: Vec<String>,
}

impl Settings {
    /// The defaults of [`RunSettings`], but 150 ms transitions.
    #[must_use]
    pub fn new(state_dir: PathBuf, api_key: String) -> Self {
        let mut run = RunSettings::new(state_dir);
        run.transition_ms = TRANSITION_MS;
        Settings {
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
