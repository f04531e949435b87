//! Settings of a provider.

use std::path::PathBuf;

use bobbin_local_sandbox::settings::RunSettings;

/// Settings of a provider.
#[derive(Clone)]
pub struct LocalVercelSettings {
    /// Settings of every local provider.
    pub run: RunSettings,
    /// The token that clients send as Bearer.
    pub token: String,
    /// Id of the token's team.
    pub team_id: String,
    /// Id of the team's only project.
    pub project_id: String,
}

impl LocalVercelSettings {
    /// The defaults of [`RunSettings`].
    #[must_use]
    pub fn new(state_dir: PathBuf, token: String, team_id: String, project_id: String) -> Self {
        LocalVercelSettings { run: RunSettings::new(state_dir), token, team_id, project_id }
    }
}
