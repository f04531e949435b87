//! People and apps that a test acts as.

use bobbin_local_sandbox::random::token;
use serde::Deserialize;
use serde_json::json;

use super::ok;
use crate::api_error::{Answer, ApiError};
use crate::planting::{person_of, service_app};
use crate::record::{Permissions, Token, TokenOf};
use crate::rest::body;
use crate::reviews::threads;
use crate::state::{SharedEngine, hash};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Person {
    login: String,
}

/// A person of this login, made if there is none, with a new personal token.
pub(super) fn person(engine: &SharedEngine, text: &[u8]) -> Answer {
    let Person { login } = body::read(text)?;
    let (now, secret) = (engine.clock.now_ms(), format!("ghp_{}", token(36)));
    let id = engine.change(|inner| {
        let id = person_of(inner, &login, now)?;
        let of = TokenOf::Person { person: id, app: None };
        inner.tokens.insert(hash(&secret), Token { of, created_at: now, expires_at: None });
        Ok(id)
    })?;
    ok(json!({ "id": id, "login": login, "token": secret }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServiceApp {
    name: String,
    owner: String,
    #[serde(default)]
    permissions: Permissions,
    #[serde(default)]
    events: Vec<String>,
    webhook: Option<String>,
}

/// An app of this name, made if there is none and installed on its owner, with a new token for all that it holds.
pub(super) fn app(engine: &SharedEngine, text: &[u8]) -> Answer {
    let ServiceApp { name, owner, permissions, events, webhook } = body::read(text)?;
    let (now, secret) = (engine.clock.now_ms(), format!("ghs_{}", token(36)));
    let (id, slug, installation) = engine.change(|inner| {
        let owner = inner.account_of(&owner)?.id;
        let made = service_app(inner, &name, owner, now)?;
        let installed = inner.installed(made.id, owner).map(|one| one.id);
        let installation = installed.ok_or_else(ApiError::not_found)?;
        let of = TokenOf::Installation {
            installation,
            repositories: None,
            permissions: permissions.clone(),
        };
        inner.tokens.insert(hash(&secret), Token { of, created_at: now, expires_at: None });
        if let Some(app) = inner.apps.get_mut(&made.id) {
            (app.permissions, app.events) = (permissions.clone(), events.clone());
            app.webhook = webhook;
        }
        if let Some(one) = inner.installations.get_mut(&installation) {
            (one.permissions, one.events) = (permissions, events);
        }
        Ok((made.id, made.slug, installation))
    })?;
    ok(json!({ "id": id, "slug": slug, "installation": installation, "token": secret }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThreadPress {
    login: String,
    /// Any comment of the thread.
    comment: u64,
    resolved: bool,
}

/// A person's press on the page of a pull request: a thread is resolved, or opened again.
pub(super) fn settle(engine: &SharedEngine, text: &[u8]) -> Answer {
    let ThreadPress { login, comment, resolved } = body::read(text)?;
    let (person, thread) = {
        let inner = engine.lock();
        (inner.account_of(&login)?.id, inner.talk.comment(comment)?.thread)
    };
    threads::resolve(engine, thread, person, resolved)?;
    ok(json!({ "thread": thread, "resolved": resolved }))
}
