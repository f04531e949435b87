//! The clients of a process, built from its configuration and keys.

use std::sync::Arc;

use bobbin_agent::ToolServer;
use bobbin_agent::models::{ModelKeys, ModelSettings};
use bobbin_chat::{ChatSettings, Chats};
use bobbin_cloud::config::{Config, optional};
use bobbin_cloud::secrets::WorkerKeys;
use bobbin_core::base::ids::Tenant;
use bobbin_core::base::secret::Secret;
use bobbin_core::tenant::keys::Key;
use bobbin_sandbox::Provider;

use crate::capped::CappedKeys;
use crate::runtimes;
use crate::sandboxes::{SandboxSettings, Sandboxes};

/// The sandbox clients for this provider, these model keys (a tenant's, if one is named; with what makes capped ones in
/// their place) and this runtime.
///
/// # Errors
/// A sentence that names the unusable setting.
pub(crate) fn sandboxes_with(
    config: &Config,
    keys: &WorkerKeys,
    provider: Arc<dyn Provider>,
    (models, capped): (ModelKeys, Option<Arc<CappedKeys>>),
    (keys_of, recorded): (Option<&Tenant>, Option<&str>),
) -> Result<Sandboxes, String> {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let settings = SandboxSettings {
        stack: config.stack.clone(),
        stack_id: config.stack_id.clone(),
        project_config_of: config.agents.project_config_of.clone(),
        model_keys_inside: config.agents.model_keys_inside,
        keys_of: keys_of.cloned(),
        nudge_url: config.providers.nudge_url.clone(),
        stack_key: keys.of(Key::StackKey).expose().to_owned(),
        files: Chats::files(&chat_settings(config, &|key| keys.of(key))),
        limits: config.limits.clone(),
    };
    let models = ModelSettings {
        model: config.model.clone(),
        models: config.agents.models.clone(),
        model_base_url: some(&config.agents.model_base_url),
        keys: models,
        prices: config.agents.prices.clone(),
    };
    let tools = (!config.tools_url.is_empty()).then(|| ToolServer {
        url: format!("{}/mcp", config.tools_url.trim_end_matches('/')),
        ask: config.agents.tools_ask.clone(),
    });
    let (mode, limits) = (&config.runtime_mode, &config.limits.files);
    let runtime = runtimes::runtime(mode, recorded, &models, limits, tools.as_ref())?;
    let sandboxes = Sandboxes::new(settings, provider, runtime).map_err(|e| e.to_string())?;
    Ok(sandboxes.capping(capped))
}

/// The chats, from configuration and keys.
///
/// # Errors
/// A sentence that names the unusable address.
pub(crate) fn chat(config: &Config, keys: &WorkerKeys) -> Result<Chats, String> {
    Chats::new(&chat_settings(config, &|key| keys.of(key)))
}

fn chat_settings<'a>(config: &'a Config, key: &'a dyn Fn(Key) -> &'a Secret) -> ChatSettings<'a> {
    ChatSettings { overrides: &config.chats, variable: optional, key }
}
