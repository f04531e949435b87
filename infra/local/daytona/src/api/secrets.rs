//! Secrets; their values are never returned.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::{Value, json};

use super::page::ListQuery;
use crate::api_error::ApiError;
use crate::http::{ApiResult, EngineState, parse};
use crate::limits::SECRETS_MAX;
use crate::random::{token, uuid};
use crate::secret::DaytonaSecret;

#[derive(Deserialize)]
struct WriteSecretBody {
    name: Option<String>,
    description: Option<String>,
    value: Option<String>,
    hosts: Option<Vec<String>>,
}

/// Refuses secrets where they cannot be put into requests, rather than storing one without effect.
pub(super) async fn unsupported() -> ApiError {
    ApiError::new(
        501,
        "Sandboxes have no network of their own on this machine, so no secret can be put into their requests",
    )
}

pub(super) async fn create(State(engine): EngineState, body: Bytes) -> ApiResult {
    let asked: WriteSecretBody = parse(&body)?;
    let (Some(name), Some(value)) = (asked.name, asked.value) else {
        return Err(ApiError::bad("name and value are needed"));
    };
    let now = engine.clock.now_ms();
    let secrets = &mut engine.store.lock().secrets;
    if secrets.values().any(|other| other.name == name) {
        return Err(ApiError::new(409, format!("Secret with name {name} already exists")));
    }
    if secrets.len() >= SECRETS_MAX {
        return Err(ApiError::bad(format!(
            "Secret limit exceeded. Maximum allowed: {SECRETS_MAX}"
        )));
    }
    let secret = DaytonaSecret {
        id: uuid(),
        name,
        placeholder: format!("dtn_secret_{}", token(12)),
        value,
        description: asked.description,
        hosts: asked.hosts.unwrap_or_default(),
        created_at: now,
        updated_at: now,
    };
    let created = secret.to_json();
    secrets.insert(secret.id.clone(), secret);
    Ok((StatusCode::CREATED, Json(created)).into_response())
}

fn not_found(id: &str) -> ApiError {
    ApiError::new(404, format!("Secret with ID {id} not found"))
}

pub(super) async fn get(State(engine): EngineState, Path(id): Path<String>) -> ApiResult {
    let inner = engine.store.lock();
    let secret = inner.secrets.get(&id).ok_or_else(|| not_found(&id))?;
    Ok(Json(secret.to_json()).into_response())
}

pub(super) async fn update(
    State(engine): EngineState,
    Path(id): Path<String>,
    body: Bytes,
) -> ApiResult {
    let asked: WriteSecretBody = parse(&body)?;
    let now = engine.clock.now_ms();
    let secrets = &mut engine.store.lock().secrets;
    let secret = secrets.get_mut(&id).ok_or_else(|| not_found(&id))?;
    if let Some(hosts) = asked.hosts {
        secret.hosts = hosts;
    }
    if let Some(value) = asked.value {
        secret.value = value;
    }
    if asked.description.is_some() {
        secret.description = asked.description;
    }
    secret.updated_at = now;
    Ok(Json(secret.to_json()).into_response())
}

pub(super) async fn delete(State(engine): EngineState, Path(id): Path<String>) -> ApiResult {
    let removed = engine.store.lock().secrets.remove(&id);
    removed.ok_or_else(|| not_found(&id))?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The cursor is the index of the page's first item.
pub(super) async fn list(State(engine): EngineState, Query(page): Query<ListQuery>) -> ApiResult {
    let limit = page.limit()?;
    let from: usize = match page.cursor.as_deref().filter(|cursor| !cursor.is_empty()) {
        Some(cursor) => cursor.parse().map_err(|_| ApiError::bad("Invalid cursor"))?,
        None => 0,
    };
    let secrets = &engine.store.lock().secrets;
    let next = from.saturating_add(limit);
    let next = (next < secrets.len()).then(|| next.to_string());
    let on_page = secrets.values().skip(from).take(limit);
    let items: Vec<Value> = on_page.map(DaytonaSecret::to_json).collect();
    Ok(Json(json!({ "items": items, "total": secrets.len(), "nextCursor": next })).into_response())
}
