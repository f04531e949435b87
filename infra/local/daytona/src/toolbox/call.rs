//! How the toolbox's handlers call a sandbox's first process, and the environment of its commands.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::Value;

use crate::api_error::ApiError;
use crate::engine::SharedEngine;
use crate::http::{ApiResult, SKIP_ACTIVITY};
use crate::init::protocol::{Environment, Op};

/// The sandbox of a toolbox request.
pub(super) struct ToolboxSandbox {
    pub(super) engine: SharedEngine,
    pub(super) id: String,
    is_activity: bool,
}

#[derive(Deserialize)]
struct SandboxPath {
    sandbox: String,
}

impl FromRequestParts<SharedEngine> for ToolboxSandbox {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        engine: &SharedEngine,
    ) -> Result<Self, Response> {
        let path = Path::<SandboxPath>::from_request_parts(parts, engine).await;
        let Path(SandboxPath { sandbox: id }) = path.map_err(IntoResponse::into_response)?;
        Ok(ToolboxSandbox {
            engine: engine.clone(),
            id,
            is_activity: !parts.headers.contains_key(SKIP_ACTIVITY),
        })
    }
}

impl ToolboxSandbox {
    /// One call to its first process; it must be started.
    pub(super) async fn call(&self, op: Op) -> Result<Value, ApiError> {
        let (_, process) = self.engine.store.running(&self.id)?;
        if self.is_activity {
            self.engine.touch(&self.id);
        }
        match process.call(op).await {
            Some(Ok(value)) => Ok(value),
            Some(Err(refusal)) => {
                Err(ApiError::new(refusal.status, refusal.message).code(&refusal.code))
            }
            None => Err(ApiError::not_started(&self.id)),
        }
    }

    /// Like `call`, with the reply as the answer.
    pub(super) async fn answer(&self, op: Op) -> ApiResult {
        json(self.call(op).await?)
    }

    /// A process's environment: variables from creation, secret placeholders, the call's own.
    pub(super) fn environment(&self, own: Environment) -> Environment {
        let inner = self.engine.store.lock();
        let mut all = Environment::new();
        if let Some(entry) = inner.sandboxes.get(&self.id) {
            let secrets = entry.record.secrets.iter().filter_map(|(variable, name)| {
                let mut secrets = inner.secrets.values();
                let secret = secrets.find(|secret| secret.name == *name)?;
                Some((variable.clone(), secret.placeholder.clone()))
            });
            all.extend(entry.record.env.clone());
            all.extend(secrets);
        }
        all.extend(own);
        all
    }
}

/// Answers a value as JSON.
pub(super) fn json(value: Value) -> ApiResult {
    Ok(axum::Json(value).into_response())
}
