//! `POST /sandbox`.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State as Extract;
use axum::response::IntoResponse;
use serde::Deserialize;

use super::{Answer, parse};
use crate::fail::Fail;
use crate::lifecycle;
use crate::limits::{NAME_CHARS_MAX, SANDBOXES_MAX};
use crate::record::{Record, entrypoint_of, token, uuid};
use crate::shared::Context;
use crate::state::State;

use super::manage::{archive_minutes, secret_pairs};

/// What we look at; unknown fields are ignored, as Daytona does.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Create {
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
    build_info: Option<Build>,
    secrets: Option<Vec<BTreeMap<String, String>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Build {
    dockerfile_content: Option<String>,
}

pub(super) async fn create(Extract(shared): Extract<Context>, body: Bytes) -> Answer {
    let asked: Create = parse(&body)?;
    let build = asked.build_info.is_some();
    let record = admit(&shared, asked)?;
    lifecycle::provision(&shared, &record.id, build);
    tracing::info!(
        sandbox.id = record.id,
        sandbox.name = record.name,
        "a sandbox is being created"
    );
    if !build
        && let Some(held) = lifecycle::hold(&shared, &record.id).await
        && held.state == State::Error
    {
        let reason = held.error_reason.unwrap_or_default();
        return Err(Fail::bad(format!("Sandbox failed to start: {reason}")));
    }
    // As it was before the wait.
    Ok(Json(record.full(&shared.toolbox_url)).into_response())
}

/// Checks everything and writes the record, under one lock: the name is the key to creating once.
fn admit(shared: &Context, asked: Create) -> Result<Record, Fail> {
    let resources = [asked.cpu, asked.gpu, asked.memory, asked.disk];
    if asked.build_info.is_some() && asked.snapshot.is_some() {
        return Err(Fail::bad(
            "Cannot specify a snapshot when using a build info entry",
        ));
    }
    if asked.build_info.is_none() && resources.iter().any(Option::is_some) {
        return Err(Fail::bad(
            "Cannot specify Sandbox resources when using a snapshot",
        ));
    }
    if resources.iter().flatten().any(|amount| *amount < 0) {
        return Err(Fail::bad("cpu, gpu, memory and disk must not be negative"));
    }
    let env = asked.env.unwrap_or_default();
    check_variables(env.keys())?;
    let id = uuid();
    let name = asked
        .name
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| id.clone());
    check_name(&name)?;
    let now = shared.clock.now_ms();

    let mut inner = shared.store.lock();
    let taken = inner
        .sandboxes
        .values()
        .any(|entry| entry.record.name == name);
    if taken {
        return Err(Fail::new(
            409,
            format!("Sandbox with name {name} already exists"),
        ));
    }
    if inner.sandboxes.len() >= SANDBOXES_MAX {
        return Err(Fail::bad(format!(
            "Total sandbox limit exceeded. Maximum allowed: {SANDBOXES_MAX}"
        )));
    }
    let dockerfile = asked
        .build_info
        .map(|build| build.dockerfile_content.unwrap_or_default());
    let secrets = secret_pairs(&inner.shelf, asked.secrets.unwrap_or_default())?;
    let (snapshot, entrypoint, [cpu, memory, disk]) = match &dockerfile {
        Some(text) => {
            let amounts = [
                asked.cpu.unwrap_or(1),
                asked.memory.unwrap_or(1),
                asked.disk.unwrap_or(3),
            ];
            (None, entrypoint_of(text), amounts)
        }
        None => {
            let wanted = asked
                .snapshot
                .unwrap_or_else(|| shared.default_snapshot.clone());
            let found = inner
                .shelf
                .snapshots
                .values_mut()
                .find(|one| one.name == wanted || one.id == wanted);
            let Some(found) = found else {
                return Err(Fail::bad(format!("Snapshot {wanted} not found")));
            };
            if found.state != "active" {
                return Err(Fail::bad(format!("Snapshot {wanted} is {}", found.state)));
            }
            found.last_used_at = Some(now);
            (
                Some(found.name.clone()),
                found.entrypoint.clone(),
                [found.cpu, found.memory, found.disk],
            )
        }
    };
    let record = Record {
        folder: folder_for(shared, &name, &id),
        id,
        name,
        user: asked.user.unwrap_or_else(|| "daytona".to_owned()),
        env,
        labels: asked.labels.unwrap_or_default(),
        secrets,
        snapshot,
        entrypoint,
        public: asked.public.unwrap_or(false),
        network_block_all: asked.network_block_all.unwrap_or(false),
        network_allow_list: asked.network_allow_list,
        domain_allow_list: asked.domain_allow_list,
        target: asked.target.unwrap_or_else(|| "us".to_owned()),
        cpu,
        gpu: asked.gpu.unwrap_or(0),
        memory,
        disk,
        state: if dockerfile.is_some() {
            State::PendingBuild
        } else {
            State::Creating
        },
        dockerfile,
        error_reason: None,
        recoverable: false,
        auto_stop: asked.auto_stop_interval.unwrap_or(15),
        auto_archive: archive_minutes(asked.auto_archive_interval.unwrap_or(10_080)),
        auto_delete: asked.auto_delete_interval.unwrap_or(-1),
        destroy_at: asked
            .ttl_minutes
            .filter(|minutes| *minutes > 0)
            .map(|minutes| now + minutes.saturating_mul(60_000)),
        created_at: now,
        updated_at: now,
        last_activity: now,
        token: token(32),
        port: 0,
    };
    shared
        .store
        .add(&mut inner, record.clone())
        .map_err(Fail::internal)?;
    Ok(record)
}

/// Names of variables that a shell can hold.
pub(crate) fn check_variables<'a>(names: impl Iterator<Item = &'a String>) -> Result<(), Fail> {
    for name in names {
        let mut letters = name.chars();
        let first = letters
            .next()
            .is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '_');
        if !first || !letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
            return Err(Fail::bad(format!(
                "bad request: invalid environment variable name {name:?}"
            )));
        }
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), Fail> {
    let wrong = name.chars().count() > NAME_CHARS_MAX
        || name
            .chars()
            .any(|letter| letter.is_control() || matches!(letter, '<' | '>' | '/'))
        || name.contains("://");
    if wrong {
        Err(Fail::bad(
            "name must not contain HTML, URLs or control characters",
        ))
    } else {
        Ok(())
    }
}

/// The name, where it makes a plain folder's name that is not there yet; else the id.
fn folder_for(shared: &Context, name: &str, id: &str) -> String {
    let plain = name.len() <= 100
        && !name.starts_with('.')
        && name
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.'));
    if plain && !shared.store.place(name).exists() {
        name.to_owned()
    } else {
        id.to_owned()
    }
}
