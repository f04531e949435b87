//! How to reach a port of a sandbox: preview links, and signed ones that need no header.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::json;

use super::Answer;
use crate::fail::Fail;
use crate::limits::{SIGNED_MAX, SIGNED_SECONDS_MAX};
use crate::preview;
use crate::record::token;
use crate::shared::Context;

type Port = Path<(String, u16)>;

pub(super) async fn preview(State(shared): State<Context>, Path((sandbox, port)): Port) -> Answer {
    let id = shared.store.id_of(&sandbox)?;
    let url = preview::url(&shared, &id, port).await?;
    let record = shared
        .store
        .record(&id)
        .ok_or_else(|| Fail::no_sandbox(&sandbox))?;
    Ok(Json(json!({ "sandboxId": id, "url": url, "token": record.token })).into_response())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Life {
    expires_in_seconds: Option<i64>,
}

pub(super) async fn signed(
    State(shared): State<Context>,
    Path((sandbox, port)): Port,
    Query(life): Query<Life>,
) -> Answer {
    let seconds = life.expires_in_seconds.unwrap_or(60);
    if !(1..=SIGNED_SECONDS_MAX).contains(&seconds) {
        return Err(Fail::bad(format!(
            "expiresInSeconds must be between 1 and {SIGNED_SECONDS_MAX}"
        )));
    }
    let id = shared.store.id_of(&sandbox)?;
    let url = preview::url(&shared, &id, port).await?;
    let signed = token(16);
    let now = shared.clock.now_ms();
    let added = shared.store.change(&id, |entry| {
        entry.signed.retain(|_, (_, until)| *until > now);
        if entry.signed.len() >= SIGNED_MAX {
            return Err(Fail::bad(format!(
                "more than {SIGNED_MAX} signed links of one sandbox"
            )));
        }
        entry
            .signed
            .insert(signed.clone(), (port, now + seconds * 1000));
        Ok(())
    });
    added.ok_or_else(|| Fail::no_sandbox(&sandbox))??;
    let url = format!("{url}/?{}={signed}", preview::QUERY_TOKEN);
    Ok(Json(json!({ "sandboxId": id, "port": port, "token": signed, "url": url })).into_response())
}

pub(super) async fn expire(
    State(shared): State<Context>,
    Path((sandbox, port, token)): Path<(String, u16, String)>,
) -> Answer {
    let id = shared.store.id_of(&sandbox)?;
    shared.store.change(&id, |entry| {
        if entry.signed.get(&token).is_some_and(|(of, _)| *of == port) {
            entry.signed.remove(&token);
        }
    });
    Ok(StatusCode::OK.into_response())
}
