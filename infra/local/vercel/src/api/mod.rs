//! The API: authentication, routing, and faults.

mod commands;
mod control;
mod files;
mod sandboxes;
mod sessions;
mod snapshots;

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Extension, Query, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{delete, get, post};
use bobbin_local_sandbox::faults::Instead;
use bobbin_local_sandbox::serve::ConnectionCut;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::api_error::{ApiError, ApiResult};
use crate::limits::FILE_BYTES_MAX;
use crate::state::SharedEngine;

/// The engine, as handlers receive it.
type EngineState = State<SharedEngine>;

pub(crate) fn router(engine: &SharedEngine) -> Router {
    let session = "/v2/sandboxes/sessions/{session}";
    let at = |rest: &str| format!("{session}/{rest}");
    let api = Router::new()
        .route("/v9/projects/{project}", get(project))
        .route("/v2/sandboxes", post(sandboxes::create).get(sandboxes::list))
        .route("/v3/sandboxes", post(sandboxes::create))
        .route(
            "/v2/sandboxes/{name}",
            get(sandboxes::get).patch(sandboxes::update).delete(sandboxes::delete),
        )
        .route("/v2/sandboxes/{name}/fork", post(sandboxes::fork))
        .route("/v2/sandboxes/snapshots", get(snapshots::list))
        .route("/v2/sandboxes/snapshots/{id}", get(snapshots::get).merge(delete(snapshots::delete)))
        .route("/v2/sandboxes/sessions", get(sessions::list))
        .route(session, get(sessions::get))
        .route(&at("stop"), post(sessions::stop))
        .route(&at("extend-timeout"), post(sessions::extend))
        .route(&at("snapshot"), post(sessions::snapshot))
        .route(&at("network-policy"), post(sessions::network_policy))
        .route(&at("cmd"), post(commands::run))
        .route(&at("cmd/{command}"), get(commands::get))
        .route(&at("cmd/{command}/logs"), get(commands::logs))
        .route(&at("cmd/{command}/kill"), post(commands::kill))
        .route(&at("fs/write"), post(files::write))
        .route(&at("fs/read"), post(files::read))
        .route(&at("fs/mkdir"), post(files::make_folder))
        .fallback(unknown)
        .layer(from_fn_with_state(engine.clone(), faults));
    let control = Router::new()
        .route("/clock", post(control::clock))
        .route("/faults", post(control::arm).get(control::faults).merge(delete(control::clear)))
        .route("/lose", post(control::lose));
    Router::new()
        .nest("/api", api)
        .nest("/_control", control)
        .fallback(unknown)
        .layer(from_fn_with_state(engine.clone(), authorize))
        .layer(DefaultBodyLimit::max(FILE_BYTES_MAX))
        .with_state(engine.clone())
}

async fn unknown() -> ApiError {
    ApiError::not_found("The requested resource does not exist")
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Team {
    team_id: Option<String>,
}

/// The token opens one team only.
async fn authorize(State(engine): EngineState, request: Request, next: Next) -> Response {
    let said = request.headers().get(header::AUTHORIZATION);
    let said = said.and_then(|said| said.to_str().ok()?.strip_prefix("Bearer "));
    if said != Some(engine.settings.token.as_str()) {
        let mut refused = ApiError::forbidden("Not authorized");
        refused.status = StatusCode::UNAUTHORIZED;
        refused.code = "unauthorized";
        return refused.into_response();
    }
    let query = Query::<Team>::try_from_uri(request.uri());
    let team = query.ok().and_then(|Query(team)| team.team_id);
    if request.uri().path().starts_with("/api/") && team.as_ref() != Some(&engine.settings.team_id)
    {
        return ApiError::forbidden("You don't have access to this team").into_response();
    }
    next.run(request).await
}

/// The fault word of a call, and its sandbox or session.
fn operation<'a>(method: &Method, path: &'a str) -> (&'a str, Option<&'a str>) {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    match (method.as_str(), parts.as_slice()) {
        (_, [_, "sandboxes", "sessions", session, word, ..]) => (word, Some(session)),
        (_, [_, "sandboxes", "sessions", session]) => ("get", Some(session)),
        ("POST", [_, "sandboxes"]) => ("create", None),
        ("GET", [_, "sandboxes"]) => ("list", None),
        ("PATCH", [_, "sandboxes", name]) => ("update", Some(name)),
        ("POST", [_, "sandboxes", name, "fork"]) => ("fork", Some(name)),
        ("DELETE", [_, "sandboxes", name]) => ("delete", Some(name)),
        (_, [_, "sandboxes", name]) => ("get", Some(name)),
        _ => ("get", None),
    }
}

