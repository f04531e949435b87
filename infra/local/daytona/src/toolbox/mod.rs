//! The toolbox of a started sandbox: commands, sessions, files. The sandbox's first process does all the work.

mod call;
mod files;
mod inspect;
mod logs;
mod process;
mod transfer;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use crate::api_error::ApiError;
use crate::engine::SharedEngine;
use crate::limits::{BODY_BYTES_MAX, FILE_BYTES_MAX};

/// The routes of one sandbox, below `/toolbox/{sandbox}`.
pub(crate) fn router() -> Router<SharedEngine> {
    let files = Router::new()
        .route("/files", get(files::list).delete(files::delete))
        .route("/files/info", get(files::info))
        .route("/files/folder", post(files::create_folder))
        .route("/files/move", post(files::rename))
        .route("/files/search", get(files::search))
        .route("/files/find", get(files::find))
        .route("/files/download", get(transfer::download))
        .route("/files/bulk-download", post(transfer::bulk_download))
        .route("/files/upload-v2", post(transfer::upload))
        .route("/files/bulk-upload", post(transfer::bulk_upload))
        .layer(DefaultBodyLimit::max(FILE_BYTES_MAX + BODY_BYTES_MAX));
    let sessions = Router::new()
        .route("/", get(process::get_session).delete(process::delete_session))
        .route("/exec", post(process::run))
        .route("/logs", get(logs::of_first_command))
        .route("/command/{command}", get(process::get_command))
        .route("/command/{command}/logs", get(logs::of_command))
        .route("/command/{command}/input", post(process::input));
    Router::new()
        .route("/process/execute", post(process::execute))
        .route("/process/session", post(process::create_session).get(process::list_sessions))
        .nest("/process/session/{session}", sessions)
        .route("/work-dir", get(inspect::work_dir))
        .route("/user-home-dir", get(inspect::work_dir))
        .route("/port", get(inspect::ports))
        .route("/port/{port}/in-use", get(inspect::port_in_use))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .merge(files)
        .layer(from_fn(reword_rejections))
}

/// Gives extractor rejections (a missing query field, an oversized body) the toolbox's format.
async fn reword_rejections(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let status = response.status();
    let plain = response
        .headers()
        .get("content-type")
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/plain"));
    if !status.is_client_error() || !plain {
        return response;
    }
    let text = axum::body::to_bytes(response.into_body(), BODY_BYTES_MAX).await.unwrap_or_default();
    ApiError::new(status.as_u16(), format!("bad request: {}", String::from_utf8_lossy(&text)))
        .into_response()
}
