//! Installations as the app sees them, and their tokens.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, created, nothing, ok};
use crate::access::Caller;
use crate::api_error::{Answer, ApiError};
use crate::limits::{INSTALLATION_TOKEN_MS, TOKEN_REPOSITORIES_MAX};
use crate::permission;
use crate::record::{
    ForgeAccount, Installation, Kind, Permissions, RepositoryRecord, Token, TokenOf,
};
use crate::state::{ForgeState, hash};
use crate::webhooks;

/// The installation of the path, of the app that calls.
fn own(call: &Call, inner: &ForgeState) -> Result<Installation, ApiError> {
    let Caller::App(app) = call.caller else {
        return Err(ApiError::unauthorized("A JSON web token could not be decoded"));
    };
    let found = inner.installation(call.number("installation_id")?)?;
    if found.app == app { Ok(found.clone()) } else { Err(ApiError::not_found()) }
}

pub(super) async fn list(call: &Call) -> Answer {
    let app = call.app()?;
    let inner = call.engine.lock();
    let own = inner.installations.values().filter(|one| one.app == app.id);
    call.list(own.map(|one| call.show(&inner).installation(one)).collect())
}

pub(super) async fn get(call: &Call) -> Answer {
    let inner = call.engine.lock();
    let found = own(call, &inner)?;
    ok(call.show(&inner).installation(&found))
}

pub(super) async fn delete(call: &Call) -> Answer {
    let found = own(call, &call.engine.lock())?;
    remove(call, &found)?;
    nothing()
}

/// Ends an installation with its tokens, and tells its app.
fn remove(call: &Call, installation: &Installation) -> Result<(), ApiError> {
    crate::web::installing::uninstall(&call.engine, installation.id, installation.account)
}

fn of_account(call: &Call, inner: &ForgeState, account: &ForgeAccount) -> Answer {
    let Caller::App(app) = call.caller else {
        return Err(ApiError::unauthorized("A JSON web token could not be decoded"));
    };
    let found = inner.installed(app, account.id).ok_or_else(ApiError::not_found)?;
    ok(call.show(inner).installation(found))
}

pub(super) async fn of_organization(call: &Call) -> Answer {
    let inner = call.engine.lock();
    let account = inner.organization_of(call.part("org"))?;
    of_account(call, &inner, account)
}

pub(super) async fn of_user(call: &Call) -> Answer {
    let inner = call.engine.lock();
    let account = inner.account_of(call.part("username"))?;
    of_account(call, &inner, account)
}

