//! A sandbox without an agent: it is used through tools, and has neither server nor key.

use std::sync::Arc;

use bobbin_core::base::endpoint::Endpoint;
use bobbin_core::base::failure::Failure;
use bobbin_http::Http;

use crate::runtime::{Agent, LaunchInputs, ModelKey, Refresh, Runtime, RuntimeFacts, ServerLaunch};

/// Prepares the project's folder, with a new repository if none was cloned.
pub(crate) const PREPARE: &str = include_str!("prepare.sh");

/// A runtime without an agent. A caller that asks one anyway meets a server that does not answer.
#[derive(Debug)]
pub struct Bare<R>(R);

impl<R: Runtime> Bare<R> {
    /// Replaces `server` with nothing.
    #[must_use]
    pub const fn instead_of(server: R) -> Self {
        Self(server)
    }
}

impl<R: Runtime> Runtime for Bare<R> {
    fn facts(&self) -> RuntimeFacts<'_> {
        RuntimeFacts {
            has_server: false,
            providers: &[],
            fit_workspace: String::from(":"),
            last_words: ":",
            ..self.0.facts()
        }
    }

    fn keys(&self) -> Result<Vec<ModelKey>, Failure> {
        Ok(Vec::new())
    }

    fn launch(&self, _: LaunchInputs<'_>) -> Result<ServerLaunch, Failure> {
        Ok(ServerLaunch {
            script: PREPARE.to_owned(),
            environment: std::collections::BTreeMap::new(),
            refusals: &[],
        })
    }

    fn connect(
        &self,
        http: Http,
        endpoint: Endpoint,
        password: &str,
        refresh: Refresh,
    ) -> Arc<dyn Agent> {
        self.0.connect(http, endpoint, password, refresh)
    }
}
