//! Access to a sandbox's ports: preview links, and signed ones that need no header.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::json;

use crate::api_error::ApiError;
use crate::http::{ApiResult, EngineState};
use crate::limits::{SIGNED_MAX, SIGNED_SECONDS_MAX};
use crate::preview;
use crate::random::token;

type PreviewPath = Path<(String, u16)>;

pub(super) async fn preview(
    State(engine): EngineState,
    Path((sandbox, port)): PreviewPath,
) -> ApiResult {
    let id = engine.store.id_of(&sandbox)?;
    let url = preview::url(&engine, &id, port).await?;
    let record = engine.store.record(&id).ok_or_else(|| ApiError::no_sandbox(&sandbox))?;
    Ok(Json(json!({ "sandboxId": id, "url": url, "token": record.token })).into_response())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Lifetime {
    expires_in_seconds: Option<i64>,
}

pub(super) async fn signed(
    State(engine): EngineState,
    Path((sandbox, port)): PreviewPath,
    Query(lifetime): Query<Lifetime>,
) -> ApiResult {
    let seconds = lifetime.expires_in_seconds.unwrap_or(60);
    if !(1..=SIGNED_SECONDS_MAX).contains(&seconds) {
        return Err(ApiError::bad(format!(
            "expiresInSeconds must be between 1 and {SIGNED_SECONDS_MAX}"
        )));
    }
    let id = engine.store.id_of(&sandbox)?;
    let url = preview::url(&engine, &id, port).await?;
    let signed = token(16);
    let now = engine.clock.now_ms();
    let added = engine.store.change(&id, |entry| {
        entry.signed.retain(|_, (_, until)| *until > now);
        if entry.signed.len() >= SIGNED_MAX {
            return Err(ApiError::bad(format!(
                "more than {SIGNED_MAX} signed links of one sandbox"
            )));
        }
        entry.signed.insert(signed.clone(), (port, now + seconds * 1000));
        Ok(())
    });
    added.ok_or_else(|| ApiError::no_sandbox(&sandbox))??;
    let url = format!("{url}/?{}={signed}", preview::QUERY_TOKEN);
    Ok(Json(json!({ "sandboxId": id, "port": port, "token": signed, "url": url })).into_response())
}

pub(super) async fn expire(
    State(engine): EngineState,
    Path((sandbox, port, token)): Path<(String, u16, String)>,
) -> ApiResult {
    let id = engine.store.id_of(&sandbox)?;
    engine.store.change(&id, |entry| {
        if entry.signed.get(&token).is_some_and(|(of, _)| *of == port) {
            entry.signed.remove(&token);
        }
    });
    Ok(StatusCode::OK.into_response())
}
