//! Signing in to an app: GitHub's web flow, with codes, tokens and their refreshing.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bobbin_local_sandbox::random::token;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{PageAnswer, PageRequest, html, see, with_parameters};
use crate::api_error::ApiError;
use crate::limits::{CODE_MS, PERSON_TOKEN_MS, REFRESH_TOKEN_MS};
use crate::record::{App, Code, CodeOf, Token, TokenOf};
use crate::state::{ForgeState, SharedEngine, hash};
use crate::webhooks::{self, Event};

const CODE_LETTERS: usize = 20;
const TOKEN_LETTERS: usize = 36;
const REFRESH_LETTERS: usize = 76;

/// What an app asks for on the sign-in page.
struct SignInRequest {
    app: App,
    redirect: String,
    state: Option<String>,
    challenge: Option<String>,
}

/// Whether an address is one of the app's, or below it. A loopback address may have any port.
fn is_callback(callback: &str, asked: &str) -> bool {
    let split = |address: &str| {
        let (scheme, rest) = address.split_once("://")?;
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (name, port) = host.rsplit_once(':').unwrap_or((host, ""));
        let is_loopback = ["127.0.0.1", "[::1]", "localhost"].contains(&name);
        let port = if is_loopback { "" } else { port };
        Some((scheme.to_owned(), name.to_owned(), port.to_owned(), path.to_owned()))
    };
    let (Some(own), Some(other)) = (split(callback), split(asked)) else { return false };
    let path = other.3.split(['?', '#']).next().unwrap_or_default();
    let base = own.3.trim_end_matches('/');
    let is_below = path == own.3
        || path.strip_prefix(base).is_some_and(|it| it.is_empty() || it.starts_with('/'));
    let is_plain = !path.contains("..") && !asked.contains(['@', '\\']);
    (own.0, own.1, own.2) == (other.0, other.1, other.2)
        && is_plain
        && (base.is_empty() || is_below)
}

fn asked(
    visit: &PageRequest,
    get: impl Fn(&str) -> Option<String>,
) -> Result<SignInRequest, ApiError> {
    let inner = visit.engine.lock();
    let client = get("client_id").unwrap_or_default();
    let app = inner.apps.values().find(|app| app.client_id == client);
    let app = app.ok_or_else(ApiError::not_found)?.clone();
    let first = app.callbacks.first().cloned();
    let redirect = get("redirect_uri").or(first).unwrap_or_default();
    if !app.callbacks.iter().any(|callback| is_callback(callback, &redirect)) {
        let told = "The redirect_uri is not associated with this application.";
        return Err(ApiError::bad(format!("Be careful! {told}")));
    }
    let method = get("code_challenge_method");
    let challenge = get("code_challenge").filter(|text| !text.is_empty());
    if challenge.is_some() && method.as_deref() != Some("S256") {
        return Err(ApiError::bad("code_challenge_method must be S256"));
    }
    Ok(SignInRequest { app, redirect, state: get("state"), challenge })
}

pub(super) fn page(visit: &PageRequest) -> PageAnswer {
    let asked = asked(visit, |name| visit.asked(name).map(str::to_owned))?;
    let person = match visit.signed_in() {
        Ok(person) => person,
        Err(elsewhere) => return Ok(*elsewhere),
    };
    let login = visit.engine.lock().account(person)?.login.clone();
    let mut fields = html::hidden("client_id", &asked.app.client_id);
    fields.push_str(&html::hidden("redirect_uri", &asked.redirect));
    if let Some(state) = &asked.state {
        fields.push_str(&html::hidden("state", state));
    }
    if let Some(challenge) = &asked.challenge {
        fields.push_str(&html::hidden("code_challenge", challenge));
        fields.push_str(&html::hidden("code_challenge_method", "S256"));
    }
    let host = asked.redirect.split('/').nth(2).unwrap_or_default();
    let content = format!(
        "<p>You are signed in as <strong>{}</strong>.</p><p><strong>{}</strong> wants to know who you are, to see which resources you can reach, and to act on your behalf.</p><p>Then you will be sent to {}.</p>{}",
        html::text(&login),
        html::text(&asked.app.name),
        html::text(host),
        html::form(
            "/login/oauth/authorize",
            &format!(
                "{fields}{}{}",
                html::button("authorize", "1", &format!("Authorize {}", asked.app.name)),
                html::button("authorize", "0", "Cancel")
            )
        )
    );
    Ok(html::page(&format!("Authorize {}", asked.app.name), &content))
}

