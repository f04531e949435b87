//! File downloads and uploads.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::multipart::Field;
use axum::extract::{FromRequest, Multipart, Query, Request};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::{ToolboxSandbox, json as answer};
use super::files::FileQuery;
use crate::api_error::ApiError;
use crate::http::{ApiResult, parse};
use crate::init::protocol::{Base64Bytes, Op};
use crate::limits::FILE_BYTES_MAX;
use crate::random::token;

async fn read(sandbox: &ToolboxSandbox, path: String) -> Result<Vec<u8>, ApiError> {
    let value = sandbox.call(Op::Read { path }).await?;
    let data: Base64Bytes =
        serde_json::from_value(value["data"].clone()).map_err(ApiError::internal)?;
    data.bytes().ok_or_else(|| ApiError::internal("a file could not be received"))
}

async fn write(sandbox: &ToolboxSandbox, path: String, bytes: &[u8]) -> Result<Value, ApiError> {
    if bytes.len() > FILE_BYTES_MAX {
        return Err(ApiError::bad(format!("bad request: a file may have {FILE_BYTES_MAX} bytes")));
    }
    let data = Base64Bytes::new(bytes);
    sandbox.call(Op::Write { path, data, mode: None }).await
}

pub(super) async fn download(sandbox: ToolboxSandbox, Query(query): Query<FileQuery>) -> ApiResult {
    let bytes = read(&sandbox, query.required_path()?).await?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
}

#[derive(Deserialize)]
struct BulkDownload {
    paths: Vec<String>,
}

/// One part per path: `file` with its bytes or `error` with the refusal; always 200.
pub(super) async fn bulk_download(sandbox: ToolboxSandbox, body: Bytes) -> ApiResult {
    let BulkDownload { paths } = parse(&body)?;
    if paths.is_empty() {
        return Err(ApiError::bad(
            "bad request: request body must be {\"paths\": [ ... ]} and non-empty",
        ));
    }
    let boundary = token(40);
    let mut out = Vec::new();
    for path in &paths {
        let (part, kind, bytes) = match read(&sandbox, path.clone()).await {
            Ok(bytes) => ("file", "application/octet-stream", bytes),
            Err(error) => ("error", "application/json", error_part(&error, path)),
        };
        if out.len() + bytes.len() > FILE_BYTES_MAX {
            return Err(ApiError::bad(format!(
                "bad request: more than {FILE_BYTES_MAX} bytes asked for at once"
            )));
        }
        let quoted = path.replace('\\', "\\\\").replace('"', "\\\"").replace(['\r', '\n'], " ");
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

fn error_part(error: &ApiError, path: &str) -> Vec<u8> {
    error.toolbox_body("DAYTONA_DAEMON", path, "POST").to_string().into_bytes()
}

/// Raw bytes, or a form with the field `file`.
pub(super) async fn upload(
    sandbox: ToolboxSandbox,
    Query(query): Query<FileQuery>,
    request: Request,
) -> ApiResult {
    let path = query.required_path()?;
    let kind = request.headers().get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let bytes = if kind.starts_with("multipart/form-data") {
        let form = Multipart::from_request(request, &sandbox.engine).await;
        let mut form = form.map_err(|error| broken(&error))?;
        loop {
            let field = form.next_field().await.map_err(|error| broken(&error))?;
            let field = field
                .ok_or_else(|| ApiError::bad("bad request: the form has no field \"file\""))?;
            if field.name() == Some("file") {
                break field.bytes().await.map_err(|error| broken(&error))?;
            }
        }
    } else {
        let body = Bytes::from_request(request, &sandbox.engine).await;
        body.map_err(|error| broken(&error))?
    };
    let written = write(&sandbox, path, &bytes).await?;
    answer(json!({ "name": written["name"], "path": written["path"], "type": written["type"] }))
}

fn broken(error: &impl std::fmt::Display) -> ApiError {
    ApiError::bad(format!("bad request: the upload broke off or is too big: {error}"))
}

/// Progress of an upload of many files.
#[derive(Default)]
struct BulkUpload {
    /// By the file's number in the form.
    paths: BTreeMap<String, String>,
    written: Vec<Value>,
    errors: Vec<String>,
}

impl BulkUpload {
    /// Takes one field: `files[i].path` before `files[i].file`.
    ///
    /// # Errors
    /// The sandbox is not started; other errors are collected.
    async fn take(&mut self, sandbox: &ToolboxSandbox, field: Field<'_>) -> Result<(), ApiError> {
        let name = field.name().unwrap_or_default().to_owned();
        let numbered = name.strip_prefix("files[");
        match numbered.and_then(|rest| rest.split_once("].")) {
            Some((number, "path")) => match field.text().await {
                Ok(path) => drop(self.paths.insert(number.to_owned(), path)),
                Err(error) => self.errors.push(format!("{name}: {error}")),
            },
            Some((number, "file")) => {
                let Some(path) = self.paths.get(number).cloned() else {
                    self.errors.push(format!("files[{number}].file: missing path"));
                    return Ok(());
                };
                let result = match field.bytes().await {
                    Ok(bytes) => write(sandbox, path.clone(), &bytes).await,
                    Err(error) => Err(broken(&error)),
                };
                match result {
                    Ok(file) => {
                        self.written.push(json!({ "path": file["path"], "bytes": file["bytes"] }))
                    }
                    Err(error) if error.message.contains("Is the Sandbox started?") => {
                        return Err(error);
                    }
                    Err(error) => self.errors.push(format!("{path}: {}", error.message)),
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Many files in one form. Errors are reported together with the written files.
pub(super) async fn bulk_upload(sandbox: ToolboxSandbox, mut form: Multipart) -> ApiResult {
    let mut upload = BulkUpload::default();
    loop {
        match form.next_field().await {
            Ok(Some(field)) => upload.take(&sandbox, field).await?,
            Ok(None) => break,
            Err(error) => {
                upload.errors.push(error.to_string());
                break;
            }
        }
    }
    let BulkUpload { written, errors, .. } = upload;
    if errors.is_empty() && written.is_empty() {
        return Err(ApiError::bad("bad request: no files in the form"));
    }
    if errors.is_empty() {
        return answer(json!({ "files": written }));
    }
    let body = json!({ "errors": errors, "files": written });
    Ok((StatusCode::BAD_REQUEST, Json(body)).into_response())
}
