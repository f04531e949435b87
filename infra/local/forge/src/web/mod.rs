//! What a browser and `git` see: pages for signing in, installing, making an app, and pull requests. No page needs a
//! script.

mod authorizations;
mod browsing;
mod html;
pub(crate) mod installing;
mod manifest;
pub(crate) mod session;
pub(crate) mod signing_in;

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{ConnectInfo, Extension, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bobbin_local_breakpoint::has_own_host;
use bobbin_local_sandbox::faults::Instead;
use bobbin_local_sandbox::serve::ConnectionCut;
use percent_encoding::percent_decode_str;

use crate::api_error::ApiError;
use crate::checks::logs;
use crate::git::backend;
use crate::limits::BODY_BYTES_MAX;
use crate::state::SharedEngine;

pub(crate) fn router(engine: &SharedEngine) -> Router {
    Router::new().fallback(answer).with_state(engine.clone())
}

/// A page that is asked for, or a form that was sent.
pub(crate) struct PageRequest {
    pub(crate) engine: SharedEngine,
    /// Path and query, for coming back.
    target: String,
    query: Vec<(String, String)>,
    form: Vec<(String, String)>,
    headers: HeaderMap,
    /// Who is signed in.
    pub(crate) person: Option<u64>,
}

/// A page's result. A refusal is a page too.
type PageAnswer = Result<Response, ApiError>;

async fn answer(
    State(engine): State<SharedEngine>,
    cut: Option<Extension<ConnectInfo<ConnectionCut>>>,
    request: Request,
) -> Response {
    if !has_own_host(request.headers(), engine.settings.also_named.as_deref()) {
        return StatusCode::FORBIDDEN.into_response();
    }
    let call = backend::Call::of(request.uri().path(), request.uri().query());
    // What was begun is ended, though its caller is gone.
    let done = tokio::spawn(async move {
        match call {
            Some(call) => git(&engine, call, request, cut.map(|Extension(cut)| cut.0)).await,
            None => page(&engine, request).await,
        }
    });
    done.await.unwrap_or_else(|error| html::refused(&ApiError::internal(error)))
}

async fn git(
    engine: &SharedEngine,
    call: backend::Call,
    request: Request,
    cut: Option<ConnectionCut>,
) -> Response {
    let about = vec![format!("{}/{}", call.owner, call.name)];
    let operation = call.service.map_or("git", backend::Service::operation);
    match engine.faults.instead(&about, operation) {
        Some(Instead::Refusal { status, .. } | Instead::Page { status }) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            return (status, "Server Error\n").into_response();
        }
        None => {}
    }
    let response = backend::answer(engine, call, request).await;
    if let Some(ms) = engine.faults.delay_ms(&about, operation) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
    if let (true, Some(cut)) = (engine.faults.is_dropped(&about, operation), cut) {
        cut.cut();
    }
    response
}

/// Another page may make a browser send a manifest, and nothing else.
fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let origin = text(header::ORIGIN).unwrap_or_default();
    let host = text(header::HOST).unwrap_or_default();
    !origin.is_empty() && origin.strip_prefix("http://") != Some(host)
}

