//! Files of a session: written as a packed archive, read one by one.

use std::io::Read as _;
use std::path::Path as FsPath;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use bobbin_local_sandbox::init::protocol::{Base64Bytes, Op};
use bobbin_local_sandbox::init_process::InitProcess;
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{EngineState, json_answer, parse};
use crate::api_error::{ApiError, ApiResult};
use crate::limits::FILE_BYTES_MAX;
use crate::state::SharedEngine;

/// Permission bits of created parent folders.
const FOLDER_MODE: u32 = 0o755;

/// A session's first process and its directory.
fn running(engine: &SharedEngine, session: &str) -> Result<(Arc<InitProcess>, String), ApiError> {
    let inner = engine.lock();
    let entry = inner.of_session(session)?;
    Ok((entry.running(session)?, engine.cwd(&entry.record)))
}

async fn call(process: &InitProcess, op: Op) -> Result<Value, ApiError> {
    match process.call(op).await {
        Some(outcome) => Ok(outcome?),
        None => Err(ApiError::stopped()),
    }
}

/// An archive entry: path, permission bits, and bytes unless it is a folder.
type Packed = (String, u32, Option<Vec<u8>>);

fn unpack(body: &[u8]) -> std::io::Result<Vec<Packed>> {
    let mut archive = tar::Archive::new(GzDecoder::new(body).take(FILE_BYTES_MAX as u64));
    let mut all = Vec::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.to_string_lossy().into_owned();
        let mode = entry.header().mode()? & 0o7777;
        let kind = entry.header().entry_type();
        if kind.is_dir() {
            all.push((path, mode, None));
        } else if kind.is_file() {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes)?;
            all.push((path, mode, Some(bytes)));
        } else {
            return Err(std::io::Error::other(format!("{path} is neither file nor folder")));
        }
    }
    Ok(all)
}

pub(super) async fn write(
    State(engine): EngineState,
    Path(session): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> ApiResult {
    let (process, cwd) = running(&engine, &session)?;
    let at = headers.get("x-cwd").and_then(|at| at.to_str().ok());
    let at = FsPath::new(at.unwrap_or(&cwd)).to_owned();
    let unpacked = unpack(&body);
    let unpacked = unpacked.map_err(|error| ApiError::bad(format!("Invalid archive: {error}")))?;
    for (path, mode, bytes) in unpacked {
        let path = at.join(path).to_string_lossy().into_owned();
        let op = match bytes {
            Some(bytes) => Op::Write { path, data: Base64Bytes::new(&bytes), mode: Some(mode) },
            None => Op::Folder { path, mode, parents: true },
        };
        call(&process, op).await?;
    }
    json_answer(json!({}))
}

#[derive(Deserialize)]
struct At {
    path: String,
    cwd: Option<String>,
}

impl At {
    /// Relative paths are resolved against the given directory, else the session's.
    fn path(self, own: &str) -> String {
        let cwd = FsPath::new(own).join(self.cwd.unwrap_or_default());
        cwd.join(self.path).to_string_lossy().into_owned()
    }
}

pub(super) async fn read(
    State(engine): EngineState,
    Path(session): Path<String>,
    body: Bytes,
) -> ApiResult {
    let (process, cwd) = running(&engine, &session)?;
    let path = parse::<At>(&body)?.path(&cwd);
    let read = call(&process, Op::Read { path }).await?;
    let data: Base64Bytes =
        serde_json::from_value(read["data"].clone()).map_err(ApiError::internal)?;
    let bytes = data.bytes();
    let bytes = bytes.ok_or_else(|| ApiError::internal("a file could not be received"))?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
}

pub(super) async fn make_folder(
    State(engine): EngineState,
    Path(session): Path<String>,
    body: Bytes,
) -> ApiResult {
    let (process, cwd) = running(&engine, &session)?;
    let path = parse::<At>(&body)?.path(&cwd);
    let op = Op::Folder { path, mode: FOLDER_MODE, parents: false };
    // A missing parent is the caller's error too.
    call(&process, op).await.map_err(|error| match error.code {
        "not_found" => ApiError::bad(error.message),
        _ => error,
    })?;
    json_answer(json!({}))
}
