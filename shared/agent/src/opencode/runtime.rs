//! OpenCode as a [`Runtime`]: its server's configuration, its start, and the client that reaches it.

use std::sync::Arc;

use bobbin_core::base::endpoint::Endpoint;
use bobbin_core::base::failure::Failure;
use bobbin_http::Http;

use super::client::{OpenCode, Via};
use super::launch;
use super::outside;
use super::request::server_config;
use crate::models::{ModelSettings, Models};
use crate::runtime::{
    Agent, LaunchInputs, ModelKey, Refresh, Runtime, RuntimeFacts, ServerLaunch, ToolServer,
};

/// OpenCode, with the models of a stack.
#[derive(Debug)]
pub struct OpenCodeRuntime {
    models: Arc<Models>,
    via: Via,
    tools: Option<ToolServer>,
}

impl OpenCodeRuntime {
    /// OpenCode with these models.
    ///
    /// # Errors
    /// What is wrong with a model's name.
    pub fn new(settings: &ModelSettings) -> Result<Self, String> {
        let models = Arc::new(Models::new(settings)?);
        Ok(Self { models, via: Via::Server, tools: None })
    }

    /// Works in another sandbox through these tools.
    #[must_use]
    pub fn working_by(self, tools: ToolServer) -> Self {
        Self { tools: Some(tools), ..self }
    }

    /// Reached through `via`. The store and its sessions are the same either way.
    #[must_use]
    pub fn reached(self, via: Via) -> Self {
        Self { via, ..self }
    }
}

/// Port of its server inside a sandbox.
const PORT: u16 = 4096;

impl Runtime for OpenCodeRuntime {
    fn facts(&self) -> RuntimeFacts<'_> {
        RuntimeFacts {
            port: PORT,
            has_server: true,
            providers: self.models.providers(),
            fit_workspace: launch::fit_workspace(),
            last_words: launch::LAST_WORDS,
        }
    }

    fn keys(&self) -> Result<Vec<ModelKey>, Failure> {
        self.models.for_server().map(|served| served.keys)
    }

    fn launch(&self, inputs: LaunchInputs<'_>) -> Result<ServerLaunch, Failure> {
        let served = self.models.for_server()?;
        let endpoint = served.endpoint.as_ref();
        let mut config =
            server_config(&served.default, &served.providers, endpoint, &served.prices);
        let Some(tools) = &self.tools else {
            return Ok(launch::launch(self.via, inputs, &config));
        };
        outside::configured(&mut config, tools);
        let launch = launch::launch(self.via, inputs, &config);
        Ok(outside::with_bearer(launch, inputs.tools_bearer))
    }

    fn connect(
        &self,
        http: Http,
        endpoint: Endpoint,
        password: &str,
        refresh: Refresh,
    ) -> Arc<dyn Agent> {
        let client = OpenCode::over(self.via, http, endpoint, password)
            .refreshed_by(refresh)
            .with_models(Arc::clone(&self.models));
        Arc::new(if self.tools.is_some() { client.with_tools() } else { client })
    }
}