async fn page(engine: &SharedEngine, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let path = head.uri.path().trim_matches('/').to_owned();
    let decoded = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
    let parts: Vec<String> = path.split('/').map(decoded).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let is_manifest = path == "settings/apps/new" || path.ends_with("/settings/apps/new");
    // A program trades a code, not a page.
    let is_trade = path == "login/oauth/access_token";
    let is_sent = head.method != Method::GET;
    if is_sent && !is_manifest && !is_trade && is_from_elsewhere(&head.headers) {
        return html::refused(&ApiError::forbidden(
            "This form was not sent by this forge's own page",
        ));
    }
    let Ok(body) = to_bytes(body, BODY_BYTES_MAX).await else {
        return html::refused(&ApiError::bad("The form is too large"));
    };
    let read = |bytes: &[u8]| form_urlencoded::parse(bytes).into_owned().collect::<Vec<_>>();
    let visit = PageRequest {
        engine: engine.clone(),
        target: head.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned(),
        query: read(head.uri.query().unwrap_or_default().as_bytes()),
        form: if is_trade { signing_in::fields(&head.headers, &body) } else { read(&body) },
        person: session::person(engine, &head.headers),
        headers: head.headers,
    };
    // A form that another page sent acts for nobody.
    let done = match (head.method.as_str(), parts.as_slice()) {
        ("GET", [""]) => browsing::index(&visit),
        ("GET", ["login"]) => session::page(&visit),
        ("POST", ["login"]) => session::sign_in(&visit),
        ("POST", ["logout"]) => session::sign_out(&visit),
        ("GET", ["login", "with", ticket]) => session::by_ticket(&visit, ticket),
        ("GET", ["login", "oauth", "authorize"]) => signing_in::page(&visit),
        ("POST", ["login", "oauth", "authorize"]) => signing_in::authorize(&visit),
        ("POST", ["login", "oauth", "access_token"]) => return signing_in::trade(&visit),
        ("GET", ["actions-results", job, "job-logs.txt"]) => {
            return logs::answer(engine, &visit.headers, job, visit.asked("sig"));
        }
        ("GET", ["settings", "apps", "authorizations"]) => authorizations::page(&visit),
        ("POST", ["settings", "apps", "authorizations"]) => authorizations::revoke(&visit),
        ("POST", ["settings", "apps", "new"]) => manifest::page(&visit, None),
        ("POST", ["organizations", owner, "settings", "apps", "new"]) => {
            manifest::page(&visit, Some(owner))
        }
        ("POST", ["settings", "apps", "manifest"]) => manifest::make(&visit).await,
        ("GET", ["apps", slug]) => installing::app(&visit, slug),
        ("GET", ["apps", slug, "installations", "new"]) => installing::page(&visit, slug),
        ("POST", ["apps", slug, "installations", "new"]) => installing::install(&visit, slug),
        ("GET", ["settings", "installations", id])
        | ("GET", ["organizations", _, "settings", "installations", id]) => {
            installing::settings(&visit, id)
        }
        ("POST", ["settings", "installations", id])
        | ("POST", ["organizations", _, "settings", "installations", id]) => {
            installing::change(&visit, id)
        }
        ("GET", [owner, name]) => browsing::repository(&visit, owner, name).await,
        ("GET", [owner, name, "pull", number]) => browsing::pull(&visit, owner, name, number).await,
        ("POST", [owner, name, "pull", number]) => {
            browsing::press(&visit, owner, name, number).await
        }
        _ => Err(ApiError::not_found()),
    };
    done.unwrap_or_else(|error| html::refused(&error))
}

fn value<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    pairs.iter().find(|(named, _)| named == name).map(|(_, value)| value.as_str())
}

impl PageRequest {
    /// A parameter of the address.
    fn asked(&self, name: &str) -> Option<&str> {
        value(&self.query, name)
    }

    /// A field of the form.
    fn field(&self, name: &str) -> Option<&str> {
        value(&self.form, name)
    }

    /// Every value of a field.
    fn fields(&self, name: &str) -> Vec<&str> {
        let named = self.form.iter().filter(|(named, _)| named == name);
        named.map(|(_, value)| value.as_str()).collect()
    }

    /// The person who is signed in, or the way to the sign-in page.
    fn signed_in(&self) -> Result<u64, Box<Response>> {
        let back = form_urlencoded::byte_serialize(self.target.as_bytes()).collect::<String>();
        self.person.ok_or_else(|| Box::new(see(&format!("/login?return_to={back}"))))
    }
}

/// Sends a browser on.
fn see(at: &str) -> Response {
    match HeaderValue::from_str(at) {
        Ok(at) => (StatusCode::SEE_OTHER, [(header::LOCATION, at)]).into_response(),
        Err(_) => html::refused(&ApiError::bad("This address cannot be opened")),
    }
}

/// An address with more parameters.
fn with_parameters(base: &str, more: &BTreeMap<&str, &str>) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(more).finish();
    let joint = if base.contains('?') { '&' } else { '?' };
    format!("{base}{joint}{query}")
}
