//! People: who they are, what they belong to, and their tokens for an app.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, installations::administrates, nothing, ok};
use crate::access::Caller;
use crate::api_error::{Answer, ApiError};
use crate::limits::ANONYMOUS_REQUESTS_MAX;
use crate::permission::{Level, of_person};
use crate::record::{App, Installation, RepositoryRecord, TokenOf};
use crate::state::{ForgeState, hash};
use crate::web::signing_in::revoke_grant;

pub(super) async fn own(call: &Call) -> Answer {
    let person = call.person()?;
    let inner = call.engine.lock();
    ok(call.show(&inner).own_profile(inner.account(person)?))
}

pub(super) async fn get(call: &Call) -> Answer {
    let inner = call.engine.lock();
    ok(call.show(&inner).profile(inner.account_of(call.part("username"))?))
}

pub(super) async fn membership(call: &Call) -> Answer {
    let person = call.person()?;
    let inner = call.engine.lock();
    let organization = inner.organization_of(call.part("org"))?;
    // An app reads memberships only where it is installed and may.
    if let Caller::Person { app: Some(app), .. } = call.caller {
        let installed = inner.installed(app, organization.id);
        let installed = installed.ok_or_else(ApiError::integration)?;
        if crate::permission::level(&installed.permissions, "members") == Level::None {
            return Err(ApiError::integration());
        }
    }
    let role = *organization.members.get(&person).ok_or_else(ApiError::not_found)?;
    ok(call.show(&inner).membership(organization, inner.account(person)?, role))
}

/// Whether a person sees an installation: something that it holds is the person's to read.
fn sees(inner: &ForgeState, person: u64, installation: &Installation) -> bool {
    let belongs = inner.accounts.get(&installation.account);
    let belongs = belongs.is_some_and(|one| one.id == person || one.members.contains_key(&person));
    belongs || readable(inner, person, installation).next().is_some()
}

fn readable<'a>(
    inner: &'a ForgeState,
    person: u64,
    installation: &'a Installation,
) -> impl Iterator<Item = (&'a RepositoryRecord, Level)> {
    let held = inner.repositories.values().filter(|one| installation.holds(one));
    held.filter_map(move |one| {
        let level = of_person(person, one, inner.accounts.get(&one.owner)?);
        (level > Level::None).then_some((one, level))
    })
}

/// The app for which the caller signed in.
fn app_of(call: &Call) -> Result<(u64, u64), ApiError> {
    match call.caller {
        Caller::Person { id, app: Some(app), .. } => Ok((id, app)),
        _ => Err(ApiError::forbidden(
            "You must authenticate with an access token authorized to a GitHub App in order to list installations",
        )),
    }
}

pub(super) async fn installations(call: &Call) -> Answer {
    let (person, app) = app_of(call)?;
    let inner = call.engine.lock();
    let own = inner.installations.values().filter(|one| one.app == app);
    let seen = own.filter(|one| sees(&inner, person, one));
    call.counted_list(
        "installations",
        seen.map(|one| call.show(&inner).installation(one)).collect(),
    )
}

pub(super) async fn installation_repositories(call: &Call) -> Answer {
    let (person, app) = app_of(call)?;
    let inner = call.engine.lock();
    let found = inner.installation(call.number("installation_id")?)?;
    if found.app != app || !sees(&inner, person, found) {
        return Err(ApiError::not_found());
    }
    let told = readable(&inner, person, found)
        .map(|(one, level)| call.show(&inner).repository(one, Some(level)));
    call.counted_list("repositories", told.collect())
}

