//! `POST /sandbox`: a new sandbox from a snapshot, or from a Dockerfile that is not run.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Deserialize;

use super::validate::{archive_minutes, check_name, secret_names};
use crate::accounts::{FIRST, caller, may_see};
use crate::api_error::ApiError;
use crate::engine::Engine;
use crate::faults::Fault;
use crate::http::{ApiResult, EngineState, check_variables, parse};
use crate::lifecycle;
use crate::limits::SANDBOXES_MAX;
use crate::random::{token, uuid};
use crate::record::{BuildRequest, Record, entrypoint_of};
use crate::snapshot::StoredSnapshots;
use crate::state::DaytonaState;
use crate::store::StoreState;

/// The supported fields; unknown ones are ignored, as Daytona does.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreateSandboxBody {
    name: Option<String>,
    snapshot: Option<String>,
    user: Option<String>,
    env: Option<BTreeMap<String, String>>,
    labels: Option<BTreeMap<String, String>>,
    public: Option<bool>,
    network_block_all: Option<bool>,
    network_allow_list: Option<String>,
    domain_allow_list: Option<String>,
    target: Option<String>,
    cpu: Option<i64>,
    gpu: Option<i64>,
    memory: Option<i64>,
    disk: Option<i64>,
    auto_stop_interval: Option<i64>,
    auto_archive_interval: Option<i64>,
    auto_delete_interval: Option<i64>,
    ttl_minutes: Option<i64>,
    build_info: Option<BuildRequest>,
    secrets: Option<Vec<BTreeMap<String, String>>>,
}

/// What a sandbox gets from its snapshot or its stand-in build.
struct BaseImage {
    snapshot: Option<String>,
    /// Snapshot id, if the snapshot is of a sandbox.
    to_fill: Option<String>,
    dockerfile: Option<String>,
    entrypoint: Vec<String>,
    cpu: i64,
    memory: i64,
    disk: i64,
}

pub(super) async fn create(State(engine): EngineState, body: Bytes) -> ApiResult {
    let asked: CreateSandboxBody = parse(&body)?;
    let build = asked.build_info.is_some();
    let record = admit(&engine, asked)?;
    lifecycle::provision(&engine, &record.id, build);
    tracing::info!(
        sandbox.id = record.id,
        sandbox.name = record.name,
        "a sandbox is being created"
    );
    if !build
        && let Some(settled) = lifecycle::wait_until_settled(&engine, &record.id).await
        && settled.state == DaytonaState::Error
    {
        let reason = settled.error_reason.unwrap_or_default();
        return Err(ApiError::bad(format!("Sandbox failed to start: {reason}")));
    }
    // The record from before the wait.
    Ok(Json(record.full(&engine.toolbox_url)).into_response())
}

/// Checks everything and writes the record under one lock: the unique name makes creation idempotent.
fn admit(engine: &Engine, asked: CreateSandboxBody) -> Result<Record, ApiError> {
    check_resources(&asked)?;
    check_variables(asked.env.iter().flat_map(BTreeMap::keys))?;
    let id = uuid();
    let name = asked.name.clone().filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| id.clone());
    check_name(&name)?;
    let now = engine.clock.now_ms();

    let mut inner = engine.store.lock();
    check_room(&inner, &name)?;
    let secrets = secret_names(&inner.secrets, asked.secrets.clone().unwrap_or_default())?;
    let image = match &asked.build_info {
        Some(build) => build_image(&asked, build),
        None => snapshot_image(&mut inner.snapshots, engine, asked.snapshot.clone(), now)?,
    };
    let folder = folder_for(engine, &name, &id);
    let leaves = |fault: &Fault| matches!(fault, Fault::LeaveSecrets).then_some(());
    let leaves_secrets =
        !secrets.is_empty() && engine.faults.take(std::slice::from_ref(&name), leaves).is_some();
    let record =
        Record { secrets, leaves_secrets, ..new_record(id, name, folder, asked, image, now) };
    engine.store.add(&mut inner, record.clone()).map_err(ApiError::internal)?;
    Ok(record)
}

fn check_resources(asked: &CreateSandboxBody) -> Result<(), ApiError> {
    let resources = [asked.cpu, asked.gpu, asked.memory, asked.disk];
    if asked.build_info.is_some() && asked.snapshot.is_some() {
        return Err(ApiError::bad("Cannot specify a snapshot when using a build info entry"));
    }
    if asked.build_info.is_none() && resources.iter().any(Option::is_some) {
        return Err(ApiError::bad("Cannot specify Sandbox resources when using a snapshot"));
    }
    if resources.iter().flatten().any(|amount| *amount < 0) {
        return Err(ApiError::bad("cpu, gpu, memory and disk must not be negative"));
    }
    Ok(())
}

