//! Secrets and the configuration: what is kept beside the sandboxes.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answer, parse};
use crate::clock::iso;
use crate::fail::Fail;
use crate::limits::{AUTO_ARCHIVE_MINUTES_MAX, PAGE_DEFAULT, PAGE_MAX, SECRETS_MAX};
use crate::record::{token, uuid};
use crate::shared::Context;
use crate::store::Secret;

type Shared = State<Context>;

#[derive(Deserialize)]
pub(super) struct Page {
    pub(super) page: Option<usize>,
    limit: Option<usize>,
    pub(super) name: Option<String>,
    pub(super) order: Option<String>,
    cursor: Option<String>,
}

pub(super) fn limit(page: &Page) -> Result<usize, Fail> {
    let limit = page.limit.unwrap_or(PAGE_DEFAULT);
    if (1..=PAGE_MAX).contains(&limit) {
        Ok(limit)
    } else {
        Err(Fail::bad(format!("limit must be between 1 and {PAGE_MAX}")))
    }
}

#[derive(Deserialize)]
struct WriteSecret {
    name: Option<String>,
    description: Option<String>,
    value: Option<String>,
    hosts: Option<Vec<String>>,
}

/// What is told where values cannot be put into requests, in place of keeping a secret that would do nothing.
pub(super) async fn no_secrets() -> Fail {
    Fail::new(
        501,
        "Sandboxes have no network of their own on this machine, so no secret can be put into their requests",
    )
}

pub(super) async fn create_secret(State(shared): Shared, body: Bytes) -> Answer {
    let asked: WriteSecret = parse(&body)?;
    let (Some(name), Some(value)) = (asked.name, asked.value) else {
        return Err(Fail::bad("name and value are needed"));
    };
    let now = shared.clock.now_ms();
    let shelf = &mut shared.store.lock().shelf;
    if shelf.secrets.values().any(|other| other.name == name) {
        return Err(Fail::new(
            409,
            format!("Secret with name {name} already exists"),
        ));
    }
    if shelf.secrets.len() >= SECRETS_MAX {
        return Err(Fail::bad(format!(
            "Secret limit exceeded. Maximum allowed: {SECRETS_MAX}"
        )));
    }
    let secret = Secret {
        id: uuid(),
        name,
        placeholder: format!("dtn_secret_{}", token(12)),
        value,
        description: asked.description,
        hosts: asked.hosts.unwrap_or_default(),
        created_at: now,
        updated_at: now,
    };
    shelf.secrets.insert(secret.id.clone(), secret.clone());
    Ok((StatusCode::CREATED, Json(secret_view(&secret))).into_response())
}

fn secret_view(secret: &Secret) -> Value {
    let mut view = json!({
        "id": secret.id, "name": secret.name, "placeholder": secret.placeholder, "hosts": secret.hosts,
        "createdAt": iso(secret.created_at), "updatedAt": iso(secret.updated_at),
    });
    if let Some(description) = &secret.description {
        view["description"] = json!(description);
    }
    view
}

fn no_secret(id: &str) -> Fail {
    Fail::new(404, format!("Secret with ID {id} not found"))
}

pub(super) async fn get_secret(State(shared): Shared, Path(id): Path<String>) -> Answer {
    let inner = shared.store.lock();
    let secret = inner.shelf.secrets.get(&id).ok_or_else(|| no_secret(&id))?;
    Ok(Json(secret_view(secret)).into_response())
}

pub(super) async fn update_secret(
    State(shared): Shared,
    Path(id): Path<String>,
    body: Bytes,
) -> Answer {
    let asked: WriteSecret = parse(&body)?;
    let now = shared.clock.now_ms();
    let shelf = &mut shared.store.lock().shelf;
    let secret = shelf.secrets.get_mut(&id).ok_or_else(|| no_secret(&id))?;
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
    Ok(Json(secret_view(secret)).into_response())
}

pub(super) async fn delete_secret(State(shared): Shared, Path(id): Path<String>) -> Answer {
    let shelf = &mut shared.store.lock().shelf;
    shelf.secrets.remove(&id).ok_or_else(|| no_secret(&id))?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn all_secrets(shared: &Context) -> Vec<Value> {
    shared
        .store
        .lock()
        .shelf
        .secrets
        .values()
        .map(secret_view)
        .collect()
}

/// The cursor is the number of the page's first item.
pub(super) async fn list_secrets(State(shared): Shared, Query(page): Query<Page>) -> Answer {
    let limit = limit(&page)?;
    let from: usize = match page.cursor.as_deref().filter(|cursor| !cursor.is_empty()) {
        Some(cursor) => cursor.parse().map_err(|_| Fail::bad("Invalid cursor"))?,
        None => 0,
    };
    let all = all_secrets(&shared);
    let next = from.saturating_add(limit);
    let next = (next < all.len()).then(|| next.to_string());
    let items: Vec<&Value> = all.iter().skip(from).take(limit).collect();
    Ok(Json(json!({ "items": items, "total": all.len(), "nextCursor": next })).into_response())
}

pub(super) async fn config(State(shared): Shared) -> Response {
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "oidc": { "issuer": "", "clientId": "", "audience": "" },
        "linkedAccountsEnabled": false, "announcements": {}, "environment": "local", "maintananceMode": false,
        "proxyTemplateUrl": "http://127.0.0.1:{{PORT}}", "proxyToolboxUrl": shared.toolbox_url,
        "defaultSnapshot": shared.default_snapshot, "dashboardUrl": "",
        "maxAutoArchiveInterval": AUTO_ARCHIVE_MINUTES_MAX, "rateLimit": {},
    }))
    .into_response()
}
