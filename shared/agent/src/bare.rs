//! A sandbox without an agent: it is worked in by tools, and has neither server nor key.

use std::sync::Arc;

use bobbin_core::base::endpoint::Endpoint;
use bobbin_core::base::failure::Failure;
use bobbin_http::Http;

use crate::opencode::OpenCodeRuntime;
use crate::runtime::{Agent, Launch, LaunchInputs, ModelKey, Refresh, Runtime, RuntimeFacts};

/// Makes the project's folder fit for work, with a repository of its own where none was cloned.
pub(crate) const PREPARE: &str = include_str!("prepare.sh");

/// What runs no agent. Whoever asks one all the same meets a server that does not answer.
#[derive(Debug)]
pub struct Bare(OpenCodeRuntime);

impl Bare {
    /// Where `server` would be is nothing.
    #[must_use]
    pub const fn instead_of(server: OpenCodeRuntime) -> Self {
        Self(server)
    }
}

impl Runtime for Bare {
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

    fn launch(&self, _: LaunchInputs<'_>) -> Result<Launch, Failure> {
        Ok(Launch {
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