/// The name must be free and the number of sandboxes below its bound.
fn check_room(inner: &StoreState, name: &str) -> Result<(), ApiError> {
    let mut own = inner.sandboxes.values().map(|entry| &entry.record);
    if own.any(|taken| taken.name == name && may_see(taken.account)) {
        return Err(ApiError::new(409, format!("Sandbox with name {name} already exists")));
    }
    if inner.sandboxes.len() >= SANDBOXES_MAX {
        return Err(ApiError::bad(format!(
            "Total sandbox limit exceeded. Maximum allowed: {SANDBOXES_MAX}"
        )));
    }
    Ok(())
}

fn build_image(asked: &CreateSandboxBody, build: &BuildRequest) -> BaseImage {
    let dockerfile = build.dockerfile_content.clone().unwrap_or_default();
    BaseImage {
        snapshot: None,
        to_fill: None,
        entrypoint: entrypoint_of(&dockerfile),
        dockerfile: Some(dockerfile),
        cpu: asked.cpu.unwrap_or(1),
        memory: asked.memory.unwrap_or(1),
        disk: asked.disk.unwrap_or(3),
    }
}

fn snapshot_image(
    snapshots: &mut StoredSnapshots,
    engine: &Engine,
    wanted: Option<String>,
    now: i64,
) -> Result<BaseImage, ApiError> {
    let wanted = wanted.unwrap_or_else(|| engine.default_snapshot.clone());
    let found = snapshots.values_mut().find(|one| one.is_called(&wanted));
    let Some(found) = found else {
        return Err(ApiError::bad(format!(
            "Snapshot {wanted} not found. Did you add it through the Daytona Dashboard?"
        )));
    };
    if found.state != "active" {
        return Err(ApiError::bad(format!("Snapshot {wanted} is {}", found.state)));
    }
    found.last_used_at = Some(now);
    Ok(BaseImage {
        snapshot: Some(found.name.clone()),
        to_fill: found.source.as_ref().map(|_| found.id.clone()),
        dockerfile: None,
        entrypoint: found.entrypoint.clone(),
        cpu: found.cpu,
        memory: found.memory,
        disk: found.disk,
    })
}

/// The requested sandbox with Daytona's defaults, without its secrets.
fn new_record(
    id: String,
    name: String,
    folder: String,
    asked: CreateSandboxBody,
    image: BaseImage,
    now: i64,
) -> Record {
    let ttl = asked.ttl_minutes.filter(|minutes| *minutes > 0);
    Record {
        id,
        name,
        folder,
        user: asked.user.unwrap_or_else(|| "daytona".to_owned()),
        env: asked.env.unwrap_or_default(),
        labels: asked.labels.unwrap_or_default(),
        secrets: BTreeMap::new(),
        leaves_secrets: false,
        snapshot: image.snapshot,
        entrypoint: image.entrypoint,
        public: asked.public.unwrap_or(false),
        network_block_all: asked.network_block_all.unwrap_or(false),
        network_allow_list: asked.network_allow_list,
        domain_allow_list: asked.domain_allow_list,
        target: asked.target.unwrap_or_else(|| "us".to_owned()),
        cpu: image.cpu,
        gpu: asked.gpu.unwrap_or(0),
        memory: image.memory,
        disk: image.disk,
        state: match image.dockerfile {
            Some(_) => DaytonaState::PendingBuild,
            None => DaytonaState::Creating,
        },
        dockerfile: image.dockerfile,
        back_to: None,
        to_fill: image.to_fill,
        error_reason: None,
        recoverable: false,
        auto_stop: asked.auto_stop_interval.unwrap_or(15),
        auto_archive: archive_minutes(asked.auto_archive_interval.unwrap_or(10_080)),
        auto_delete: asked.auto_delete_interval.unwrap_or(-1),
        destroy_at: ttl.map(|minutes| now + minutes.saturating_mul(60_000)),
        created_at: now,
        updated_at: now,
        last_activity: now,
        account: caller().unwrap_or(FIRST),
        token: token(32),
        port: 0,
    }
}

/// The name, if it is a plain, unused folder name; else the id.
fn folder_for(engine: &Engine, name: &str, id: &str) -> String {
    let plain = name.len() <= 100
        && !name.starts_with('.')
        && name
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.'));
    if plain && !engine.store.sandbox_dir(name).exists() { name.to_owned() } else { id.to_owned() }
}
