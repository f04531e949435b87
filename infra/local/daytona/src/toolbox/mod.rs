//! The toolbox of a started sandbox: commands, sessions, files. All of it is done by the sandbox's first process.

mod files;
mod process;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::Value;

use crate::api::Answer;
use crate::fail::Fail;
use crate::init::protocol::{Environment, Op};
use crate::limits::{BODY_BYTES_MAX, FILE_BYTES_MAX};
use crate::shared::Context;

/// A request with this header is no activity.
pub(crate) const SKIP_ACTIVITY: &str = "x-daytona-skip-last-activity-update";

/// Everything below `/toolbox/{sandbox}`.
pub(crate) fn router() -> Router<Context> {
    let files = Router::new()
        .route("/files", get(files::list).delete(files::delete))
        .route("/files/info", get(files::info))
        .route("/files/folder", post(files::folder))
        .route("/files/move", post(files::relocate))
        .route("/files/search", get(files::search))
        .route("/files/find", get(files::find))
        .route("/files/download", get(files::download))
        .route("/files/bulk-download", post(files::bulk_download))
        .route("/files/upload-v2", post(files::upload))
        .route("/files/bulk-upload", post(files::bulk_upload))
        .layer(DefaultBodyLimit::max(FILE_BYTES_MAX + BODY_BYTES_MAX));
    Router::new()
        .route("/process/execute", post(process::execute))
        .route(
            "/process/session",
            post(process::create_session).get(process::list_sessions),
        )
        .route(
            "/process/session/{session}",
            get(process::get_session).delete(process::delete_session),
        )
        .route("/process/session/{session}/exec", post(process::run))
        .route("/process/session/{session}/logs", get(process::first_logs))
        .route(
            "/process/session/{session}/command/{command}",
            get(process::get_command),
        )
        .route(
            "/process/session/{session}/command/{command}/logs",
            get(process::logs),
        )
        .route(
            "/process/session/{session}/command/{command}/input",
            post(process::input),
        )
        .route("/work-dir", get(process::work_dir))
        .route("/user-home-dir", get(process::work_dir))
        .route("/port", get(process::ports))
        .route("/port/{port}/in-use", get(process::port_in_use))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .merge(files)
        .layer(from_fn(plain_words))
}

/// Gives extractors' refusals (a missing query field, an oversized body) the toolbox's shape.
async fn plain_words(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let status = response.status();
    let plain = response
        .headers()
        .get("content-type")
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/plain"));
    if !status.is_client_error() || !plain {
        return response;
    }
    let text = axum::body::to_bytes(response.into_body(), BODY_BYTES_MAX)
        .await
        .unwrap_or_default();
    Fail::new(
        status.as_u16(),
        format!("bad request: {}", String::from_utf8_lossy(&text)),
    )
    .into_response()
}

/// One call into a started sandbox, which counts as activity.
async fn call(
    shared: &Context,
    id: &str,
    request: &axum::http::HeaderMap,
    op: Op,
) -> Result<Value, Fail> {
    let found = {
        let inner = shared.store.lock();
        let entry = inner.sandboxes.get(id);
        let entry = entry.ok_or_else(|| {
            Fail::new(404, format!("not found: sandbox container not found: {id}"))
        })?;
        entry.guest.clone()
    };
    let guest = found.ok_or_else(|| Fail::not_started(id))?;
    if !request.contains_key(SKIP_ACTIVITY) {
        shared.touch(id);
    }
    match guest.call(op).await {
        Some(Ok(value)) => Ok(value),
        Some(Err(refusal)) => Err(Fail::new(refusal.status, refusal.message).code(&refusal.code)),
        None => Err(Fail::not_started(id)),
    }
}

/// The variables of a process: the create-time ones, secret placeholders, those of the call.
fn environment(shared: &Context, id: &str, own: Environment) -> Environment {
    let inner = shared.store.lock();
    let mut all = Environment::new();
    if let Some(entry) = inner.sandboxes.get(id) {
        let secrets = entry.record.secrets.iter().filter_map(|(variable, name)| {
            let secret = inner
                .shelf
                .secrets
                .values()
                .find(|secret| secret.name == *name)?;
            Some((variable.clone(), secret.placeholder.clone()))
        });
        all.extend(entry.record.env.clone());
        all.extend(secrets);
    }
    all.extend(own);
    all
}

type Sandbox = (State<Context>, Path<String>);

/// Answers the value as it came.
fn json(value: Value) -> Answer {
    Ok(axum::Json(value).into_response())
}
