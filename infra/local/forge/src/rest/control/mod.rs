//! Test controls: the clock, faults, an installation's rights, an organisation's address list and plan.

mod checks;
mod hooks;
mod people;

use axum::body::to_bytes;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use bobbin_local_breakpoint::ControlKey;
use bobbin_local_sandbox::faults::Armed;
use serde::Deserialize;
use serde_json::json;

use super::{body, ok};
use crate::api_error::{Answer, ApiError};
use crate::limits::BODY_BYTES_MAX;
use crate::pulls::queue::leave;
use crate::record::Permissions;
use crate::state::{NoFault, SharedEngine};
use crate::webhooks;

#[derive(Deserialize)]
struct Advance {
    advance_ms: u64,
}

#[derive(Deserialize)]
struct Arm {
    faults: Vec<Armed<NoFault>>,
}

/// The owner's answer to rights that an app asks for.
#[derive(Deserialize)]
struct Grant {
    id: u64,
    permissions: Permissions,
}

#[derive(Deserialize)]
struct Addresses {
    organization: String,
    refused: bool,
}

/// What a repository offers depends on its owner's plan; how soon a merge is tried, on how busy the forge is.
#[derive(Deserialize)]
struct Offered {
    repository: String,
    drafts: Option<bool>,
    unknown_looks: Option<u64>,
}

pub(super) async fn answer(engine: &SharedEngine, path: &str, request: Request) -> Response {
    if !engine.settings.control_key.is_said(request.headers()) {
        return ControlKey::refusal();
    }
    let method = request.method().clone();
    let Ok(text) = to_bytes(request.into_body(), BODY_BYTES_MAX).await else {
        return ApiError::bad("The body is too large").into_response();
    };
    let done = match (method.as_str(), path) {
        ("POST", "clock") => clock(engine, &text),
        ("POST", "faults") => arm(engine, &text),
        ("GET", "faults") => told(engine),
        ("DELETE", "faults") => {
            engine.faults.clear();
            told(engine)
        }
        ("POST", "installation") => grant(engine, &text),
        ("POST", "addresses") => addresses(engine, &text),
        ("POST", "repository") => offer(engine, &text),
        ("POST", "checks") => checks::say(engine, &text).await,
        ("POST", "person") => people::person(engine, &text),
        ("POST", "thread") => people::settle(engine, &text),
        ("POST", "queue") => queue(engine, &text).await,
        ("GET", "hooks") => hooks::told(engine),
        ("POST", "hooks") => hooks::arm(engine, &text),
        ("DELETE", "hooks") => hooks::clear(engine),
        ("POST", "hooks/release") => hooks::release(engine),
        ("POST", "hooks/forged") => hooks::forge(engine, &text),
        ("POST", "app") => people::app(engine, &text),
        _ => Err(ApiError::not_found()),
    };
    done.unwrap_or_else(|error| error.into_response())
}

/// The repository that a test names by `owner/name`.
fn named(engine: &SharedEngine, full_name: &str) -> Result<u64, ApiError> {
    let inner = engine.lock();
    let found = full_name.split_once('/').and_then(|(owner, name)| inner.named(owner, name));
    Ok(found.ok_or_else(ApiError::not_found)?.id)
}

fn clock(engine: &SharedEngine, text: &[u8]) -> Answer {
    let Advance { advance_ms } = body::read(text)?;
    engine.clock.advance(advance_ms);
    ok(json!({ "now_ms": engine.clock.now_ms() }))
}

fn arm(engine: &SharedEngine, text: &[u8]) -> Answer {
    let Arm { faults } = body::read(text)?;
    engine.faults.arm(faults).map_err(ApiError::bad)?;
    told(engine)
}

fn told(engine: &SharedEngine) -> Answer {
    ok(json!({ "faults": engine.faults.list() }))
}

fn grant(engine: &SharedEngine, text: &[u8]) -> Answer {
    let Grant { id, permissions } = body::read(text)?;
    let now = engine.clock.now_ms();
    let account = engine.change(|inner| {
        let one = inner.installations.get_mut(&id).ok_or_else(ApiError::not_found)?;
        (one.permissions, one.updated_at) = (permissions, now);
        Ok(one.account)
    })?;
    let action = "new_permissions_accepted";
    webhooks::tell_of_installation(engine, id, account, "installation", action, |_, _| Vec::new());
    ok(json!({ "id": id }))
}

fn addresses(engine: &SharedEngine, text: &[u8]) -> Answer {
    let Addresses { organization, refused } = body::read(text)?;
    engine.change(|inner| {
        let id = inner.organization_of(&organization)?.id;
        let one = inner.accounts.get_mut(&id).ok_or_else(ApiError::not_found)?;
        one.refuses_addresses = refused;
        Ok(())
    })?;
    ok(json!({ "organization": organization, "refused": refused }))
}

#[derive(Deserialize)]
struct QueueExit {
    repository: String,
    number: u64,
    merged: bool,
}

async fn queue(engine: &SharedEngine, text: &[u8]) -> Answer {
    let QueueExit { repository, number, merged } = body::read(text)?;
    let id = named(engine, &repository)?;
    leave(engine, id, number, merged).await?;
    ok(json!({ "repository": repository, "number": number }))
}

fn offer(engine: &SharedEngine, text: &[u8]) -> Answer {
    let Offered { repository, drafts, unknown_looks } = body::read(text)?;
    let id = named(engine, &repository)?;
    engine.change(|inner| {
        let record = inner.repository_mut(id)?;
        record.has_no_drafts = drafts.map_or(record.has_no_drafts, |drafts| !drafts);
        record.unknown_looks = unknown_looks.unwrap_or(record.unknown_looks);
        Ok(())
    })?;
    ok(json!({ "repository": repository }))
}
