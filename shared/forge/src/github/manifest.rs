//! The app manifest: GitHub's description of this app, and the exchange of the code that GitHub gives for it.
//!
//! Sources: "Registering a GitHub App from a manifest" in GitHub's documentation, and `apps/create-from-manifest` of
//! its OpenAPI description. A code is good once, for an hour.

use bobbin_core::base::secret::Secret;
use bobbin_http::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::app::PERMISSIONS;
use super::repositories::AccountBody;
use super::rest::{Call, RestClient, RestCredential};
use super::settings::Addresses;
use super::webhook;
use crate::error::{ForgeError, ForgeErrorKind, ForgeResult};
use crate::forge::Owner;

/// The events that the app asks for: those that are read. Others, about installations and authorisations, come in any
/// case.
pub const EVENTS: [&str; webhook::PULL_REQUESTS.len()] = {
    let mut names = [""; webhook::PULL_REQUESTS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = webhook::PULL_REQUESTS[at].0;
        at += 1;
    }
    names
};
/// Path at which the stack takes people who have signed in.
pub const SIGNED_IN: &str = "/github/signed-in";
/// Longest name of an app.
pub const NAME_CHARS_MAX: usize = 34;
/// Longest code that is exchanged.
const CODE_CHARS_MAX: usize = 200;

/// The app for a stack whose ingress is at this address. GitHub leads the browser to `back` with the code.
#[must_use]
pub fn manifest(name: &str, ingress: &str, back: &str) -> Value {
    let ingress = ingress.trim_end_matches('/');
    let permissions = PERMISSIONS.map(|(name, level)| (name.to_owned(), json!(level)));
    json!({
        "name": name.chars().take(NAME_CHARS_MAX).collect::<String>(),
        "url": ingress,
        "hook_attributes": {"url": format!("{ingress}{}", webhook::PATH), "active": true},
        "redirect_url": back,
        "callback_urls": [format!("{ingress}{SIGNED_IN}")],
        "public": false,
        "default_permissions": Map::from_iter(permissions),
        "default_events": EVENTS,
    })
}

/// The page that takes the manifest, as the form field `manifest`: of an organisation, or without one of the person who
/// opens it. It hands the state on.
#[must_use]
pub fn page(addresses: &Addresses, organization: Option<&str>, state: &str) -> String {
    let web = &addresses.web;
    let owner = organization.map_or_else(String::new, |name| format!("/organizations/{name}"));
    format!("{web}{owner}/settings/apps/new?state={state}")
}

/// An app that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeApp {
    /// Its name for people.
    pub name: String,
    /// Its name in addresses.
    pub slug: String,
    /// Its client id, with which it signs.
    pub client_id: String,
    /// Whose it is.
    pub owner: Owner,
    /// Its page.
    pub page: String,
    /// Its private key, in PEM.
    pub private_key: Secret,
    /// Its client secret.
    pub client_secret: Secret,
    /// Signs its webhooks; empty if GitHub made none.
    pub webhook_secret: Secret,
}

#[derive(Deserialize)]
struct MadeBody {
    #[serde(default)]
    slug: String,
    name: String,
    owner: AccountBody,
    html_url: String,
    client_id: String,
    client_secret: Secret,
    webhook_secret: Option<Secret>,
    pem: Secret,
}

/// Exchanges the code for the app and its secrets, once.
///
/// # Errors
/// [`ForgeErrorKind::NotFound`] if the code is not good any more, or never was.
pub async fn exchange(addresses: &Addresses, code: &str) -> ForgeResult<MadeApp> {
    let unknown = || {
        let seen = "GitHub does not know this code. It is good once, for an hour: begin again.";
        ForgeError::lasting(ForgeErrorKind::NotFound, seen)
    };
    let is_plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
    if code.is_empty() || code.len() > CODE_CHARS_MAX || !code.bytes().all(is_plain) {
        return Err(unknown());
    }
    let rest = RestClient::new(addresses).map_err(|error| super::rest::unreachable_by(&error))?;
    let path = ["app-manifests", code, "conversions"];
    match rest.read::<MadeBody>(Call::empty(RestCredential::Nobody, Method::POST, &path)).await {
        Ok(made) => Ok(MadeApp {
            name: made.name,
            slug: made.slug,
            client_id: made.client_id,
            owner: made.owner.into(),
            page: made.html_url,
            private_key: made.pem,
            client_secret: made.client_secret,
            webhook_secret: made.webhook_secret.unwrap_or_default(),
        }),
        Err(error) if matches!(error.status(), Some(404 | 422)) => Err(unknown()),
        Err(error) => Err(error.into()),
    }
}
