//! Snapshots, secrets and the configuration: what is kept beside the sandboxes.

use std::time::Duration;

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
use crate::limits::{AUTO_ARCHIVE_MINUTES_MAX, PAGE_DEFAULT, PAGE_MAX, SECRETS_MAX, SNAPSHOTS_MAX};
use crate::record::{ORGANIZATION, build_info, entrypoint_of, token, uuid};
use crate::shared::Context;
use crate::store::{Secret, Shelf, Snapshot};

type Shared = State<Context>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreateSnapshot {
    name: String,
    image_name: Option<String>,
    entrypoint: Option<Vec<String>>,
    build_info: Option<Build>,
    cpu: Option<i64>,
    memory: Option<i64>,
    disk: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Build {
    dockerfile_content: Option<String>,
}

pub(super) async fn create_snapshot(State(shared): Shared, body: Bytes) -> Answer {
    let asked: CreateSnapshot = parse(&body)?;
    let now = shared.clock.now_ms();
    let dockerfile = asked.build_info.and_then(|build| build.dockerfile_content);
    let entrypoint = asked
        .entrypoint
        .or_else(|| dockerfile.as_deref().map(entrypoint_of))
        .unwrap_or_default();
    let state = if dockerfile.is_some() {
        "building"
    } else {
        "pending"
    };
    let snapshot = Snapshot {
        id: uuid(),
        name: asked.name,
        state: state.to_owned(),
        image: asked.image_name,
        dockerfile,
        entrypoint,
        general: false,
        cpu: asked.cpu.unwrap_or(1),
        memory: asked.memory.unwrap_or(1),
        disk: asked.disk.unwrap_or(3),
        created_at: now,
        updated_at: now,
        last_used_at: None,
    };
    {
        let shelf = &mut shared.store.lock().shelf;
        if shelf
            .snapshots
            .values()
            .any(|other| other.name == snapshot.name)
        {
            return Err(Fail::new(
                409,
                format!("Snapshot with name \"{}\" already exists", snapshot.name),
            ));
        }
        if shelf.snapshots.len() >= SNAPSHOTS_MAX {
            return Err(Fail::bad(format!(
                "Snapshot limit exceeded. Maximum allowed: {SNAPSHOTS_MAX}"
            )));
        }
        shelf
            .snapshots
            .insert(snapshot.id.clone(), snapshot.clone());
        shared.store.save_shelf(shelf)?;
    }
    finish_build(&shared, snapshot.id.clone());
    Ok(Json(view(&snapshot)).into_response())
}

/// `building` for as long as a transition takes, then `active`.
fn finish_build(shared: &Context, id: String) {
    let shared = shared.clone();
    let tasks = shared.tasks.clone();
    tasks.spawn(async move {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(shared.transition_ms)) => {}
            () = shared.stopping.cancelled() => return,
        }
        let now = shared.clock.now_ms();
        let shelf = &mut shared.store.lock().shelf;
        if let Some(snapshot) = shelf.snapshots.get_mut(&id) {
            "active".clone_into(&mut snapshot.state);
            snapshot.updated_at = now;
            if let Err(error) = shared.store.save_shelf(shelf) {
                tracing::error!(reason = error.message, "the snapshots could not be written");
            }
        }
    });
}

/// The default snapshot is always there; one whose build a restart interrupted is done.
pub(crate) fn stock(shelf: &mut Shelf, default: &str, now: i64) {
    for snapshot in shelf.snapshots.values_mut() {
        "active".clone_into(&mut snapshot.state);
    }
    if shelf
        .snapshots
        .values()
        .any(|snapshot| snapshot.name == default)
    {
        return;
    }
    let snapshot = Snapshot {
        id: uuid(),
        name: default.to_owned(),
        state: "active".to_owned(),
        image: None,
        dockerfile: None,
        entrypoint: Vec::new(),
        general: true,
        cpu: 1,
        memory: 1,
        disk: 3,
        created_at: now,
        updated_at: now,
        last_used_at: None,
    };
    shelf.snapshots.insert(snapshot.id.clone(), snapshot);
}

fn view(snapshot: &Snapshot) -> Value {
    let mut view = json!({
        "id": snapshot.id, "organizationId": ORGANIZATION, "general": snapshot.general, "name": snapshot.name,
        "state": snapshot.state, "size": null, "entrypoint": snapshot.entrypoint, "cpu": snapshot.cpu, "gpu": 0,
        "mem": snapshot.memory, "disk": snapshot.disk, "errorReason": null, "createdAt": iso(snapshot.created_at),
        "updatedAt": iso(snapshot.updated_at), "lastUsedAt": snapshot.last_used_at.map(iso), "sourceSandboxId": null,
        "regionIds": ["us"], "sandboxClass": "container",
    });
    if let Some(image) = &snapshot.image {
        view["imageName"] = json!(image);
    }
    if let Some(dockerfile) = &snapshot.dockerfile {
        view["buildInfo"] = build_info(dockerfile, snapshot.created_at);
    }
    view
}

