//! The providers that there are: a further one is a folder of `bobbin-sandbox` and a line here.

use std::sync::Arc;

use bobbin_cloud::config::Config;
use bobbin_sandbox::Provider;
use bobbin_sandbox::daytona::{DaytonaSandboxes, DaytonaSettings, Image};

/// What a sandbox is built from where no snapshot is configured, and what the snapshot is built from.
pub const DOCKERFILE: &str = include_str!("../../../infra/sandbox/Dockerfile");

/// What runs the sandboxes, from configuration and its key.
///
/// # Errors
/// A sentence that names the setting that cannot be used.
pub fn provider(config: &Config, key: &str) -> Result<Arc<dyn Provider>, String> {
    let settings = DaytonaSettings {
        api: config.daytona_api.clone(),
        stack: config.stack.clone(),
        stack_id: config.stack_id.clone(),
        image: match config.daytona_snapshot.as_str() {
            "" => Image::Dockerfile(DOCKERFILE.to_owned()),
            snapshot => Image::Snapshot(snapshot.to_owned()),
        },
        limits: config.limits.clone(),
    };
    let sandboxes = DaytonaSandboxes::new(settings, key)
        .map_err(|e| format!("daytona_api of the parameter Overrides: {e}"))?;
    Ok(Arc::new(sandboxes))
}
