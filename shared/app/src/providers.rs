//! The providers that there are: a further one is a folder of `bobbin-sandbox` and a line here.

use std::sync::Arc;

use bobbin_cloud::config::Config;
use bobbin_core::limits::Limits;
use bobbin_http::HttpError;
use bobbin_sandbox::Provider;
use bobbin_sandbox::daytona::{DaytonaSandboxes, DaytonaSettings, Image};

/// What a sandbox is built from where no snapshot is configured, and what the snapshot is built from.
pub const DOCKERFILE: &str = include_str!("../../../infra/sandbox/Dockerfile");

/// What the providers are called, the stack's first one first.
pub const PROVIDERS: [&str; 1] = ["daytona"];

/// Which provider, and what its sandboxes are made of.
#[derive(Clone, Copy)]
pub struct ProviderSettings<'a> {
    /// Base of its API.
    pub api: &'a str,
    /// Its key. Without one every call says that it is missing.
    pub key: &'a str,
    /// Name of the stack.
    pub stack: &'a str,
    /// The stack's own id.
    pub stack_id: &'a str,
    /// Name of a prepared image; empty builds one.
    pub snapshot: &'a str,
    /// The bounds of every wait, retry and size.
    pub limits: &'a Limits,
}

/// What runs the sandboxes.
///
/// # Errors
/// [`HttpError::Refused`] when the address may not be spoken to.
pub fn provider(settings: &ProviderSettings<'_>) -> Result<Arc<dyn Provider>, HttpError> {
    let daytona = DaytonaSettings {
        api: settings.api.to_owned(),
        stack: settings.stack.to_owned(),
        stack_id: settings.stack_id.to_owned(),
        image: match settings.snapshot {
            "" => Image::Dockerfile(DOCKERFILE.to_owned()),
            snapshot => Image::Snapshot(snapshot.to_owned()),
        },
        limits: settings.limits.clone(),
    };
    Ok(Arc::new(DaytonaSandboxes::new(daytona, settings.key)?))
}

/// The same, as a function is configured.
///
/// # Errors
/// A sentence that names the setting that cannot be used.
pub fn configured(config: &Config, key: &str) -> Result<Arc<dyn Provider>, String> {
    let settings = ProviderSettings {
        api: &config.daytona_api,
        key,
        stack: &config.stack,
        stack_id: &config.stack_id,
        snapshot: &config.daytona_snapshot,
        limits: &config.limits,
    };
    provider(&settings).map_err(|e| format!("daytona_api of the parameter Overrides: {e}"))
}
