//! Files: listings, searches, folders, moves and deletions.

use axum::extract::Query;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Deserialize;

use super::call::ToolboxSandbox;
use crate::api_error::ApiError;
use crate::http::ApiResult;
use crate::init::protocol::Op;

/// Query of the file calls; each uses the fields it knows.
#[derive(Deserialize)]
pub(super) struct FileQuery {
    #[serde(default)]
    path: String,
    #[serde(default)]
    depth: Option<u32>,
    #[serde(default)]
    mode: Option<String>,
    #[serde(default)]
    pattern: String,
    #[serde(default)]
    recursive: bool,
    #[serde(default)]
    source: String,
    #[serde(default)]
    destination: String,
}

impl FileQuery {
    /// The path, for calls that require one.
    pub(super) fn required_path(self) -> Result<String, ApiError> {
        required(self.path, "path")
    }
}

fn required(value: String, name: &str) -> Result<String, ApiError> {
    if value.is_empty() {
        Err(ApiError::bad(format!("bad request: {name} is required")))
    } else {
        Ok(value)
    }
}

pub(super) async fn list(sandbox: ToolboxSandbox, Query(query): Query<FileQuery>) -> ApiResult {
    let (path, depth) = (query.path, query.depth.unwrap_or(1));
    sandbox.answer(Op::List { path, depth }).await
}

pub(super) async fn info(sandbox: ToolboxSandbox, Query(query): Query<FileQuery>) -> ApiResult {
    let path = query.required_path()?;
    sandbox.answer(Op::Info { path }).await
}

pub(super) async fn create_folder(
    sandbox: ToolboxSandbox,
    Query(query): Query<FileQuery>,
) -> ApiResult {
    let text = query.mode.as_deref().unwrap_or("0755");
    let mode = u32::from_str_radix(text, 8).ok();
    let mode = mode
        .filter(|mode| *mode <= 0o7777)
        .ok_or_else(|| ApiError::bad(format!("bad request: invalid mode {text}")))?;
    let path = query.required_path()?;
    sandbox.call(Op::Folder { path, mode, parents: true }).await?;
    Ok(StatusCode::CREATED.into_response())
}

pub(super) async fn rename(sandbox: ToolboxSandbox, Query(query): Query<FileQuery>) -> ApiResult {
    let op = Op::Move {
        source: required(query.source, "source")?,
        destination: required(query.destination, "destination")?,
    };
    sandbox.call(op).await?;
    Ok(StatusCode::OK.into_response())
}

pub(super) async fn delete(sandbox: ToolboxSandbox, Query(query): Query<FileQuery>) -> ApiResult {
    let recursive = query.recursive;
    let path = query.required_path()?;
    sandbox.call(Op::Delete { path, recursive }).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) async fn search(sandbox: ToolboxSandbox, Query(query): Query<FileQuery>) -> ApiResult {
    let pattern = required(query.pattern, "pattern")?;
    let path = query.path;
    sandbox.answer(Op::Search { path, pattern }).await
}

pub(super) async fn find(sandbox: ToolboxSandbox, Query(query): Query<FileQuery>) -> ApiResult {
    let pattern = required(query.pattern, "pattern")?;
    let path = query.path;
    sandbox.answer(Op::Find { path, pattern }).await
}
