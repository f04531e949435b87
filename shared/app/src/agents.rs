//! The agents of sandboxes, reached through the provider: by the worker that drives a run, and by clients that only
//! listen to one.

use std::sync::Arc;

use bobbin_agent::models::{ModelKeys, ModelSettings};
use bobbin_agent::{Agent, Refresh, Runtime, ToolServer, server_http};
use bobbin_core::base::failure::Failure;
use bobbin_core::base::limits::FileLimits;
use bobbin_core::base::names::sandbox_password;
use bobbin_core::tenant::prices::ModelPrices;
use bobbin_http::Http;
use bobbin_sandbox::Provider;

use crate::runtimes;

/// A runtime for clients that start no server: it has no model key. It is the runtime that the sandbox's record names,
/// in a stack configured like this one.
///
/// # Errors
/// What is wrong with the mode or the model's name.
pub fn listening(
    configured: &str,
    recorded: Option<&str>,
    model: &str,
) -> Result<Arc<dyn Runtime>, String> {
    let models = ModelSettings {
        model: model.to_owned(),
        models: Vec::new(),
        model_base_url: None,
        keys: ModelKeys::default(),
        prices: ModelPrices::new(),
    };
    // Listening needs none of them.
    let tools = ToolServer { url: String::new(), ask: Vec::new() };
    let limits = &FileLimits::DEFAULT;
    runtimes::runtime(configured, recorded, &models, limits, Some(&tools))
}

/// The agent of the sandbox with this name. No request is sent yet.
///
/// # Errors
/// The class of the failure.
pub async fn connect(
    provider: &Arc<dyn Provider>,
    runtime: &dyn Runtime,
    sandbox: &str,
    stack_key: &str,
) -> Result<Arc<dyn Agent>, Failure> {
    let http = server_http(provider.facts().base)
        .map_err(|e| Failure::NonRecoverable { advice: e.to_string() })?;
    connect_over(http, provider, runtime, sandbox, stack_key).await
}

/// Like [`connect`], over existing connections.
pub(crate) async fn connect_over(
    http: Http,
    provider: &Arc<dyn Provider>,
    runtime: &dyn Runtime,
    sandbox: &str,
    stack_key: &str,
) -> Result<Arc<dyn Agent>, Failure> {
    let port = runtime.facts().port;
    let endpoint = provider.endpoint(sandbox, port).await;
    let endpoint = endpoint.map_err(|e| e.failure)?;
    let (again, name) = (Arc::clone(provider), sandbox.to_owned());
    let refresh: Refresh = Arc::new(move || {
        let (provider, name) = (Arc::clone(&again), name.clone());
        Box::pin(async move { Ok(provider.endpoint(&name, port).await?) })
    });
    let password = sandbox_password(stack_key, sandbox);
    Ok(runtime.connect(http, endpoint, &password, refresh))
}