/// Changes which repositories an installation holds, by a personal token of somebody who administrates them.
fn choose(call: &Call, is_added: bool) -> Answer {
    let person = call.person()?;
    let (id, repository) = (call.number("installation_id")?, call.number("repository_id")?);
    let now = call.now();
    call.engine.change(|inner| {
        let account = inner.installation(id)?.account;
        if !administrates(inner, person, account) || inner.repository(repository)?.owner != account
        {
            return Err(ApiError::not_found());
        }
        let one = inner.installations.get_mut(&id).ok_or_else(ApiError::not_found)?;
        let Some(chosen) = &mut one.selected else {
            return Err(ApiError::unprocessable(
                "This installation has access to all repositories",
            ));
        };
        chosen.retain(|other| *other != repository);
        if is_added {
            chosen.push(repository);
        }
        one.updated_at = now;
        Ok(())
    })?;
    let action = if is_added { "added" } else { "removed" };
    super::installations::tell_of_repositories(&call.engine, id, person, action, &[repository]);
    nothing()
}

pub(super) async fn add_repository(call: &Call) -> Answer {
    choose(call, true)
}

pub(super) async fn remove_repository(call: &Call) -> Answer {
    choose(call, false)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AccessToken {
    access_token: String,
}

/// The person and the hash of a token of this app that is valid.
fn token_of(call: &Call, app: &App) -> Result<(u64, String), ApiError> {
    let AccessToken { access_token } = call.read()?;
    let key = hash(&access_token);
    let inner = call.engine.lock();
    let now = call.now();
    let found = inner.tokens.get(&key).filter(|one| one.expires_at.is_none_or(|end| end > now));
    match found.map(|one| &one.of) {
        Some(TokenOf::Person { person, app: Some(of) }) if *of == app.id => Ok((*person, key)),
        _ => Err(ApiError::not_found()),
    }
}

pub(super) async fn check_token(call: &Call) -> Answer {
    let app = call.client()?;
    let AccessToken { access_token } = call.read()?;
    let (person, key) = token_of(call, &app)?;
    let inner = call.engine.lock();
    let show = call.show(&inner);
    let token = inner.tokens.get(&key).ok_or_else(ApiError::not_found)?;
    let last = &access_token[access_token.len().saturating_sub(8)..];
    ok(json!({
        "id": app.id, "url": format!("{}/authorizations/{}", call.engine.addresses.api, app.id),
        "app": { "client_id": app.client_id, "name": app.name, "url": app.homepage },
        "token": access_token, "hashed_token": key, "token_last_eight": last, "note": null, "note_url": null,
        "created_at": show.time(token.created_at), "updated_at": show.time(token.created_at), "scopes": [],
        "fingerprint": null, "user": show.user_of(person),
        "expires_at": token.expires_at.map(|end| show.time(end)),
    }))
}

pub(super) async fn delete_token(call: &Call) -> Answer {
    let app = call.client()?;
    let (_, key) = token_of(call, &app)?;
    call.engine.change(|inner| {
        inner.tokens.remove(&key);
        let is_its = |of: &TokenOf| matches!(of, TokenOf::Refresh { pair, .. } if *pair == key);
        inner.tokens.retain(|_, token| !is_its(&token.of));
        Ok(())
    })?;
    nothing()
}

pub(super) async fn delete_grant(call: &Call) -> Answer {
    let app = call.client()?;
    let (person, _) = token_of(call, &app)?;
    revoke_grant(&call.engine, person, app.id)?;
    nothing()
}

pub(super) async fn rate_limit(call: &Call) -> Answer {
    let limit = match call.caller {
        Caller::Nobody => ANONYMOUS_REQUESTS_MAX,
        _ => call.engine.settings.requests_max,
    };
    let rate = call.engine.rate(&call.caller.counted_as(), limit, false);
    let points = call.engine.rate(&call.caller.points_counted_as(), limit, false);
    let told = |limit: u64, used: u64| {
        json!({
            "limit": limit, "used": used, "remaining": limit.saturating_sub(used), "reset": rate.ends_at / 1_000,
        })
    };
    let core: Value = told(rate.limit, rate.used);
    ok(
        json!({ "resources": { "core": core, "search": told(30, 0), "graphql": told(points.limit, points.used) }, "rate": core }),
    )
}