pub(super) fn authorize(visit: &PageRequest) -> PageAnswer {
    let asked = asked(visit, |name| visit.field(name).map(str::to_owned))?;
    let person = match visit.signed_in() {
        Ok(person) => person,
        Err(elsewhere) => return Ok(*elsewhere),
    };
    let mut more = BTreeMap::new();
    if let Some(state) = &asked.state {
        more.insert("state", state.as_str());
    }
    if visit.field("authorize") != Some("1") {
        more.insert("error", "access_denied");
        more.insert("error_description", "The user has denied your application access.");
        return Ok(see(&with_parameters(&asked.redirect, &more)));
    }
    let code = token(CODE_LETTERS);
    let expires_at = visit.engine.clock.now_ms() + CODE_MS;
    visit.engine.change(|inner| {
        let of = CodeOf::SignIn {
            person,
            app: asked.app.id,
            redirect: asked.redirect.clone(),
            challenge: asked.challenge,
        };
        inner.codes.insert(hash(&code), Code { of, expires_at });
        Ok(())
    })?;
    more.insert("code", &code);
    Ok(see(&with_parameters(&asked.redirect, &more)))
}

/// Fields of a program's request, as a form or as JSON.
pub(super) fn fields(headers: &HeaderMap, body: &[u8]) -> Vec<(String, String)> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !kind.unwrap_or_default().contains("json") {
        return form_urlencoded::parse(body).into_owned().collect();
    }
    let fields: BTreeMap<String, Value> = serde_json::from_slice(body).unwrap_or_default();
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    fields.into_iter().map(|(name, value)| (name, text(value))).collect()
}

/// A refusal of the flow: GitHub answers it with 200.
struct FlowRefusal(&'static str, &'static str);

const BAD_CODE: FlowRefusal =
    FlowRefusal("bad_verification_code", "The code passed is incorrect or expired.");
const BAD_REFRESH: FlowRefusal =
    FlowRefusal("bad_refresh_token", "The refresh token passed is incorrect or expired.");
const BAD_CLIENT: FlowRefusal = FlowRefusal(
    "incorrect_client_credentials",
    "The client_id and/or client_secret passed are incorrect.",
);
const BAD_REDIRECT: FlowRefusal = FlowRefusal(
    "redirect_uri_mismatch",
    "The redirect_uri MUST match the registered callback URL for this application.",
);

/// Trades a code or a refresh token.
pub(super) fn trade(visit: &PageRequest) -> Response {
    let answer = match traded(visit) {
        Ok(answer) => answer,
        Err(FlowRefusal(error, told)) => json!({
            "error": error, "error_description": told,
            "error_uri": "https://docs.github.com/apps/managing-oauth-apps/troubleshooting-oauth-app-access-token-request-errors/",
        }),
    };
    let accept = visit.headers.get(header::ACCEPT).and_then(|kind| kind.to_str().ok());
    if accept.unwrap_or_default().contains("json") {
        return axum::Json(answer).into_response();
    }
    let mut form = form_urlencoded::Serializer::new(String::new());
    for (name, value) in answer.as_object().into_iter().flatten() {
        form.append_pair(name, value.as_str().map_or(value.to_string(), str::to_owned).as_str());
    }
    let kind = [(header::CONTENT_TYPE, "application/x-www-form-urlencoded; charset=utf-8")];
    (kind, form.finish()).into_response()
}

fn traded(visit: &PageRequest) -> Result<Value, FlowRefusal> {
    let field = |name: &str| visit.field(name).unwrap_or_default();
    let now = visit.engine.clock.now_ms();
    let secret = hash(field("client_secret"));
    let done = visit.engine.change(|inner| {
        let mut apps = inner.apps.values();
        let app = apps.find(|app| app.client_id == field("client_id"));
        let Some(app) = app.filter(|app| app.client_secret == secret).map(|app| app.id) else {
            return Ok(Err(BAD_CLIENT));
        };
        let person = if field("grant_type") == "refresh_token" {
            refreshed(inner, app, field("refresh_token"), now)
        } else {
            coded(inner, app, visit, now)
        };
        Ok(person.map(|person| issue(inner, person, app, now)))
    });
    done.unwrap_or(Err(BAD_CODE))
}

