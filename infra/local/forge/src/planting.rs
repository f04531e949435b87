//! Makes apps, and the seeds of a first start.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bobbin_local_sandbox::random::token;

use crate::api_error::ApiError;
use crate::limits::{ACCOUNTS_MAX, NAME_CHARS_MAX};
use crate::record::{App, ForgeAccount, Kind, Permissions, Role, Token, TokenOf};
use crate::seeds::{ForgeIdentity, Seeds};
use crate::settings::ForgeStartError;
use crate::state::{ForgeState, SharedEngine, hash};
use crate::web::installing;

/// An app to be made.
pub(crate) struct NewApp {
    pub(crate) name: String,
    pub(crate) owner: u64,
    pub(crate) homepage: String,
    pub(crate) callbacks: Vec<String>,
    pub(crate) setup: Option<String>,
    pub(crate) webhook: Option<String>,
    pub(crate) webhook_secret: String,
    pub(crate) client_secret: String,
    pub(crate) pem: String,
    pub(crate) permissions: Permissions,
    pub(crate) events: Vec<String>,
}

/// A name as addresses have it.
fn slug(name: &str) -> String {
    let letters = name.chars().map(|letter| match letter.to_ascii_lowercase() {
        letter if letter.is_ascii_alphanumeric() => letter,
        _ => '-',
    });
    let text: String = letters.collect();
    let words = text.split('-').filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

/// Makes an app, with the account under whose name it acts.
pub(crate) fn make_app(inner: &mut ForgeState, new: NewApp, now: i64) -> Result<App, ApiError> {
    let slug = slug(&new.name);
    if slug.is_empty() || new.name.chars().count() > NAME_CHARS_MAX {
        return Err(ApiError::unprocessable("Name is invalid"));
    }
    if inner.apps.values().any(|app| app.slug == slug) {
        return Err(ApiError::unprocessable("Name is already taken"));
    }
    if inner.apps.len() >= ACCOUNTS_MAX {
        return Err(ApiError::full("apps"));
    }
    let public = crate::rsa::public(&new.pem).map_err(ApiError::unprocessable)?;
    Ok(add_app(inner, slug, new, STANDARD.encode(public), now))
}

fn add_app(inner: &mut ForgeState, slug: String, new: NewApp, public_key: String, now: i64) -> App {
    let bot = add_account(inner, &format!("{slug}[bot]"), Kind::Bot, None, now);
    let app = App {
        id: inner.new_id(),
        slug,
        name: new.name,
        owner: new.owner,
        bot,
        client_id: format!("Iv23li{}", token(14)),
        client_secret: hash(&new.client_secret),
        public_key,
        homepage: new.homepage,
        callbacks: new.callbacks,
        setup: new.setup,
        webhook: new.webhook,
        webhook_secret: Some(new.webhook_secret),
        permissions: new.permissions,
        events: new.events,
        created_at: now,
    };
    inner.apps.insert(app.id, app.clone());
    app
}

/// An app of a service, made if there is none, and installed on an account. It has no key: nobody signs as it.
pub(crate) fn service_app(
    inner: &mut ForgeState,
    name: &str,
    account: u64,
    now: i64,
) -> Result<App, ApiError> {
    let slug = slug(name);
    if slug.is_empty() || inner.apps.len() >= ACCOUNTS_MAX {
        return Err(ApiError::unprocessable("Name is invalid"));
    }
    let known = inner.apps.values().find(|app| app.slug == slug).cloned();
    let app = known.unwrap_or_else(|| {
        let rights = [("checks", "write"), ("statuses", "write"), ("metadata", "read")];
        let rights = rights.map(|(name, level)| (name.to_owned(), level.to_owned()));
        let new = NewApp {
            name: name.to_owned(),
            owner: account,
            homepage: "https://example.com".to_owned(),
            callbacks: Vec::new(),
            setup: None,
            webhook: None,
            webhook_secret: token(40),
            client_secret: token(40),
            pem: String::new(),
            permissions: rights.into(),
            events: Vec::new(),
        };
        add_app(inner, slug, new, String::new(), now)
    });
    if inner.installed(app.id, account).is_none() {
        installing::add(inner, &app, account, None, now)?;
    }
    Ok(app)
}

/// The person of this login, made if there is none, without a password.
pub(crate) fn person_of(inner: &mut ForgeState, login: &str, now: i64) -> Result<u64, ApiError> {
    match inner.account_of(login) {
        Ok(known) if known.kind == Kind::User => Ok(known.id),
        Ok(_) => Err(ApiError::bad(format!("{login} is no person"))),
        Err(_) if !is_login(login) => Err(ApiError::bad(format!("\"{login}\" is no login"))),
        Err(_) if inner.accounts.len() >= ACCOUNTS_MAX => Err(ApiError::full("accounts")),
        Err(_) => Ok(add_account(inner, login, Kind::User, None, now)),
    }
}

fn add_account(
    inner: &mut ForgeState,
    login: &str,
    kind: Kind,
    password: Option<&str>,
    now: i64,
) -> u64 {
    let id = inner.new_id();
    let account = ForgeAccount {
        id,
        login: login.to_owned(),
        kind,
        created_at: now,
        password: password.map(hash),
        refuses_addresses: false,
        members: BTreeMap::new(),
    };
    inner.accounts.insert(id, account);
    id
}

/// Whether GitHub would take this as a login.
fn is_login(login: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    (1..=39).contains(&login.len())
        && login.chars().all(is_letter)
        && !login.starts_with('-')
        && !login.ends_with('-')
}

/// Makes the seeds, unless an earlier start made them.
///
/// # Errors
/// A seed that cannot be used.
pub(crate) async fn plant(engine: &SharedEngine) -> Result<ForgeIdentity, ForgeStartError> {
    if let Some(identity) = engine.lock().identity.clone() {
        return Ok(identity);
    }
    let seeds = engine.settings.seeds.clone();
    let logins = [&seeds.organization, &seeds.administrator, &seeds.member, &seeds.stranger];
    for (at, login) in logins.iter().enumerate() {
        let is_twice = logins[..at].iter().any(|other| other.eq_ignore_ascii_case(login));
        if !is_login(login) || is_twice {
            return Err(ForgeStartError::Seeds(format!(
                "\"{login}\" is no login, or is there twice"
            )));
        }
    }
    let pem = match seeds.private_key.clone() {
        Some(pem) => Ok(pem),
        // Two large primes take a moment.
        None => tokio::task::spawn_blocking(crate::rsa::generate)
            .await
            .map_err(|error| error.to_string())
            .and_then(|made| made),
    };
    let pem = pem.map_err(ForgeStartError::Seeds)?;
    let refused = |error: ApiError| ForgeStartError::Seeds(error.message);
    engine.change(|inner| planted(inner, seeds, pem, engine.clock.now_ms())).map_err(refused)
}

/// All in one change: a start that fails in the middle leaves nothing.
fn planted(
    inner: &mut ForgeState,
    seeds: Seeds,
    pem: String,
    now: i64,
) -> Result<ForgeIdentity, ApiError> {
    let secret = |given: Option<String>| given.unwrap_or_else(|| token(40));
    let password = secret(seeds.password);
    let user_token = seeds.user_token.unwrap_or_else(|| format!("ghp_{}", token(36)));
    let (client_secret, webhook_secret) =
        (secret(seeds.client_secret), secret(seeds.webhook_secret));
    let organization = add_account(inner, &seeds.organization, Kind::Organization, None, now);
    let [administrator, member, _] = [&seeds.administrator, &seeds.member, &seeds.stranger]
        .map(|login| add_account(inner, login, Kind::User, Some(&password), now));
    if let Some(account) = inner.accounts.get_mut(&organization) {
        account.members.insert(administrator, Role::Admin);
        account.members.insert(member, Role::Member);
    }
    let of = TokenOf::Person { person: administrator, app: None };
    inner.tokens.insert(hash(&user_token), Token { of, created_at: now, expires_at: None });
    let new = NewApp {
        name: seeds.app,
        owner: organization,
        homepage: "https://example.com".to_owned(),
        callbacks: Vec::new(),
        setup: None,
        webhook: None,
        webhook_secret: webhook_secret.clone(),
        client_secret: client_secret.clone(),
        pem: pem.clone(),
        permissions: seeds.permissions,
        events: seeds.events,
    };
    let app = make_app(inner, new, now)?;
    let identity = ForgeIdentity {
        organization: seeds.organization,
        installation: installing::add(inner, &app, organization, None, now)?,
        app_id: app.id,
        app_slug: app.slug.clone(),
        client_id: app.client_id.clone(),
        client_secret,
        private_key: pem,
        webhook_secret,
        administrator: seeds.administrator,
        user_token,
        password,
    };
    inner.identity = Some(identity.clone());
    Ok(identity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_parts_of_addresses() {
        assert_eq!(slug("Bobbin  (dev)!"), "bobbin-dev");
        assert_eq!(slug("…"), "");
        assert!(is_login("ada-1") && !is_login("-ada") && !is_login("a b") && !is_login(""));
    }
}