async fn faults(
    State(engine): EngineState,
    cut: Option<Extension<axum::extract::ConnectInfo<ConnectionCut>>>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path().to_owned();
    let (operation, about) = operation(request.method(), &path);
    let names = about.map_or_else(Vec::new, |about| engine.names(about));
    match engine.faults.instead(&names, operation) {
        Some(Instead::Refusal { status, retry_after }) => {
            return ApiError::armed(status, retry_after).into_response();
        }
        Some(Instead::Page { status }) => {
            let status = StatusCode::from_u16(status).unwrap_or_default();
            return (status, Html("<h1>Bad gateway</h1>")).into_response();
        }
        None => {}
    }
    let response = next.run(request).await;
    if let Some(ms) = engine.faults.delay_ms(&names, operation) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
    if let (true, Some(Extension(cut))) = (engine.faults.is_dropped(&names, operation), cut) {
        cut.0.cut();
    }
    response
}

/// A JSON body; an empty one counts as an empty object.
fn parse<T: DeserializeOwned>(body: &Bytes) -> Result<T, ApiError> {
    let text: &[u8] = if body.iter().all(u8::is_ascii_whitespace) { b"{}" } else { body };
    if text.len() > crate::limits::BODY_BYTES_MAX {
        return Err(ApiError::bad("The body is too large"));
    }
    serde_json::from_slice(text).map_err(|error| ApiError::bad(format!("Invalid request: {error}")))
}

fn json_answer(value: Value) -> ApiResult {
    Ok(axum::Json(value).into_response())
}

/// A call's project must be this team's only one.
fn check_project(engine: &SharedEngine, project: Option<&String>) -> Result<(), ApiError> {
    if project == Some(&engine.settings.project_id) {
        Ok(())
    } else {
        Err(ApiError::not_found("Project not found"))
    }
}

async fn project(
    State(engine): EngineState,
    axum::extract::Path(project): axum::extract::Path<String>,
) -> ApiResult {
    check_project(&engine, Some(&project))?;
    json_answer(json!({ "id": project, "name": "local", "accountId": engine.settings.team_id }))
}

/// Paging parameters of a listing.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageQuery {
    project: Option<String>,
    name: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
    sort_order: Option<String>,
    sort_by: Option<String>,
    name_prefix: Option<String>,
    tags: Option<String>,
}

impl PageQuery {
    /// Cuts the page from a list in ascending order.
    fn page<T>(&self, mut all: Vec<T>, field: &str, view: impl Fn(T) -> Value) -> ApiResult {
        use crate::limits::{PAGE_DEFAULT, PAGE_MAX};
        if self.sort_order.as_deref() != Some("asc") {
            all.reverse();
        }
        let limit = self.limit.unwrap_or(PAGE_DEFAULT);
        if !(1..=PAGE_MAX).contains(&limit) {
            return Err(ApiError::bad(format!("limit must be 1 to {PAGE_MAX}")));
        }
        let from = match &self.cursor {
            None => 0,
            Some(cursor) => cursor.parse::<usize>().map_err(|_| ApiError::bad("Invalid cursor"))?,
        };
        let next = (from + limit < all.len()).then(|| (from + limit).to_string());
        let page: Vec<Value> = all.into_iter().skip(from).take(limit).map(view).collect();
        let pagination = json!({ "count": page.len(), "next": next });
        let body = BTreeMap::from([
            (field.to_owned(), Value::Array(page)),
            ("pagination".to_owned(), pagination),
        ]);
        json_answer(json!(body))
    }
}
