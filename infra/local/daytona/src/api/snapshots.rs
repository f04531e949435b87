//! Snapshots: nothing is built of them, but they go through the states of a build, with a log, and can be put to sleep.

use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::{Value, json};

use super::shelf::{Page, limit};
use super::{Answer, parse};
use crate::clock::iso;
use crate::fail::Fail;
use crate::faults::Fault;
use crate::limits::SNAPSHOTS_MAX;
use crate::record::{ORGANIZATION, build_info, entrypoint_of, uuid};
use crate::shared::Context;
use crate::store::{Shelf, Snapshot};

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
        error: None,
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

/// `building` and then `pulling`, each for as long as a transition takes, then `active`; or `build_failed`, where that
/// fault is armed.
fn finish_build(shared: &Context, id: String) {
    let shared = shared.clone();
    let tasks = shared.tasks.clone();
    tasks.spawn(async move {
        for next in ["pulling", "active"] {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(shared.transition_ms)) => {}
                () = shared.stopping.cancelled() => return,
            }
            if !advance(&shared, &id, next) {
                return;
            }
        }
    });
}

/// The next state of a snapshot; false where there is none after it.
fn advance(shared: &Context, id: &str, next: &str) -> bool {
    let now = shared.clock.now_ms();
    let shelf = &mut shared.store.lock().shelf;
    let Some(snapshot) = shelf.snapshots.get_mut(id) else {
        return false;
    };
    let names = [snapshot.id.clone(), snapshot.name.clone()];
    let failed = shared.faults.take(&names, |fault| match fault {
        Fault::FailBuild { .. } => Some(()),
        _ => None,
    });
    let state = if failed.is_some() {
        "build_failed"
    } else {
        next
    };
    snapshot.error = failed.map(|()| "the build failed".to_owned());
    state.clone_into(&mut snapshot.state);
    snapshot.updated_at = now;
    if let Err(error) = shared.store.save_shelf(shelf) {
        tracing::error!(reason = error.message, "the snapshots could not be written");
    }
    failed.is_none()
}

/// The default snapshot is always there; one whose build a restart interrupted is done.
pub(crate) fn stock(shelf: &mut Shelf, default: &str, now: i64) {
    for snapshot in shelf.snapshots.values_mut() {
        if matches!(snapshot.state.as_str(), "building" | "pending" | "pulling") {
            "active".clone_into(&mut snapshot.state);
        }
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
        error: None,
    };
    shelf.snapshots.insert(snapshot.id.clone(), snapshot);
}

fn view(snapshot: &Snapshot) -> Value {
    let mut view = json!({
        "id": snapshot.id, "organizationId": ORGANIZATION, "general": snapshot.general, "name": snapshot.name,
        "state": snapshot.state, "size": null, "entrypoint": snapshot.entrypoint, "cpu": snapshot.cpu, "gpu": 0,
        "mem": snapshot.memory, "disk": snapshot.disk, "errorReason": snapshot.error, "createdAt": iso(snapshot.created_at),
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

/// One that sleeps is pulled again; any other is refused, as Daytona does.
pub(super) async fn activate_snapshot(
    State(shared): Shared,
    Path(snapshot): Path<String>,
) -> Answer {
    let mut found = find(&shared.store.lock().shelf, &snapshot)?;
    if found.state != "inactive" {
        return Err(Fail::bad(format!(
            "Snapshot {} is already {}",
            found.name, found.state
        )));
    }
    "pulling".clone_into(&mut found.state);
    keep(&shared, &found)?;
    let again = shared.clone();
    let id = found.id.clone();
    shared.tasks.spawn(async move {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(again.transition_ms)) => {
                advance(&again, &id, "active");
            }
            () = again.stopping.cancelled() => {}
        }
    });
    Ok(Json(view(&found)).into_response())
}

/// Puts one to sleep, as Daytona does by itself to those that nobody uses for two weeks.
pub(super) async fn deactivate_snapshot(
    State(shared): Shared,
    Path(snapshot): Path<String>,
) -> Answer {
    let mut found = find(&shared.store.lock().shelf, &snapshot)?;
    if found.state != "active" {
        return Err(Fail::bad(format!("Snapshot {} is not active", found.name)));
    }
    "inactive".clone_into(&mut found.state);
    keep(&shared, &found)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn keep(shared: &Context, snapshot: &Snapshot) -> Result<(), Fail> {
    let shelf = &mut shared.store.lock().shelf;
    shelf
        .snapshots
        .insert(snapshot.id.clone(), snapshot.clone());
    shared.store.save_shelf(shelf)
}

/// Where the log of a build is read.
pub(super) async fn build_logs_url(State(shared): Shared, Path(snapshot): Path<String>) -> Answer {
    let found = find(&shared.store.lock().shelf, &snapshot)?;
    let url = format!(
        "http://127.0.0.1:{}/api/snapshots/{}/build-logs",
        shared.port, found.id
    );
    Ok(Json(json!({ "url": url })).into_response())
}

/// The log as far as the build has come: a line for each instruction, and how it ended.
pub(super) async fn build_logs(State(shared): Shared, Path(snapshot): Path<String>) -> Answer {
    let found = find(&shared.store.lock().shelf, &snapshot)?;
    let dockerfile = found.dockerfile.unwrap_or_default();
    let instruction = |line: &&str| {
        let word = line.split(' ').next().unwrap_or_default();
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase())
    };
    let steps: Vec<&str> = dockerfile.lines().filter(instruction).collect();
    let mut log: String = steps
        .iter()
        .enumerate()
        .map(|(at, step)| format!("Step {}/{} : {step}\n", at + 1, steps.len()))
        .collect();
    match found.state.as_str() {
        "build_failed" => log.push_str("ERROR: the build failed\n"),
        "active" => log.push_str("Built, nothing was run: this provider's sandboxes are folders\n"),
        _ => {}
    }
    Ok(([("content-type", "text/plain; charset=utf-8")], log).into_response())
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
