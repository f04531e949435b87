//! The bytes of files, up and down.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Multipart, Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{Sandbox, call, json as answer};
use super::files::FileQuery;
use crate::api_error::ApiError;
use crate::clock;
use crate::engine::Engine;
use crate::http::{Answer, parse};
use crate::init::protocol::{Data, Op};
use crate::limits::FILE_BYTES_MAX;
use crate::random::token;

async fn read(
    engine: &Engine,
    id: &str,
    headers: &HeaderMap,
    path: &str,
) -> Result<Vec<u8>, ApiError> {
    let value = call(
        engine,
        id,
        headers,
        Op::Read {
            path: path.to_owned(),
        },
    )
    .await?;
    let data: Data = serde_json::from_value(value["data"].clone()).map_err(ApiError::internal)?;
    data.bytes()
        .ok_or_else(|| ApiError::internal("a file did not come through"))
}

async fn write(
    engine: &Engine,
    id: &str,
    headers: &HeaderMap,
    path: String,
    bytes: &[u8],
) -> Result<Value, ApiError> {
    if bytes.len() > FILE_BYTES_MAX {
        return Err(ApiError::bad(format!(
            "bad request: a file may have {FILE_BYTES_MAX} bytes"
        )));
    }
    call(
        engine,
        id,
        headers,
        Op::Write {
            path,
            data: Data::new(bytes),
        },
    )
    .await
}

pub(super) async fn download(
    (State(engine), Path(id)): Sandbox,
    Query(query): Query<FileQuery>,
    headers: HeaderMap,
) -> Answer {
    let bytes = read(&engine, &id, &headers, &query.required_path()?).await?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
}

#[derive(Deserialize)]
struct BulkDownload {
    paths: Vec<String>,
}

/// One part a path: `file` with its bytes or `error` with the refusal, always 200.
pub(super) async fn bulk_download(
    (State(engine), Path(id)): Sandbox,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let BulkDownload { paths } = parse(&body)?;
    if paths.is_empty() {
        return Err(ApiError::bad(
            "bad request: request body must be {\"paths\": [ ... ]} and non-empty",
        ));
    }
    let boundary = token(40);
    let mut out = Vec::new();
    for path in &paths {
        let (part, kind, bytes) = match read(&engine, &id, &headers, path).await {
            Ok(bytes) => ("file", "application/octet-stream", bytes),
            Err(fail) => ("error", "application/json", error_part(&fail, path)),
        };
        if out.len() + bytes.len() > FILE_BYTES_MAX {
            return Err(ApiError::bad(format!(
                "bad request: more than {FILE_BYTES_MAX} bytes asked for at once"
            )));
        }
        let quoted = path
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace(['\r', '\n'], " ");
        let head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{part}\"; filename=\"{quoted}\"\r\n\
             Content-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            bytes.len()
        );
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(&bytes);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    let kind = format!("multipart/form-data; boundary={boundary}");
    Ok(([(header::CONTENT_TYPE, kind)], Body::from(out)).into_response())
}

fn error_part(fail: &ApiError, path: &str) -> Vec<u8> {
    let error = json!({
        "statusCode": fail.status.as_u16(), "source": "DAYTONA_DAEMON", "code": fail.code, "message": fail.message,
        "timestamp": clock::iso(clock::system_ms()), "path": path, "method": "POST",
    });
    error.to_string().into_bytes()
}

/// The bytes as they are, or a form with the field `file`.
pub(super) async fn upload(
    (State(engine), Path(id)): Sandbox,
    Query(query): Query<FileQuery>,
    headers: HeaderMap,
    request: Request,
) -> Answer {
    let path = query.required_path()?;
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();
    let bytes = if kind.starts_with("multipart/form-data") {
        let mut form = Multipart::from_request(request, &engine)
            .await
            .map_err(|error| broken(&error))?;
        loop {
            let field = form.next_field().await.map_err(|error| broken(&error))?;
            let field = field
                .ok_or_else(|| ApiError::bad("bad request: the form has no field \"file\""))?;
            if field.name() == Some("file") {
                break field.bytes().await.map_err(|error| broken(&error))?;
            }
        }
    } else {
        Bytes::from_request(request, &engine)
            .await
            .map_err(|error| broken(&error))?
    };
    let written = write(&engine, &id, &headers, path, &bytes).await?;
    answer(json!({ "name": written["name"], "path": written["path"], "type": written["type"] }))
}

fn broken(error: &impl std::fmt::Display) -> ApiError {
    ApiError::bad(format!(
        "bad request: the upload broke off or is too big: {error}"
    ))
}

/// `files[i].path` before `files[i].file`. What fails is told beside what was written.
pub(super) async fn bulk_upload(
    (State(engine), Path(id)): Sandbox,
    headers: HeaderMap,
    mut form: Multipart,
) -> Answer {
    let mut paths = BTreeMap::new();
    let (mut written, mut errors) = (Vec::new(), Vec::new());
    loop {
        let field = match form.next_field().await {
            Ok(Some(field)) => field,
            Ok(None) => break,
            Err(error) => {
                errors.push(error.to_string());
                break;
            }
        };
        let name = field.name().unwrap_or_default().to_owned();
        let Some((index, part)) = name
            .strip_prefix("files[")
            .and_then(|rest| rest.split_once("]."))
        else {
            continue;
        };
        match part {
            "path" => match field.text().await {
                Ok(path) => drop(paths.insert(index.to_owned(), path)),
                Err(error) => errors.push(format!("{name}: {error}")),
            },
            "file" => {
                let Some(path) = paths.get(index).cloned() else {
                    errors.push(format!("files[{index}].file: missing path"));
                    continue;
                };
                let result = match field.bytes().await {
                    Ok(bytes) => write(&engine, &id, &headers, path.clone(), &bytes).await,
                    Err(error) => Err(broken(&error)),
                };
                match result {
                    Ok(value) => {
                        written.push(json!({ "path": value["path"], "bytes": value["bytes"] }))
                    }
                    Err(fail) if fail.message.contains("Is the Sandbox started?") => {
                        return Err(fail);
                    }
                    Err(fail) => errors.push(format!("{path}: {}", fail.message)),
                }
            }
            _ => {}
        }
    }
    if errors.is_empty() && written.is_empty() {
        return Err(ApiError::bad("bad request: no files in the form"));
    }
    if errors.is_empty() {
        return answer(json!({ "files": written }));
    }
    Ok((
        StatusCode::BAD_REQUEST,
        Json(json!({ "errors": errors, "files": written })),
    )
        .into_response())
}