fn find(shelf: &Shelf, id_or_name: &str) -> Result<Snapshot, Fail> {
    let found = shelf
        .snapshots
        .values()
        .find(|one| one.id == id_or_name || one.name == id_or_name);
    found.cloned().ok_or_else(|| {
        Fail::new(
            404,
            format!("Snapshot with ID or name {id_or_name} not found"),
        )
    })
}

pub(super) async fn get_snapshot(State(shared): Shared, Path(snapshot): Path<String>) -> Answer {
    let found = find(&shared.store.lock().shelf, &snapshot)?;
    Ok(Json(view(&found)).into_response())
}

/// One that is active already is refused, as Daytona does.
pub(super) async fn activate_snapshot(
    State(shared): Shared,
    Path(snapshot): Path<String>,
) -> Answer {
    let found = find(&shared.store.lock().shelf, &snapshot)?;
    Err(Fail::bad(format!(
        "Snapshot {} is already {}",
        found.name, found.state
    )))
}

pub(super) async fn delete_snapshot(State(shared): Shared, Path(snapshot): Path<String>) -> Answer {
    let shelf = &mut shared.store.lock().shelf;
    let found = find(shelf, &snapshot)?;
    if found.general {
        return Err(Fail::new(403, "General snapshots cannot be deleted"));
    }
    shelf.snapshots.remove(&found.id);
    shared.store.save_shelf(shelf)?;
    Ok(StatusCode::OK.into_response())
}

#[derive(Deserialize)]
pub(super) struct Page {
    page: Option<usize>,
    limit: Option<usize>,
    name: Option<String>,
    order: Option<String>,
    cursor: Option<String>,
}

fn limit(page: &Page) -> Result<usize, Fail> {
    let limit = page.limit.unwrap_or(PAGE_DEFAULT);
    if (1..=PAGE_MAX).contains(&limit) {
        Ok(limit)
    } else {
        Err(Fail::bad(format!("limit must be between 1 and {PAGE_MAX}")))
    }
}

pub(super) async fn list_snapshots(State(shared): Shared, Query(page): Query<Page>) -> Answer {
    let limit = limit(&page)?;
    let number = page.page.unwrap_or(1).max(1);
    let mut found: Vec<Snapshot> = shared
        .store
        .lock()
        .shelf
        .snapshots
        .values()
        .cloned()
        .collect();
    found.retain(|one| {
        page.name
            .as_ref()
            .is_none_or(|name| one.name.contains(name.as_str()))
    });
    found.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
    if page.order.as_deref() != Some("asc") {
        found.reverse();
    }
    let items: Vec<Value> = found
        .iter()
        .skip((number - 1).saturating_mul(limit))
        .take(limit)
        .map(view)
        .collect();
    let pages = found.len().div_ceil(limit);
    Ok(
        Json(json!({ "items": items, "total": found.len(), "page": number, "totalPages": pages }))
            .into_response(),
    )
}

#[derive(Deserialize)]
struct WriteSecret {
    name: Option<String>,
    description: Option<String>,
    value: Option<String>,
    hosts: Option<Vec<String>>,
}

/// The value is dropped here: nothing in this provider puts it into a sandbox's requests.
pub(super) async fn create_secret(State(shared): Shared, body: Bytes) -> Answer {
    let asked: WriteSecret = parse(&body)?;
    let (Some(name), Some(_)) = (asked.name, asked.value) else {
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
        description: asked.description,
        hosts: asked.hosts.unwrap_or_default(),
        created_at: now,
        updated_at: now,
    };
    shelf.secrets.insert(secret.id.clone(), secret.clone());
    shared.store.save_shelf(shelf)?;
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
    if asked.description.is_some() {
        secret.description = asked.description;
    }
    secret.updated_at = now;
    let view = secret_view(secret);
    shared.store.save_shelf(shelf)?;
    Ok(Json(view).into_response())
}

pub(super) async fn delete_secret(State(shared): Shared, Path(id): Path<String>) -> Answer {
    let shelf = &mut shared.store.lock().shelf;
    shelf.secrets.remove(&id).ok_or_else(|| no_secret(&id))?;
    shared.store.save_shelf(shelf)?;
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

pub(super) async fn list_secrets_bare(State(shared): Shared) -> Response {
    Json(all_secrets(&shared)).into_response()
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
