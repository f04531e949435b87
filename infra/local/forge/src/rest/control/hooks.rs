//! Webhooks as a test wants them: late, twice, out of order, lost, with another secret, forged.

use serde::Deserialize;
use serde_json::{Value, json};

use super::ok;
use crate::api_error::{Answer, ApiError};
use crate::rest::body;
use crate::state::SharedEngine;
use crate::webhooks::faults::ArmedHook;
use crate::webhooks::sending;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ArmHooks {
    faults: Vec<ArmedHook>,
}

pub(super) fn told(engine: &SharedEngine) -> Answer {
    let faults = &engine.hook_faults;
    ok(json!({ "faults": faults.list(), "waiting": faults.waiting() }))
}

pub(super) fn arm(engine: &SharedEngine, text: &[u8]) -> Answer {
    let ArmHooks { faults } = body::read(text)?;
    engine.hook_faults.arm(faults)?;
    told(engine)
}

/// Sends the late webhooks.
pub(super) fn release(engine: &SharedEngine) -> Answer {
    sending::all(engine, engine.hook_faults.release());
    told(engine)
}

/// Sends everything that is held, and disarms.
pub(super) fn clear(engine: &SharedEngine) -> Answer {
    sending::all(engine, engine.hook_faults.clear());
    told(engine)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Forged {
    event: String,
    payload: Value,
    /// Unsigned without one.
    secret: Option<String>,
    /// Slug; the seeded app unless it is named.
    app: Option<String>,
}

/// Sends what a stranger would.
pub(super) fn forge(engine: &SharedEngine, text: &[u8]) -> Answer {
    let Forged { event, payload, secret, app } = body::read(text)?;
    let app = {
        let inner = engine.lock();
        let seeded = inner.identity.as_ref().map(|one| one.app_slug.clone());
        let slug = app.or(seeded).unwrap_or_default();
        let found = inner.apps.values().find(|one| one.slug == slug);
        found.ok_or_else(ApiError::not_found)?.clone()
    };
    sending::forge(engine, &app, (&event, &payload), secret.as_deref());
    ok(json!({ "event": event }))
}
