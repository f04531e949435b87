//! Sandboxes by name: create, read, list, change and delete.

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use bobbin_local_sandbox::random::{token, uuid};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{EngineState, PageQuery, check_project, json_answer, parse};
use crate::api_error::{ApiError, ApiResult};
use crate::life;
use crate::limits::{
    KEPT_MAX, NAME_CHARS_MAX, PORTS_MAX, SANDBOXES_MAX, SESSION_MS, SESSION_MS_MAX, TAGS_MAX,
};
use crate::policy::EgressPolicy;
use crate::record::{KeepLast, Record, SessionRecord};
use crate::routes;
use crate::state::{Engine, LiveSandbox, SharedEngine};

#[derive(Deserialize)]
struct ResourcesBody {
    vcpus: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SourceBody {
    r#type: String,
    snapshot_id: Option<String>,
}

/// Fields of a create and a change.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SandboxBody {
    project_id: Option<String>,
    name: Option<String>,
    source: Option<SourceBody>,
    ports: Option<Vec<u16>>,
    timeout: Option<u64>,
    resources: Option<ResourcesBody>,
    persistent: Option<bool>,
    env: Option<BTreeMap<String, String>>,
    tags: Option<BTreeMap<String, String>>,
    network_policy: Option<Value>,
    snapshot_expiration: Option<u64>,
    keep_last_snapshots: Option<KeepLast>,
    current_snapshot_id: Option<String>,
}

impl SandboxBody {
    fn check(&self) -> Result<(), ApiError> {
        let is_wrong = |wrong: bool, words: &str| {
            if wrong {
                return Err(ApiError::bad(words));
            }
            Ok(())
        };
        let name = self.name.as_deref().unwrap_or("a");
        let letters = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        is_wrong(
            name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(letters),
            "Invalid request: `name` must match ^[a-zA-Z0-9_-]+$ and have at most 128 characters",
        )?;
        let ports = self.ports.as_deref().unwrap_or_default();
        is_wrong(ports.len() > PORTS_MAX, "A sandbox has at most 15 ports")?;
        let tags = self.tags.as_ref().map_or(0, BTreeMap::len);
        is_wrong(tags > TAGS_MAX, "A sandbox has at most 5 tags")?;
        let timeout = self.timeout.unwrap_or(SESSION_MS);
        is_wrong(
            !(1_000..=SESSION_MS_MAX).contains(&timeout),
            "`timeout` must be one second to 24 hours",
        )?;
        let kept = self.keep_last_snapshots.map_or(1, |rule| rule.count);
        is_wrong(!(1..=KEPT_MAX).contains(&kept), "`keepLastSnapshots.count` must be 1 to 10")
    }

    fn policy(&self) -> Result<Option<EgressPolicy>, ApiError> {
        self.network_policy.as_ref().map(EgressPolicy::parse).transpose()
    }

    /// The request of a call on an existing sandbox.
    fn of(
        engine: &SharedEngine,
        query: &SandboxQuery,
        body: &Bytes,
    ) -> Result<(Self, Option<EgressPolicy>), ApiError> {
        check_project(engine, query.project_id.as_ref())?;
        let asked: Self = parse(body)?;
        asked.check()?;
        let policy = asked.policy()?;
        Ok((asked, policy))
    }

    /// Applies the given fields. A timeout counts for the next session.
    fn change(&self, record: &mut Record) {
        record.persistent = self.persistent.unwrap_or(record.persistent);
        record.timeout_ms = self.timeout.unwrap_or(record.timeout_ms);
        let vcpus = self.resources.as_ref().and_then(|one| one.vcpus);
        record.vcpus = vcpus.unwrap_or(record.vcpus);
        if let Some(ports) = &self.ports {
            record.ports.clone_from(ports);
        }
        if let Some(tags) = &self.tags {
            record.tags.clone_from(tags);
        }
        record.snapshot_expiration = self.snapshot_expiration.or(record.snapshot_expiration);
        record.keep_last = self.keep_last_snapshots.or(record.keep_last);
    }

    /// The requested name, or a generated one.
    fn name(&self) -> String {
        let own = || format!("sandbox-{}", token(12));
        self.name.clone().unwrap_or_else(own)
    }
}

