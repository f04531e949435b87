//! How a provider is run.

use std::path::PathBuf;

use bobbin_local_sandbox::settings::RunSettings;

/// How to run a provider.
#[derive(Clone)]
pub struct Settings {
    /// What every local provider is told.
    pub run: RunSettings,
    /// The token that clients send as Bearer.
    pub token: String,
    /// The team that it is of, by id.
    pub team_id: String,
    /// The team's only project, by id.
    pub project_id: String,
}

impl Settings {
    /// The defaults of [`RunSettings`].
    #[must_use]
    pub fn new(state_dir: PathBuf, token: String, team_id: String, project_id: String) -> Self {
        Settings { run: RunSettings::new(state_dir), token, team_id, project_id }
    }
}
