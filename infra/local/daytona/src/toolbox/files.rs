//! Files, up and down.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Multipart, Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Sandbox, call, json as answer};
use crate::api::{Answer, parse};
use crate::clock;
use crate::fail::Fail;
use crate::init::protocol::{Data, Op};
use crate::limits::FILE_BYTES_MAX;
use crate::record::token;
use crate::shared::Context;

#[derive(Deserialize)]
pub(super) struct At {
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

impl At {
    fn needed(&self) -> Result<String, Fail> {
        given(&self.path, "path")
    }
}

fn given(value: &str, name: &str) -> Result<String, Fail> {
    if value.is_empty() {
        Err(Fail::bad(format!("bad request: {name} is required")))
    } else {
        Ok(value.to_owned())
    }
}

pub(super) async fn list(
    (State(shared), Path(id)): Sandbox,
    Query(at): Query<At>,
    headers: HeaderMap,
) -> Answer {
    let op = Op::List {
        path: at.path,
        depth: at.depth.unwrap_or(1),
    };
    answer(call(&shared, &id, &headers, op).await?)
}

pub(super) async fn info(
    (State(shared), Path(id)): Sandbox,
    Query(at): Query<At>,
    headers: HeaderMap,
) -> Answer {
    answer(call(&shared, &id, &headers, Op::Info { path: at.needed()? }).await?)
}

pub(super) async fn folder(
    (State(shared), Path(id)): Sandbox,
    Query(at): Query<At>,
    headers: HeaderMap,
) -> Answer {
    let text = at.mode.clone().unwrap_or_else(|| "0755".to_owned());
    let mode = u32::from_str_radix(&text, 8)
        .ok()
        .filter(|mode| *mode <= 0o7777);
    let mode = mode.ok_or_else(|| Fail::bad(format!("bad request: invalid mode {text}")))?;
    call(
        &shared,
        &id,
        &headers,
        Op::Folder {
            path: at.needed()?,
            mode,
        },
    )
    .await?;
    Ok(StatusCode::CREATED.into_response())
}

pub(super) async fn relocate(
    (State(shared), Path(id)): Sandbox,
    Query(at): Query<At>,
    headers: HeaderMap,
) -> Answer {
    let (source, destination) = (
        given(&at.source, "source")?,
        given(&at.destination, "destination")?,
    );
    call(
        &shared,
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
    (State(shared), Path(id)): Sandbox,
    Query(at): Query<At>,
    headers: HeaderMap,
) -> Answer {
    call(
        &shared,
        &id,
        &headers,
        Op::Delete {
            path: at.needed()?,
            recursive: at.recursive,
        },
    )
    .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) async fn search(
    (State(shared), Path(id)): Sandbox,
    Query(at): Query<At>,
    headers: HeaderMap,
) -> Answer {
    let pattern = given(&at.pattern, "pattern")?;
    answer(
        call(
            &shared,
            &id,
            &headers,
            Op::Search {
                path: at.path,
                pattern,
            },
        )
        .await?,
    )
}

pub(super) async fn find(
    (State(shared), Path(id)): Sandbox,
    Query(at): Query<At>,
    headers: HeaderMap,
) -> Answer {
    let pattern = given(&at.pattern, "pattern")?;
    answer(
        call(
            &shared,
            &id,
            &headers,
            Op::Find {
                path: at.path,
                pattern,
            },
        )
        .await?,
    )
}

async fn read(
    shared: &Context,
    id: &str,
    headers: &HeaderMap,
    path: &str,
) -> Result<Vec<u8>, Fail> {
    let value = call(
        shared,
        id,
        headers,
        Op::Read {
            path: path.to_owned(),
        },
    )
    .await?;
    let data: Data = serde_json::from_value(value["data"].clone()).map_err(Fail::internal)?;
    data.bytes()
        .ok_or_else(|| Fail::internal("a file did not come through"))
}

async fn write(
    shared: &Context,
    id: &str,
    headers: &HeaderMap,
    path: String,
    bytes: &[u8],
) -> Result<Value, Fail> {
    if bytes.len() > FILE_BYTES_MAX {
        return Err(Fail::bad(format!(
            "bad request: a file may have {FILE_BYTES_MAX} bytes"
        )));
    }
    call(
        shared,
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
    (State(shared), Path(id)): Sandbox,
    Query(at): Query<At>,
    headers: HeaderMap,
) -> Answer {
    let bytes = read(&shared, &id, &headers, &at.needed()?).await?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
}

#[derive(Deserialize)]
struct Paths {
    paths: Vec<String>,
}

/// One part a path: `file` with its bytes or `error` with the refusal, always 200.
pub(super) async fn bulk_download(
    (State(shared), Path(id)): Sandbox,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let Paths { paths } = parse(&body)?;
    if paths.is_empty() {
        return Err(Fail::bad(
            "bad request: request body must be {\"paths\": [ ... ]} and non-empty",
        ));
    }
    let boundary = token(40);
    let mut out = Vec::new();
    for path in &paths {
        let (part, kind, bytes) = match read(&shared, &id, &headers, path).await {
            Ok(bytes) => ("file", "application/octet-stream", bytes),
            Err(fail) => ("error", "application/json", error_part(&fail, path)),
        };
        if out.len() + bytes.len() > FILE_BYTES_MAX {
            return Err(Fail::bad(format!(
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

fn error_part(fail: &Fail, path: &str) -> Vec<u8> {
    let error = json!({
        "statusCode": fail.status.as_u16(), "source": "DAYTONA_DAEMON", "code": fail.code, "message": fail.message,
        "timestamp": clock::iso(clock::system_ms()), "path": path, "method": "POST",
    });
    error.to_string().into_bytes()
}

/// The bytes as they are, or a form with the field `file`.
pub(super) async fn upload(
    (State(shared), Path(id)): Sandbox,
    Query(at): Query<At>,
    headers: HeaderMap,
    request: Request,
) -> Answer {
    let path = at.needed()?;
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();
    let bytes = if kind.starts_with("multipart/form-data") {
        let mut form = Multipart::from_request(request, &shared)
            .await
            .map_err(|error| broken(&error))?;
        loop {
            let field = form.next_field().await.map_err(|error| broken(&error))?;
            let field =
                field.ok_or_else(|| Fail::bad("bad request: the form has no field \"file\""))?;
            if field.name() == Some("file") {
                break field.bytes().await.map_err(|error| broken(&error))?;
            }
        }
    } else {
        Bytes::from_request(request, &shared)
            .await
            .map_err(|error| broken(&error))?
    };
    let written = write(&shared, &id, &headers, path, &bytes).await?;
    answer(json!({ "name": written["name"], "path": written["path"], "type": written["type"] }))
}

fn broken(error: &impl std::fmt::Display) -> Fail {
    Fail::bad(format!(
        "bad request: the upload broke off or is too big: {error}"
    ))
}

/// `files[i].path` before `files[i].file`. What fails is told beside what was written.
pub(super) async fn bulk_upload(
    (State(shared), Path(id)): Sandbox,
    headers: HeaderMap,
    mut form: Multipart,
) -> Answer {
    let mut paths = std::collections::BTreeMap::new();
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
                    Ok(bytes) => write(&shared, &id, &headers, path.clone(), &bytes).await,
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
        return Err(Fail::bad("bad request: no files in the form"));
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
