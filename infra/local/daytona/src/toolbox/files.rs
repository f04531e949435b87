//! Files: lists, searches, folders, moves and removals.

use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use serde::Deserialize;

use super::call::{Sandbox, call, json as answer};
use crate::api_error::ApiError;
use crate::http::Answer;
use crate::init::protocol::Op;

/// What the file calls take in their query; each reads the fields that it knows.
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
    /// The path, where a call cannot do without it.
    pub(super) fn required_path(&self) -> Result<String, ApiError> {
        required(&self.path, "path")
    }
}

fn required(value: &str, name: &str) -> Result<String, ApiError> {
    if value.is_empty() {
        Err(ApiError::bad(format!("bad request: {name} is required")))
    } else {
        Ok(value.to_owned())
    }
}

pub(super) async fn list(
    (State(engine), Path(id)): Sandbox,
    Query(query): Query<FileQuery>,
    headers: HeaderMap,
) -> Answer {
    let op = Op::List {
        path: query.path,
        depth: query.depth.unwrap_or(1),
    };
    answer(call(&engine, &id, &headers, op).await?)
}

pub(super) async fn info(
    (State(engine), Path(id)): Sandbox,
    Query(query): Query<FileQuery>,
    headers: HeaderMap,
) -> Answer {
    answer(
        call(
            &engine,
            &id,
            &headers,
            Op::Info {
                path: query.required_path()?,
            },
        )
        .await?,
    )
}

pub(super) async fn create_folder(
    (State(engine), Path(id)): Sandbox,
    Query(query): Query<FileQuery>,
    headers: HeaderMap,
) -> Answer {
    let text = query.mode.clone().unwrap_or_else(|| "0755".to_owned());
    let mode = u32::from_str_radix(&text, 8)
        .ok()
        .filter(|mode| *mode <= 0o7777);
    let mode = mode.ok_or_else(|| ApiError::bad(format!("bad request: invalid mode {text}")))?;
    call(
        &engine,
        &id,
        &headers,
        Op::Folder {
            path: query.required_path()?,
            mode,
        },
    )
    .await?;
    Ok(StatusCode::CREATED.into_response())
}

pub(super) async fn rename(
    (State(engine), Path(id)): Sandbox,
    Query(query): Query<FileQuery>,
    headers: HeaderMap,
) -> Answer {
    let (source, destination) = (
        required(&query.source, "source")?,
        required(&query.destination, "destination")?,
    );
    call(
        &engine,
        &id,
        &headers,
        Op::Move {
            source,
            destination,
        },
    )
    .await?;
    Ok(StatusCode::OK.into_response())
}

pub(super) async fn delete(
    (State(engine), Path(id)): Sandbox,
    Query(query): Query<FileQuery>,
    headers: HeaderMap,
) -> Answer {
    call(
        &engine,
        &id,
        &headers,
        Op::Delete {
            path: query.required_path()?,
            recursive: query.recursive,
        },
    )
    .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) async fn search(
    (State(engine), Path(id)): Sandbox,
    Query(query): Query<FileQuery>,
    headers: HeaderMap,
) -> Answer {
    let pattern = required(&query.pattern, "pattern")?;
    answer(
        call(
            &engine,
            &id,
            &headers,
            Op::Search {
                path: query.path,
                pattern,
            },
        )
        .await?,
    )
}

pub(super) async fn find(
    (State(engine), Path(id)): Sandbox,
    Query(query): Query<FileQuery>,
    headers: HeaderMap,
) -> Answer {
    let pattern = required(&query.pattern, "pattern")?;
    answer(
        call(
            &engine,
            &id,
            &headers,
            Op::Find {
                path: query.path,
                pattern,
            },
        )
        .await?,
    )
}