/// The person of a code, which is used up by being named.
fn coded(
    inner: &mut ForgeState,
    app: u64,
    visit: &PageRequest,
    now: i64,
) -> Result<u64, FlowRefusal> {
    let key = hash(visit.field("code").unwrap_or_default());
    let code = inner.codes.get(&key).filter(|code| code.expires_at > now).cloned();
    let Some(CodeOf::SignIn { person, app: of, redirect, challenge }) = code.map(|code| code.of)
    else {
        return Err(BAD_CODE);
    };
    if of != app {
        return Err(BAD_CODE);
    }
    inner.codes.remove(&key);
    if visit.field("redirect_uri").is_some_and(|named| named != redirect) {
        return Err(BAD_REDIRECT);
    }
    let said = visit.field("code_verifier").unwrap_or_default();
    let said = URL_SAFE_NO_PAD.encode(Sha256::digest(said.as_bytes()));
    if challenge.is_some_and(|challenge| challenge != said) {
        return Err(BAD_CODE);
    }
    Ok(person)
}

/// The person of a refresh token; it and its pair end.
fn refreshed(inner: &mut ForgeState, app: u64, said: &str, now: i64) -> Result<u64, FlowRefusal> {
    let key = hash(said);
    let known = inner.tokens.get(&key).filter(|one| one.expires_at.is_none_or(|end| end > now));
    let Some(TokenOf::Refresh { person, app: of, pair }) = known.map(|one| one.of.clone()) else {
        return Err(BAD_REFRESH);
    };
    if of != app {
        return Err(BAD_REFRESH);
    }
    inner.tokens.remove(&key);
    inner.tokens.remove(&pair);
    Ok(person)
}

/// A new pair of tokens.
fn issue(inner: &mut ForgeState, person: u64, app: u64, now: i64) -> Value {
    let access = format!("ghu_{}", token(TOKEN_LETTERS));
    let refresh = format!("ghr_{}", token(REFRESH_LETTERS));
    let record = |of, ms: i64| Token { of, created_at: now, expires_at: Some(now + ms) };
    let pair = hash(&access);
    let of = TokenOf::Person { person, app: Some(app) };
    inner.tokens.insert(pair.clone(), record(of, PERSON_TOKEN_MS));
    let of = TokenOf::Refresh { person, app, pair };
    inner.tokens.insert(hash(&refresh), record(of, REFRESH_TOKEN_MS));
    json!({
        "access_token": access, "expires_in": PERSON_TOKEN_MS / 1_000, "refresh_token": refresh,
        "refresh_token_expires_in": REFRESH_TOKEN_MS / 1_000, "scope": "", "token_type": "bearer",
    })
}

/// Ends all that a person allowed an app, and tells the app.
pub(crate) fn revoke_grant(engine: &SharedEngine, person: u64, app: u64) -> Result<(), ApiError> {
    let (app, payload) = engine.change(|inner| {
        inner.tokens.retain(|_, token| match &token.of {
            TokenOf::Person { person: of, app: Some(by) } => (*of, *by) != (person, app),
            TokenOf::Refresh { person: of, app: by, .. } => (*of, *by) != (person, app),
            _ => true,
        });
        let show = crate::rest::show::Show { inner, at: &engine.addresses };
        let payload = json!({ "action": "revoked", "sender": show.user_of(person) });
        Ok((inner.app(app)?.clone(), payload))
    })?;
    let name = "github_app_authorization";
    webhooks::tell(engine, &app, Event { name, installation: None, repository: None, payload });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_sent_to_the_apps_own_addresses_only() {
        let own = "http://127.0.0.1:8080/github/callback";
        assert!(is_callback(own, "http://127.0.0.1:9999/github/callback"));
        assert!(is_callback(own, "http://127.0.0.1/github/callback/deep?a=b"));
        assert!(!is_callback(own, "http://127.0.0.1:8080/github/callbacks"));
        assert!(!is_callback(own, "https://127.0.0.1:8080/github/callback"));
        assert!(!is_callback(own, "http://127.0.0.1:8080/github/callback/../../evil"));
        let own = "https://bobbin.example:8443/";
        assert!(is_callback(own, "https://bobbin.example:8443/anything"));
        assert!(!is_callback(own, "https://bobbin.example/anything"));
        assert!(!is_callback(own, "https://bobbin.example:8443@evil.example/"));
        assert!(!is_callback(own, "https://bobbin.example.evil.example:8443/"));
        assert!(!is_callback(own, "javascript:alert(1)"));
    }
}
