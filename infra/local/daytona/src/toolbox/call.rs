//! How the toolbox's handlers ask a sandbox's first process, and with what variables it runs commands.

use axum::extract::Path;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use serde_json::Value;

use crate::api_error::ApiError;
use crate::engine::Engine;
use crate::http::{Answer, EngineState, SKIP_ACTIVITY};
use crate::init::protocol::{Environment, Op};

/// What a handler of one sandbox is given.
pub(super) type Sandbox = (EngineState, Path<String>);

/// One call into a started sandbox, which counts as activity.
pub(super) async fn call(
    engine: &Engine,
    id: &str,
    request: &HeaderMap,
    op: Op,
) -> Result<Value, ApiError> {
    let (_, process) = engine.store.running(id)?;
    if !request.contains_key(SKIP_ACTIVITY) {
        engine.touch(id);
    }
    match process.call(op).await {
        Some(Ok(value)) => Ok(value),
        Some(Err(refusal)) => {
            Err(ApiError::new(refusal.status, refusal.message).code(&refusal.code))
        }
        None => Err(ApiError::not_started(id)),
    }
}

/// The variables of a process: the create-time ones, secret placeholders, those of the call.
pub(super) fn environment(engine: &Engine, id: &str, own: Environment) -> Environment {
    let inner = engine.store.lock();
    let mut all = Environment::new();
    if let Some(entry) = inner.sandboxes.get(id) {
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

/// Answers the value as it came.
pub(super) fn json(value: Value) -> Answer {
    Ok(axum::Json(value).into_response())
}
