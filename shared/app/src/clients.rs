//! The clients of a process, built from its configuration and keys.

use std::sync::Arc;

use bobbin_agent::opencode::ToolServer;
use bobbin_agent::opencode::models::{ModelKeys, ModelSettings};
use bobbin_chat::Chats;
use bobbin_cloud::config::Config;
use bobbin_cloud::secrets::WorkerKeys;
use bobbin_core::base::ids::Tenant;
use bobbin_sandbox::Provider;

use crate::runtimes;
use crate::sandboxes::{SandboxSettings, Sandboxes};

/// The sandbox clients for this provider, these model keys (a tenant's, if one is named) and this runtime.
///
/// # Errors
/// A sentence that names the unusable setting.
pub(crate) fn sandboxes_with(
    config: &Config,
    keys: &WorkerKeys,
    provider: Arc<dyn Provider>,
    models: ModelKeys,
    (keys_of, recorded): (Option<&Tenant>, Option<&str>),
) -> Result<Sandboxes, String> {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let settings = SandboxSettings {
        stack: config.stack.clone(),
        stack_id: config.stack_id.clone(),
        project_config_of: config.project_config_of.clone(),
        model_keys_inside: config.model_keys_inside,
        keys_of: keys_of.cloned(),
        nudge_url: config.nudge_url.clone(),
        stack_key: keys.stack.stack_key.expose().to_owned(),
        discord_api: config.discord_api.clone(),
        slack_api: config.slack_api.clone(),
        slack_bot_token: some(keys.worker.slack_bot_token.expose()),
        limits: config.limits.clone(),
    };
    let models = ModelSettings {
        model: config.model.clone(),
        models: config.models.clone(),
        model_base_url: some(&config.model_base_url),
        keys: models,
    };
    let tools = (!config.tools_url.is_empty()).then(|| ToolServer {
        url: format!("{}/mcp", config.tools_url.trim_end_matches('/')),
        ask: config.tools_ask.clone(),
    });
    let (mode, limits) = (&config.runtime_mode, &config.limits.files);
    let runtime = runtimes::runtime(mode, recorded, &models, limits, tools.as_ref())?;
    Sandboxes::new(settings, provider, runtime).map_err(|e| e.to_string())
}

/// The chats, from configuration and keys.
///
/// # Errors
/// A sentence that names the unusable address.
pub(crate) fn chat(config: &Config, keys: &WorkerKeys) -> Result<Chats, String> {
    Chats::new(&bobbin_chat::ChatSettings {
        discord_api: &config.discord_api,
        discord_application: &config.discord_application_id,
        discord_bot_token: keys.worker.discord_bot_token.expose(),
        slack_api: &config.slack_api,
        slack_bot_token: keys.worker.slack_bot_token.expose(),
        slack_stream_answers: config.slack_stream_answers,
    })
}
