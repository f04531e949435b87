//! Logs of jobs, and the addresses under which they are read: each good for a minute, without credentials.

use std::path::PathBuf;

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bobbin_local_sandbox::disk::write_atomically;
use bobbin_local_sandbox::random::token;
use chrono::DateTime;

use crate::api_error::ApiError;
use crate::limits::{LOG_BYTES_MAX, LOG_LINK_MS};
use crate::state::SharedEngine;

fn file(engine: &SharedEngine, job: u64) -> PathBuf {
    engine.logs_dir().join(format!("{job}.log"))
}

/// Keeps the log of a job, each line with the time at which its steps ran.
///
/// # Errors
/// It is too long, or the disk refused it.
pub(crate) fn keep(
    engine: &SharedEngine,
    job: u64,
    text: &str,
    ran_at: i64,
) -> Result<(), ApiError> {
    if text.len() > LOG_BYTES_MAX {
        return Err(ApiError::bad("This log is longer than the forge keeps"));
    }
    let time = DateTime::from_timestamp_millis(ran_at).unwrap_or_default();
    let time = time.format("%Y-%m-%dT%H:%M:%S%.3f0000Z");
    let lines = text.lines().map(|line| format!("{time} {line}\n"));
    let text: String = lines.collect();
    write_atomically(&file(engine, job), text.as_bytes()).map_err(ApiError::internal)
}

/// An address for reading the log of a job.
pub(crate) fn link(engine: &SharedEngine, job: u64) -> String {
    let key = token(43);
    let now = engine.clock.now_ms();
    let mut links = engine.log_links();
    links.retain(|_, (_, end)| *end > now);
    links.insert(key.clone(), (job, now + LOG_LINK_MS));
    format!("{}/actions-results/{job}/job-logs.txt?sp=r&sig={key}", engine.addresses.web)
}

fn refused(status: StatusCode, code: &'static str) -> Response {
    let text =
        format!("<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>{code}</Code></Error>");
    let headers = [(header::CONTENT_TYPE.as_str(), "application/xml"), ("x-ms-error-code", code)];
    (status, headers, text).into_response()
}

/// The log behind an address, as the blob store behind GitHub answers.
pub(crate) fn answer(
    engine: &SharedEngine,
    headers: &HeaderMap,
    job: &str,
    key: Option<&str>,
) -> Response {
    if headers.contains_key(header::AUTHORIZATION) {
        return refused(StatusCode::BAD_REQUEST, "InvalidAuthenticationInfo");
    }
    let now = engine.clock.now_ms();
    let known = key.and_then(|key| engine.log_links().get(key).copied());
    let known = known.filter(|(of, end)| *end > now && of.to_string() == job);
    let Some((job, _)) = known else {
        return refused(StatusCode::FORBIDDEN, "AuthenticationFailed");
    };
    match std::fs::read(file(engine, job)) {
        Ok(text) => ([(header::CONTENT_TYPE, "text/plain")], text).into_response(),
        Err(_) => refused(StatusCode::NOT_FOUND, "BlobNotFound"),
    }
}