pub(super) async fn create(State(engine): EngineState, body: Bytes) -> ApiResult {
    let asked: SandboxBody = parse(&body)?;
    check_project(&engine, asked.project_id.as_ref())?;
    asked.check()?;
    let policy = asked.policy()?;
    let now = engine.clock.now_ms();
    let source = match &asked.source {
        None => None,
        Some(SourceBody { r#type, snapshot_id: Some(id) }) if r#type == "snapshot" => {
            Some(id.clone())
        }
        Some(_) => {
            return Err(ApiError::bad("Only the source \"snapshot\" is known here"));
        }
    };
    let mut record = Record {
        name: asked.name(),
        folder: uuid(),
        persistent: true,
        created_at: now,
        updated_at: now,
        timeout_ms: SESSION_MS,
        vcpus: 2,
        ports: Vec::new(),
        env: asked.env.clone().unwrap_or_default(),
        tags: BTreeMap::new(),
        snapshot_expiration: None,
        keep_last: None,
        current_snapshot: source,
        disk_is_left: false,
        agent_port: 0,
        sessions: Vec::new(),
    };
    asked.change(&mut record);
    make(&engine, record, policy).await
}

/// Records a new sandbox and begins its first session.
async fn make(
    engine: &SharedEngine,
    mut record: Record,
    policy: Option<EgressPolicy>,
) -> ApiResult {
    let (name, now) = (record.name.clone(), record.created_at);
    let session = SessionRecord::new(record.timeout_ms, record.current_snapshot.clone(), now);
    let first = session.id.clone();
    record.sessions.push(session);
    engine.change(|inner| {
        if inner.sandboxes.contains_key(&name) {
            return Err(ApiError::bad(format!(
                "A sandbox with the name '{name}' already exists for this project."
            )));
        }
        if inner.sandboxes.len() >= SANDBOXES_MAX {
            return Err(ApiError::bad(format!("More than {SANDBOXES_MAX} sandboxes")));
        }
        if let Some(id) = &record.current_snapshot {
            inner.snapshot(id, now)?;
        }
        let entry = LiveSandbox::new(record, policy);
        inner.sandboxes.insert(name.clone(), entry);
        Ok(())
    })?;
    life::begin(engine, &name, &first);
    life::settled(engine, &name).await;
    answer(engine, &name, false)
}

/// A new sandbox with the disk of another one's current snapshot; fields not in the request are copied from it.
pub(super) async fn fork(
    State(engine): EngineState,
    Path(source): Path<String>,
    Query(query): Query<SandboxQuery>,
    body: Bytes,
) -> ApiResult {
    let (asked, policy) = SandboxBody::of(&engine, &query, &body)?;
    let now = engine.clock.now_ms();
    let (of, own_policy) = {
        let inner = engine.lock();
        let entry = inner.entry(&source)?;
        (entry.record.clone(), entry.policy.clone())
    };
    let mut record = Record {
        name: asked.name(),
        folder: uuid(),
        created_at: now,
        updated_at: now,
        env: asked.env.clone().unwrap_or(of.env),
        disk_is_left: false,
        agent_port: 0,
        sessions: Vec::new(),
        ..of
    };
    asked.change(&mut record);
    make(&engine, record, policy.or(own_policy)).await
}

/// A sandbox with its session and routes.
fn answer(engine: &Engine, name: &str, resumed: bool) -> ApiResult {
    let inner = engine.lock();
    let entry = inner.entry(name)?;
    let session = entry.record.session();
    let session = session.ok_or_else(|| ApiError::no_sandbox(name))?;
    json_answer(json!({
        "sandbox": engine.view(entry), "session": engine.session_view(entry, session),
        "routes": routes_view(entry), "resumed": resumed,
    }))
}

pub(super) fn routes_view(entry: &LiveSandbox) -> Value {
    let one = |route: &crate::state::PortRoute| {
        json!({
            "url": format!("http://127.0.0.1:{}", route.local),
            "subdomain": format!("sb-{}", route.local), "port": route.port,
        })
    };
    Value::Array(entry.routes.iter().map(one).collect())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SandboxQuery {
    project_id: Option<String>,
    resume: Option<String>,
    delete_orphan_snapshots: Option<String>,
}

pub(super) async fn get(
    State(engine): EngineState,
    Path(name): Path<String>,
    Query(query): Query<SandboxQuery>,
) -> ApiResult {
    check_project(&engine, query.project_id.as_ref())?;
    let mut resumed = false;
    if query.resume.as_deref() == Some("true") {
        resumed = life::resume(&engine, &name)?;
        life::settled(&engine, &name).await;
    }
    answer(&engine, &name, resumed)
}

pub(super) async fn list(State(engine): EngineState, Query(query): Query<PageQuery>) -> ApiResult {
    check_project(&engine, query.project.as_ref())?;
    let by_name = query.sort_by.as_deref() == Some("name");
    if query.name_prefix.is_some() && !by_name {
        return Err(ApiError::bad("namePrefix is only valid when sortBy=name"));
    }
    let tag = match query.tags.as_deref().map(|tag| tag.split_once(':')) {
        None => None,
        Some(Some(pair)) => Some(pair),
        Some(None) => return Err(ApiError::bad("tags must be key:value")),
    };
    let inner = engine.lock();
    let is_listed = |entry: &&LiveSandbox| {
        let record = &entry.record;
        let prefix = query.name_prefix.as_deref().unwrap_or_default();
        let has =
            |(key, value): (&str, &str)| record.tags.get(key).is_some_and(|found| found == value);
        record.name.starts_with(prefix) && tag.is_none_or(has)
    };
    let mut all: Vec<&LiveSandbox> = inner.sandboxes.values().filter(is_listed).collect();
    if !by_name {
        all.sort_by_key(|entry| entry.record.created_at);
    }
    query.page(all, "sandboxes", |entry| engine.view(entry))
}

pub(super) async fn update(
    State(engine): EngineState,
    Path(name): Path<String>,
    Query(query): Query<SandboxQuery>,
    body: Bytes,
) -> ApiResult {
    let (asked, policy) = SandboxBody::of(&engine, &query, &body)?;
    let now = engine.clock.now_ms();
    let ports = asked.ports.clone();
    let session = engine.change(|inner| {
        if let Some(id) = &asked.current_snapshot_id {
            inner.snapshot(id, now)?;
        }
        let entry = inner.sandboxes.get_mut(&name);
        let entry = entry.ok_or_else(|| ApiError::no_sandbox(&name))?;
        let record = &mut entry.record;
        record.updated_at = now;
        asked.change(record);
        if asked.current_snapshot_id.is_some() {
            record.current_snapshot = asked.current_snapshot_id;
        }
        entry.policy = policy.or(entry.policy.take());
        let running = entry.process.is_some();
        let session = entry.record.session().map(|one| one.id.clone());
        Ok(session.filter(|_| running))
    })?;
    if let (Some(ports), Some(session)) = (ports, session) {
        reroute(&engine, &name, &session, &ports).await?;
    }
    let inner = engine.lock();
    let entry = inner.entry(&name)?;
    json_answer(json!({ "sandbox": engine.view(entry), "routes": routes_view(entry) }))
}

/// Opens and closes routes so that exactly these ports have one.
async fn reroute(
    engine: &SharedEngine,
    name: &str,
    session: &str,
    ports: &[u16],
) -> Result<(), ApiError> {
    let there: Vec<u16> = {
        let inner = engine.lock();
        let routes = inner.entry(name)?.routes.iter();
        routes.map(|route| route.port).collect()
    };
    let mut opened = Vec::new();
    for port in ports.iter().filter(|port| !there.contains(port)) {
        let route = routes::open(engine, name, session, *port).await;
        opened.push(route.map_err(ApiError::internal)?);
    }
    engine.change_session(name, session, |entry, _| {
        entry.routes.retain(|route| ports.contains(&route.port));
        entry.routes.extend(opened);
    });
    Ok(())
}

pub(super) async fn delete(
    State(engine): EngineState,
    Path(name): Path<String>,
    Query(query): Query<SandboxQuery>,
) -> ApiResult {
    check_project(&engine, query.project_id.as_ref())?;
    let with_snapshots = query.delete_orphan_snapshots.as_deref() == Some("true");
    let removed = life::remove(&engine, &name, with_snapshots).await?;
    json_answer(json!({ "sandbox": engine.view(&removed) }))
}
