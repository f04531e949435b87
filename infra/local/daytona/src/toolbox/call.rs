//! How the toolbox's handlers ask a sandbox's first process, and with what variables it runs commands.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::Value;

use crate::api_error::ApiError;
use crate::engine::SharedEngine;
use crate::http::{Answer, SKIP_ACTIVITY};
use crate::init::protocol::{Environment, Op};

/// The sandbox that a request of the toolbox is for.
pub(super) struct Sandbox {
    pub(super) engine: SharedEngine,
    pub(super) id: String,
    is_activity: bool,
}

#[derive(Deserialize)]
struct SandboxPath {
    sandbox: String,
}

impl FromRequestParts<SharedEngine> for Sandbox {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        engine: &SharedEngine,
    ) -> Result<Self, Response> {
        let path = Path::<SandboxPath>::from_request_parts(parts, engine).await;
        let Path(SandboxPath { sandbox: id }) = path.map_err(IntoResponse::into_response)?;
        Ok(Sandbox {
            engine: engine.clone(),
            id,
            is_activity: !parts.headers.contains_key(SKIP_ACTIVITY),
        })
    }
}

impl Sandbox {
    /// One call into it, which it must be started for.
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

    /// A call whose reply is the answer as it came.
    pub(super) async fn answer(&self, op: Op) -> Answer {
        json(self.call(op).await?)
    }

    /// The variables of a process: the create-time ones, secret placeholders, those of the call.
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

/// Answers a value as it is.
pub(super) fn json(value: Value) -> Answer {
    Ok(axum::Json(value).into_response())
}
