//! The REST API: who calls, which call it is, and what goes around every answer.

mod actions;
mod apps;
mod body;
mod checks;
mod control;
mod data;
mod installations;
mod people;
mod pulls;
mod refs;
mod remarks;
mod repositories;
mod reviews;
mod routes;
mod rules;
pub(crate) mod show;
mod statuses;
mod talking;

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{ConnectInfo, Extension, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use base64::Engine as _;
use bobbin_local_sandbox::faults::Instead;
use bobbin_local_sandbox::random::uuid;
use bobbin_local_sandbox::serve::ConnectionCut;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::access::Caller;
use crate::api_error::{Answer, ApiError};
use crate::limits::{ANONYMOUS_REQUESTS_MAX, BODY_BYTES_MAX, PAGE_DEFAULT, PAGE_MAX};
use crate::permission::Level;
use crate::record::{App, RepositoryRecord};
use crate::state::{Engine, ForgeState, Rate, SharedEngine};
use routes::Route;
use show::Show;

pub(crate) use checks::branch_at;
pub(crate) use installations::{administrates, tell_of_repositories};
pub(crate) use repositories::{NewRepository, make};

/// Versions of the API that are served.
const VERSIONS: [&str; 2] = ["2022-11-28", "2026-03-10"];

const NO_USER_AGENT: &str = "Request forbidden by administrative rules. Please make sure your request has a User-Agent header (https://docs.github.com/en/rest/overview/resources-in-the-rest-api#user-agent-required). Check https://developer.github.com for other possible causes.\n";

/// Characters that are escaped in a path.
const PATH: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?');

/// A path in an address.
pub(crate) fn encoded(path: &str) -> String {
    utf8_percent_encode(path, PATH).to_string()
}

pub(crate) fn router(engine: &SharedEngine) -> Router {
    Router::new().fallback(answer).with_state(engine.clone())
}

/// A call with everything that it brought.
pub(crate) struct Call {
    pub(crate) engine: SharedEngine,
    pub(crate) caller: Caller,
    /// Parts of the path, by their names in GitHub's description.
    parts: BTreeMap<&'static str, String>,
    query: BTreeMap<String, String>,
    headers: HeaderMap,
    body: Bytes,
    /// Path and query as they came.
    target: String,
    is_read: bool,
}

async fn answer(
    State(engine): State<SharedEngine>,
    cut: Option<Extension<ConnectInfo<ConnectionCut>>>,
    request: Request,
) -> Response {
    if let Some(path) = request.uri().path().strip_prefix("/_control/") {
        let path = path.to_owned();
        return control::answer(&engine, &path, request).await;
    }
    if !request.headers().contains_key(header::USER_AGENT) {
        return (StatusCode::FORBIDDEN, Html(NO_USER_AGENT)).into_response();
    }
    let version = text(request.headers(), "x-github-api-version").to_owned();
    let version = if version.is_empty() { VERSIONS[0].to_owned() } else { version };
    let is_graphql = request.uri().path().ends_with("/graphql");
    let resource = if is_graphql { "graphql" } else { "core" };
    let (response, rate) =
        counted(&engine, request, &version, cut.map(|Extension(cut)| cut.0)).await;
    dressed(response, rate, &version, resource)
}

/// What goes around every answer.
fn dressed(mut response: Response, rate: Option<Rate>, version: &str, resource: &str) -> Response {
    let headers = response.headers_mut();
    let mut add = |name: &'static str, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    add("x-github-request-id", &uuid());
    add("x-github-media-type", "github.v3; format=json");
    add("x-github-api-version-selected", version);
    if let Some(rate) = rate {
        add("x-ratelimit-limit", &rate.limit.to_string());
        add("x-ratelimit-remaining", &rate.remaining().to_string());
        add("x-ratelimit-used", &rate.used.to_string());
        add("x-ratelimit-reset", &(rate.ends_at / 1_000).to_string());
        add("x-ratelimit-resource", resource);
    }
    response
}

/// The answer, and how many requests the caller has left.
async fn counted(
    engine: &SharedEngine,
    request: Request,
    version: &str,
    cut: Option<ConnectionCut>,
) -> (Response, Option<Rate>) {
    if !VERSIONS.contains(&version) {
        let told = format!("\"{version}\" is not a supported version of the GitHub REST API.");
        return (ApiError::bad(told).into_response(), None);
    }
    let caller = match caller(engine, request.headers()) {
        Ok(caller) => caller,
        Err(error) => return (error.into_response(), None),
    };
    let limit = match caller {
        Caller::Nobody => ANONYMOUS_REQUESTS_MAX,
        _ => engine.settings.requests_max,
    };
    let counts = request.uri().path() != "/rate_limit";
    let is_graphql = request.uri().path().ends_with("/graphql");
    let counted_as = if is_graphql { caller.points_counted_as() } else { caller.counted_as() };
    let rate = engine.rate(&counted_as, limit, counts);
    if rate.used > rate.limit && is_graphql {
        return (crate::graphql::limited(&caller), Some(rate));
    }
    if rate.used > rate.limit {
        let told = format!("API rate limit exceeded for {}.", caller.counted_as());
        return (ApiError::forbidden(told).into_response(), Some(rate));
    }
    let (head, body) = request.into_parts();
    let body = match to_bytes(body, BODY_BYTES_MAX).await {
        Ok(body) => body,
        Err(_) => {
            let status = StatusCode::PAYLOAD_TOO_LARGE;
            return (ApiError::new(status, "Payload too large").into_response(), Some(rate));
        }
    };
    let segments = segments(engine, head.uri.path());
    let Some((route, parts)) = routes::find(head.method.as_str(), &segments) else {
        return (ApiError::not_found().into_response(), Some(rate));
    };
    let query = head.uri.query().unwrap_or_default();
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
    let call = Call {
        engine: engine.clone(),
        caller,
        parts,
        query: form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
        headers: head.headers,
        body,
        target,
        is_read: head.method == axum::http::Method::GET,
    };
    // A call that was begun is finished even if its caller is gone.
    let done = tokio::spawn(async move { faulty(route, &call, cut).await }).await;
    (done.unwrap_or_else(|error| ApiError::internal(error).into_response()), Some(rate))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// The caller of a request; one that sends no token is nobody.
fn caller(engine: &Engine, headers: &HeaderMap) -> Result<Caller, ApiError> {
    let said = text(headers, "authorization");
    let Some((kind, token)) = said.split_once(' ') else {
        return if said.is_empty() { Ok(Caller::Nobody) } else { Err(ApiError::bad_credentials()) };
    };
    match kind.to_ascii_lowercase().as_str() {
        "bearer" | "token" => Caller::of(engine, token.trim()),
        // An app's client id and secret: the calls that take them look themselves.
        "basic" => Ok(Caller::Nobody),
        _ => Err(ApiError::bad_credentials()),
    }
}

/// Parts of a path. A repository that is named by its id gets its names.
fn segments(engine: &Engine, path: &str) -> Vec<String> {
    let decoded = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
    let parts: Vec<String> = path.trim_matches('/').split('/').map(decoded).collect();
    let [word, id, rest @ ..] = parts.as_slice() else { return parts };
    if word != "repositories" {
        return parts;
    }
    let inner = engine.lock();
    let id = id.parse::<u64>().ok();
    let full_name = id.and_then(|id| inner.repository(id).ok()).map(|one| inner.full_name(one));
    let Some((owner, name)) = full_name.as_ref().and_then(|it| it.split_once('/')) else {
        return parts;
    };
    let named = ["repos", owner, name].map(str::to_owned);
    named.into_iter().chain(rest.iter().cloned()).collect()
}

/// The call, with the faults that a test armed.
async fn faulty(route: &Route, call: &Call, cut: Option<ConnectionCut>) -> Response {
    let faults = &call.engine.faults;
    let about = match (call.parts.get("owner"), call.parts.get("repo")) {
        (Some(owner), Some(name)) => vec![format!("{owner}/{name}")],
        _ => Vec::new(),
    };
    match faults.instead(&about, route.operation) {
        Some(Instead::Refusal { status, retry_after }) => {
            return ApiError::armed(status, retry_after).into_response();
        }
        Some(Instead::Page { status }) => {
            let status = StatusCode::from_u16(status).unwrap_or_default();
            return (status, Html("<h1>Unicorn!</h1>")).into_response();
        }
        None => {}
    }
    let response = (route.handler)(call).await.unwrap_or_else(IntoResponse::into_response);
    if let Some(ms) = faults.delay_ms(&about, route.operation) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
    if let (true, Some(cut)) = (faults.is_dropped(&about, route.operation), cut) {
        cut.cut();
    }
    response
}

/// JSON with a status.
fn json_answer(status: StatusCode, value: Value) -> Answer {
    Ok((status, axum::Json(value)).into_response())
}

fn ok(value: Value) -> Answer {
    json_answer(StatusCode::OK, value)
}

fn created(value: Value) -> Answer {
    json_answer(StatusCode::CREATED, value)
}

fn nothing() -> Answer {
    Ok(StatusCode::NO_CONTENT.into_response())
}

impl Call {
    pub(crate) fn part(&self, name: &str) -> &str {
        self.parts.get(name).map_or("", String::as_str)
    }

    pub(crate) fn number(&self, name: &str) -> Result<u64, ApiError> {
        self.part(name).parse().map_err(|_| ApiError::not_found())
    }

    pub(crate) fn asked(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        text(&self.headers, name)
    }

    /// The body; an empty one counts as an empty object.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        body::read(&self.body)
    }

    pub(crate) fn now(&self) -> i64 {
        self.engine.clock.now_ms()
    }

    pub(crate) fn show<'a>(&'a self, inner: &'a ForgeState) -> Show<'a> {
        Show { inner, at: &self.engine.addresses }
    }

    /// The repository of the path, for a caller with this right.
    ///
    /// # Errors
    /// It has moved, the caller must not know of it, or may not do this.
    fn repository(&self, right: &str, needed: Level) -> Result<RepositoryRecord, ApiError> {
        let inner = self.engine.lock();
        let (owner, name) = (self.part("owner"), self.part("repo"));
        let name = name.strip_suffix(".git").unwrap_or(name);
        if let Some(found) = inner.named(owner, name) {
            self.caller.need(&inner, found, right, needed)?;
            return Ok(found.clone());
        }
        let moved = inner.formerly_named(owner, name).ok_or_else(ApiError::not_found)?;
        self.caller.need(&inner, moved, "metadata", Level::Read)?;
        let rest =
            self.target.splitn(5, '/').nth(4).map_or(String::new(), |rest| format!("/{rest}"));
        let at = format!("{}/repositories/{}{rest}", self.engine.addresses.api, moved.id);
        let status = if self.is_read {
            StatusCode::MOVED_PERMANENTLY
        } else {
            StatusCode::TEMPORARY_REDIRECT
        };
        Err(ApiError { location: Some(at), ..ApiError::new(status, "Moved Permanently") })
    }

    /// The same, as one that can be changed.
    fn writable(&self, right: &str) -> Result<RepositoryRecord, ApiError> {
        let repository = self.repository(right, Level::Write)?;
        if repository.is_archived { Err(ApiError::archived()) } else { Ok(repository) }
    }

    /// The app that calls by its own token.
    fn app(&self) -> Result<App, ApiError> {
        match &self.caller {
            Caller::App(id) => self.engine.lock().app(*id).cloned(),
            _ => Err(ApiError::unauthorized("A JSON web token could not be decoded")),
        }
    }

    /// The person who calls.
    fn person(&self) -> Result<u64, ApiError> {
        match &self.caller {
            Caller::Person { id, .. } => Ok(*id),
            Caller::Nobody => Err(ApiError::unauthorized("Requires authentication")),
            _ => Err(ApiError::integration()),
        }
    }

    /// The account in whose name something is done.
    pub(crate) fn actor(&self) -> Result<u64, ApiError> {
        let account = self.caller.account(&self.engine.lock());
        account.ok_or_else(|| ApiError::unauthorized("Requires authentication"))
    }

    /// The app whose client id and secret the request has.
    fn client(&self) -> Result<App, ApiError> {
        let pair = self.header("authorization").split_once(' ').map(|(_, pair)| pair.trim());
        let pair =
            pair.and_then(|pair| base64::engine::general_purpose::STANDARD.decode(pair).ok());
        let pair = pair.and_then(|pair| String::from_utf8(pair).ok()).unwrap_or_default();
        let (id, secret) = pair.split_once(':').unwrap_or_default();
        let inner = self.engine.lock();
        let mut apps = inner.apps.values();
        let is_meant = |app: &&App| {
            app.client_id == id
                && self.part("client_id") == id
                && app.client_secret == crate::state::hash(secret)
        };
        apps.find(is_meant).cloned().ok_or_else(ApiError::not_found)
    }

    /// A page of a list, with the links to the others.
    fn page<T>(&self, all: Vec<T>) -> Result<(Vec<T>, Option<String>), ApiError> {
        let number = |name: &str, usual: usize| match self.asked(name) {
            None => Ok(usual),
            Some(text) => text.parse::<usize>().map_err(|_| ApiError::bad("Invalid page")),
        };
        let size = number("per_page", PAGE_DEFAULT)?.clamp(1, PAGE_MAX);
        let page = number("page", 1)?.max(1);
        let last = all.len().div_ceil(size).max(1);
        let link = |to: usize, word: &str| {
            let (path, _) = self.target.split_once('?').unwrap_or((&self.target, ""));
            let mut query = form_urlencoded::Serializer::new(String::new());
            for (name, value) in self.query.iter().filter(|(name, _)| *name != "page") {
                query.append_pair(name, value);
            }
            let query = query.append_pair("page", &to.to_string()).finish();
            format!("<{}{path}?{query}>; rel=\"{word}\"", self.engine.addresses.api)
        };
        let mut links = Vec::new();
        if page > 1 {
            links.extend([link(page - 1, "prev"), link(1, "first")]);
        }
        if page < last {
            links.extend([link(page + 1, "next"), link(last, "last")]);
        }
        let items = all.into_iter().skip((page - 1).saturating_mul(size)).take(size).collect();
        Ok((items, (!links.is_empty()).then(|| links.join(", "))))
    }

    /// The answer of a list.
    fn list(&self, all: Vec<Value>) -> Answer {
        let (items, link) = self.page(all)?;
        linked(Value::Array(items), link)
    }

    /// The answer of a list that tells its length.
    fn counted_list(&self, field: &str, all: Vec<Value>) -> Answer {
        let total = all.len();
        let (items, link) = self.page(all)?;
        let mut told = serde_json::json!({ "total_count": total });
        told[field] = Value::Array(items);
        linked(told, link)
    }

    /// Text of another kind than JSON.
    fn plain(&self, kind: &'static str, text: String) -> Answer {
        Ok(([(header::CONTENT_TYPE, kind)], Body::from(text)).into_response())
    }
}

fn linked(value: Value, link: Option<String>) -> Answer {
    let mut response = axum::Json(value).into_response();
    if let Some(link) = link.and_then(|link| HeaderValue::from_str(&link).ok()) {
        response.headers_mut().insert(header::LINK, link);
    }
    Ok(response)
}