/// An app may learn of the repositories that it is installed on, under their former names too.
pub(super) async fn of_repository(call: &Call) -> Answer {
    let app = call.app()?;
    let inner = call.engine.lock();
    let (owner, name) = (call.part("owner"), call.part("repo"));
    let here = inner.named(owner, name);
    let found = here.or_else(|| inner.formerly_named(owner, name));
    let found = found.ok_or_else(ApiError::not_found)?;
    let installed = inner.installed(app.id, found.owner).filter(|one| one.holds(found));
    let installed = installed.ok_or_else(ApiError::not_found)?;
    if here.is_none() {
        let status = axum::http::StatusCode::MOVED_PERMANENTLY;
        let at = format!("{}/repositories/{}/installation", call.engine.addresses.api, found.id);
        return Err(ApiError { location: Some(at), ..ApiError::new(status, "Moved Permanently") });
    }
    ok(call.show(&inner).installation(installed))
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct AccessTokenBody {
    repositories: Option<Vec<String>>,
    repository_ids: Option<Vec<u64>>,
    permissions: Option<Permissions>,
}

/// The repositories that are asked for, all of them held.
fn chosen(
    inner: &ForgeState,
    installation: &Installation,
    asked: &AccessTokenBody,
) -> Result<Option<Vec<u64>>, ApiError> {
    let refused = || {
        ApiError::unprocessable(
            "There is at least one repository that does not exist or is not accessible to the parent installation.",
        )
    };
    let mut ids = asked.repository_ids.clone().unwrap_or_default();
    let owner = inner.account(installation.account)?;
    for name in asked.repositories.iter().flatten() {
        ids.push(inner.named(&owner.login, name).ok_or_else(refused)?.id);
    }
    if ids.is_empty() {
        return Ok(None);
    }
    if ids.len() > TOKEN_REPOSITORIES_MAX {
        return Err(ApiError::unprocessable("You can list up to 500 repositories."));
    }
    for id in &ids {
        let held = inner.repository(*id).map_err(|_| refused())?;
        if !installation.holds(held) {
            return Err(refused());
        }
    }
    Ok(Some(ids))
}

/// A token's letters. The newer form has dots and some 500 characters; a header chooses.
fn new_token(app: u64, choice: &str) -> String {
    use bobbin_local_sandbox::random::token;
    if choice == "disabled" {
        return format!("ghs_{}", token(36));
    }
    format!("ghs_{app}_{}.{}.{}", token(36), token(360), token(86))
}

pub(super) async fn mint(call: &Call) -> Answer {
    let asked: AccessTokenBody = call.read()?;
    let now = call.now();
    let (installation, ids, permissions) = {
        let inner = call.engine.lock();
        let found = own(call, &inner)?;
        if found.suspended_at.is_some() {
            return Err(ApiError::suspended());
        }
        let owner = inner.account(found.account)?;
        if owner.refuses_addresses {
            return Err(ApiError::address(&owner.login));
        }
        let permissions = asked.permissions.clone().unwrap_or_else(|| found.permissions.clone());
        if !permission::covers(&found.permissions, &permissions) {
            let told = "The permissions requested are not granted to this installation.";
            return Err(ApiError::unprocessable(told));
        }
        let ids = chosen(&inner, &found, &asked)?;
        (found, ids, permissions)
    };
    // Metadata comes with everything.
    let mut permissions = permissions;
    permissions.entry("metadata".to_owned()).or_insert_with(|| "read".to_owned());
    let token = new_token(installation.app, call.header("x-github-stateless-s2s-token"));
    let expires_at = now + INSTALLATION_TOKEN_MS;
    call.engine.change(|inner| {
        let of = TokenOf::Installation {
            installation: installation.id,
            repositories: ids.clone(),
            permissions: permissions.clone(),
        };
        let record = Token { of, created_at: now, expires_at: Some(expires_at) };
        inner.tokens.insert(hash(&token), record);
        Ok(())
    })?;
    let inner = call.engine.lock();
    let show = call.show(&inner);
    let mut told = json!({
        "token": token, "expires_at": show.time(expires_at), "permissions": permissions,
        "repository_selection": if ids.is_none() && installation.selected.is_none() { "all" } else { "selected" },
    });
    if let Some(ids) = ids {
        let named = ids.iter().filter_map(|id| inner.repository(*id).ok());
        told["repositories"] = named.map(|one| show.repository(one, None)).collect();
    }
    created(told)
}

fn set_suspended(call: &Call, is_suspended: bool) -> Answer {
    let found = own(call, &call.engine.lock())?;
    crate::web::installing::suspend(&call.engine, found.id, found.account, is_suspended)?;
    nothing()
}

pub(super) async fn suspend(call: &Call) -> Answer {
    set_suspended(call, true)
}

pub(super) async fn unsuspend(call: &Call) -> Answer {
    set_suspended(call, false)
}

pub(super) async fn repositories(call: &Call) -> Answer {
    let Caller::Installation { id, repositories, .. } = &call.caller else {
        return Err(ApiError::forbidden(
            "You must authenticate with an installation access token in order to list repositories for an installation.",
        ));
    };
    let inner = call.engine.lock();
    let installation = inner.installation(*id).map_err(|_| ApiError::bad_credentials())?;
    if installation.suspended_at.is_some() {
        return Err(ApiError::suspended());
    }
    let is_named =
        |one: &&RepositoryRecord| repositories.as_ref().is_none_or(|all| all.contains(&one.id));
    let held = inner.repositories.values().filter(|one| installation.holds(one)).filter(is_named);
    let told: Vec<Value> = held.map(|one| call.show(&inner).repository(one, None)).collect();
    let total = told.len();
    let (page, link) = call.page(told)?;
    let selection = if installation.selected.is_none() { "all" } else { "selected" };
    super::linked(
        json!({ "total_count": total, "repository_selection": selection, "repositories": page }),
        link,
    )
}

pub(super) async fn revoke(call: &Call) -> Answer {
    let Caller::Installation { token, .. } = &call.caller else {
        return Err(ApiError::forbidden(
            "You must authenticate with an installation access token in order to revoke it.",
        ));
    };
    call.engine.change(|inner| {
        inner.tokens.remove(token);
        Ok(())
    })?;
    nothing()
}

/// Whether a person administrates an account.
pub(crate) fn administrates(inner: &ForgeState, person: u64, account: u64) -> bool {
    match inner.accounts.get(&account) {
        Some(one) if one.kind == Kind::Organization => {
            one.members.get(&person) == Some(&crate::record::Role::Admin)
        }
        Some(one) => one.id == person,
        None => false,
    }
}

/// Tells an app which repositories an installation gained or lost.
pub(crate) fn tell_of_repositories(
    engine: &crate::state::SharedEngine,
    installation: u64,
    sender: u64,
    action: &'static str,
    repositories: &[u64],
) {
    let name = "installation_repositories";
    webhooks::tell_of_installation(engine, installation, sender, name, action, |show, inner| {
        let named = repositories.iter().filter_map(|id| inner.repository(*id).ok());
        let named: Value = named.map(|one| show.short(one)).collect();
        let is_all = inner.installation(installation).is_ok_and(|one| one.selected.is_none());
        let (added, removed) =
            if action == "added" { (named, json!([])) } else { (json!([]), named) };
        vec![
            ("repository_selection", if is_all { "all" } else { "selected" }.into()),
            ("repositories_added", added),
            ("repositories_removed", removed),
            ("requester", Value::Null),
        ]
    });
}
