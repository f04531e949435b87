//! Making an app from a manifest, which another page sends.

use std::collections::BTreeMap;

use bobbin_local_sandbox::random::token;
use serde::Deserialize;

use super::{PageAnswer, PageRequest, html, see, session, with_parameters};
use crate::api_error::ApiError;
use crate::limits::{MANIFEST_CODE_MS, NAME_CHARS_MAX};
use crate::planting::{NewApp, make_app};
use crate::record::{Code, CodeOf, Kind, Permissions};
use crate::rest::administrates;
use crate::state::hash;

/// An app as its maker describes it.
#[derive(Deserialize)]
struct Manifest {
    name: Option<String>,
    url: String,
    #[serde(default)]
    hook_attributes: ManifestHook,
    redirect_url: String,
    #[serde(default)]
    callback_urls: Vec<String>,
    setup_url: Option<String>,
    #[serde(default)]
    default_permissions: Permissions,
    #[serde(default)]
    default_events: Vec<String>,
}

#[derive(Default, Deserialize)]
struct ManifestHook {
    url: Option<String>,
    #[serde(default = "yes")]
    active: bool,
}

const fn yes() -> bool {
    true
}

fn parsed(text: &str) -> Result<Manifest, ApiError> {
    let manifest: Manifest = serde_json::from_str(text).map_err(|error| {
        ApiError::unprocessable(format!("Invalid GitHub App configuration: {error}"))
    })?;
    let is_web = |at: &str| at.starts_with("http://") || at.starts_with("https://");
    if !is_web(&manifest.redirect_url) || !is_web(&manifest.url) {
        return Err(ApiError::unprocessable(
            "Invalid GitHub App configuration: url and redirect_url must be addresses",
        ));
    }
    Ok(manifest)
}

/// Shows what will be made. A visitor who is not signed in does that on the same page.
pub(super) fn page(visit: &PageRequest, owner: Option<&str>) -> PageAnswer {
    let text = visit.field("manifest").unwrap_or_default();
    let manifest = parsed(text)?;
    let state = visit.asked("state").or(visit.field("state")).unwrap_or_default();
    let mut fields = html::hidden("manifest", text) + &html::hidden("state", state);
    if let Some(owner) = owner {
        visit.engine.lock().organization_of(owner)?;
        fields.push_str(&html::hidden("owner", owner));
    }
    if visit.person.is_none() {
        fields.push_str(&session::sign_in_fields(&visit.engine));
    }
    let name = manifest.name.unwrap_or_default();
    fields.push_str(&format!(
        "<label>Name of the app <input type=\"text\" name=\"name\" value=\"{}\" required maxlength=\"{NAME_CHARS_MAX}\"></label>",
        html::text(&name)
    ));
    let rights = manifest.default_permissions.iter().map(|(name, level)| {
        format!("<li>{}: {}</li>", html::text(&name.replace('_', " ")), html::text(level))
    });
    let on = owner.map_or(String::new(), |owner| format!(" on {owner}"));
    fields.push_str(&html::button("make", "1", &format!("Create GitHub App{on}")));
    let content = format!(
        "<p>It will be able to:</p><ul>{}</ul>{}",
        rights.collect::<String>(),
        html::form("/settings/apps/manifest", &fields)
    );
    Ok(html::page("Create GitHub App", &content))
}

/// Makes the app, and sends the browser back with a code.
pub(super) async fn make(visit: &PageRequest) -> PageAnswer {
    let person = match visit.person {
        Some(person) => person,
        None => session::checked(visit)?,
    };
    let manifest = parsed(visit.field("manifest").unwrap_or_default())?;
    let owner = {
        let inner = visit.engine.lock();
        let owner = match visit.field("owner") {
            Some(login) => inner.organization_of(login)?,
            None => inner.account(person)?,
        };
        if owner.kind == Kind::Bot || !administrates(&inner, person, owner.id) {
            return Err(ApiError::not_found());
        }
        owner.id
    };
    // Two large primes take a moment.
    let pem = tokio::task::spawn_blocking(crate::rsa::generate).await;
    let pem = pem.map_err(ApiError::internal)?.map_err(ApiError::internal)?;
    let name = visit.field("name").map(str::trim).filter(|name| !name.is_empty());
    let new = NewApp {
        name: name.or(manifest.name.as_deref()).unwrap_or_default().to_owned(),
        owner,
        homepage: manifest.url,
        callbacks: manifest.callback_urls,
        setup: manifest.setup_url,
        webhook: manifest.hook_attributes.url.filter(|_| manifest.hook_attributes.active),
        webhook_secret: token(40),
        client_secret: token(40),
        pem: pem.clone(),
        permissions: manifest.default_permissions,
        events: manifest.default_events,
    };
    let client_secret = new.client_secret.clone();
    let code = token(40);
    let now = visit.engine.clock.now_ms();
    visit.engine.change(|inner| {
        let app = make_app(inner, new, now)?.id;
        let of = CodeOf::Manifest { app, pem, client_secret };
        inner.codes.insert(hash(&code), Code { of, expires_at: now + MANIFEST_CODE_MS });
        Ok(())
    })?;
    let state = visit.field("state").unwrap_or_default();
    let mut more = BTreeMap::from([("code", code.as_str())]);
    if !state.is_empty() {
        more.insert("state", state);
    }
    Ok(see(&with_parameters(&manifest.redirect_url, &more)))
}
