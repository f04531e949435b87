//! The life of a session: its disk is prepared, its first process started, its routes opened; at its end the processes
//! are stopped and the disk is kept.

use std::sync::Arc;
use std::time::Duration;

use bobbin_local_sandbox::disk::{copy_folder, remove_folder};
use bobbin_local_sandbox::gateway::Treatment;
use bobbin_local_sandbox::init_process::InitProcess;
use bobbin_local_sandbox::machine::{SandboxStart, free_port};

use crate::api_error::ApiError;
use crate::faults::Fault;
use crate::limits::{HOLD_MS_MAX, SNAPSHOT_MS};
use crate::record::{KeepLast, Record, SessionRecord, SessionStatus, SnapshotRecord, new_id};
use crate::routes;
use crate::state::{ProviderState, SharedEngine};

/// The name of the only user.
const USER: &str = "vercel-sandbox";

/// Why a session ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionEnd {
    /// It is stopped, or its time is over.
    Stop,
    /// A snapshot is requested, with this lifetime (`None`: the sandbox's default).
    Snapshot { expiration: Option<u64> },
}

/// Begins a session that is already recorded.
pub(crate) fn begin(engine: &SharedEngine, name: &str, session: &str) {
    let (own, name, session) = (Arc::clone(engine), name.to_owned(), session.to_owned());
    engine.machine.tasks.spawn(async move {
        if let Err(reason) = boot(&own, &name, &session).await {
            tracing::warn!(sandbox.name = name, reason, "a session did not start");
            own.change_session(&name, &session, |entry, now| {
                if let Some(session) = entry.record.session_mut() {
                    session.status = SessionStatus::Failed;
                    session.stopped_at = Some(now);
                }
            });
        }
    });
}

async fn boot(engine: &SharedEngine, name: &str, session: &str) -> Result<(), String> {
    let found = {
        let inner = engine.lock();
        let entry = inner.sandboxes.get(name);
        let others = inner.sandboxes.values().map(|one| &one.record);
        let others: Vec<u16> =
            others.filter(|one| one.name != name).map(|one| one.agent_port).collect();
        entry.map(|entry| (entry.record.clone(), others))
    };
    let Some((mut record, others)) = found else {
        return Ok(());
    };
    lay_out(engine, &record).await?;
    hold(engine, name).await;
    let port = free_port(record.agent_port, &others);
    record.agent_port = port.ok_or("no free port was found on this machine")?;
    let process = Arc::new(start(engine, &record).await?);
    let mut opened = Vec::new();
    for port in &record.ports {
        let route = routes::open(engine, name, session, *port).await;
        opened.push(route.map_err(|error| error.to_string())?);
    }
    let begun = engine.change_session(name, session, |entry, now| {
        entry.record.agent_port = record.agent_port;
        entry.record.disk_is_left = false;
        entry.process = Some(Arc::clone(&process));
        entry.routes = opened;
        entry.commands.clear();
        if let Some(session) = entry.record.session_mut() {
            session.status = SessionStatus::Running;
            session.started_at = Some(now);
        }
    });
    match begun {
        Some(()) => watch_for_end(engine, name, session, &process),
        // Deleted in the meantime.
        None => drop(process.end(0).await),
    }
    Ok(())
}

/// Prepares the session's disk.
async fn lay_out(engine: &SharedEngine, record: &Record) -> Result<(), String> {
    if record.disk_is_left {
        return Ok(());
    }
    let home = engine.home(record);
    let source = record.session().and_then(|one| one.source_snapshot.clone());
    let source = source.map(|id| engine.copy_dir(&id));
    let laid = tokio::task::spawn_blocking(move || {
        remove_folder(&home)?;
        match source {
            Some(copy) => copy_folder(&copy, &home).map(drop),
            None => std::fs::create_dir_all(&home),
        }
    });
    let laid = laid.await.map_err(|error| error.to_string())?;
    laid.map_err(|error| format!("the disk could not be laid out: {error}"))
}

async fn start(engine: &SharedEngine, record: &Record) -> Result<InitProcess, String> {
    // Weak, since the engine holds the network through its sandbox.
    let (weak, name) = (Arc::downgrade(engine), record.name.clone());
    let treatments = Arc::new(move |host: &str| {
        let Some(engine) = weak.upgrade() else {
            return Treatment::Refuse;
        };
        let inner = engine.lock();
        let policy = inner.sandboxes.get(&name).and_then(|one| one.policy.as_ref());
        policy.map_or(Treatment::Pass, |policy| policy.treatment(host))
    });
    let variables = record.env.iter();
    let start = SandboxStart {
        id: &record.folder,
        folder: &engine.sandbox_dir(record),
        port: record.agent_port,
        user: USER,
        variables: variables.map(|(name, value)| (name.clone(), value.clone())).collect(),
        // A policy may be set while it runs.
        trusts: true,
        treatments,
    };
    engine.machine.start(start).await
}

/// A session whose first process exits by itself has failed.
fn watch_for_end(engine: &SharedEngine, name: &str, session: &str, process: &InitProcess) {
    let mut ended = process.ended();
    let (engine, name, session) = (Arc::clone(engine), name.to_owned(), session.to_owned());
    tokio::spawn(async move {
        // An error means that the handle is gone.
        let _ = ended.wait_for(|ended| *ended).await;
        engine.change_session(&name, &session, |entry, now| {
            let Some(session) = entry.record.session_mut() else {
                return;
            };
            if session.status == SessionStatus::Running {
                session.status = SessionStatus::Failed;
                session.stopped_at = Some(now);
                entry.process = None;
                entry.routes.clear();
            }
        });
    });
}

/// Ends a running session; its record shows the result.
///
/// # Errors
/// It is not running.
pub(crate) fn end(engine: &SharedEngine, id: &str, end: SessionEnd) -> Result<String, ApiError> {
    let now = engine.clock.now_ms();
    let (name, process) = engine.change(|inner| {
        let name = inner.of_session(id)?.record.name.clone();
        let entry = inner.sandboxes.get_mut(&name);
        let entry = entry.ok_or_else(|| ApiError::no_sandbox(&name))?;
        let process = entry.running(id)?;
        entry.process = None;
        entry.routes.clear();
        if let Some(session) = entry.record.session_mut() {
            session.updated_at = now;
            session.status = match end {
                SessionEnd::Stop => SessionStatus::Stopping,
                SessionEnd::Snapshot { .. } => SessionStatus::Snapshotting,
            };
        }
        Ok((name, process))
    })?;
    let (own, of, session) = (Arc::clone(engine), name.clone(), id.to_owned());
    engine.machine.tasks.spawn(async move {
        let grace_ms = own.settings.run.stop_grace_ms;
        tokio::join!(process.end(grace_ms), hold(&own, &of));
        keep(&own, &of, &session, end).await;
    });
    Ok(name)
}

/// Keeps the disk of a session whose processes have ended, and marks it as ended.
async fn keep(engine: &SharedEngine, name: &str, session: &str, end: SessionEnd) {
    let record = {
        let inner = engine.lock();
        inner.sandboxes.get(name).map(|entry| entry.record.clone())
    };
    let Some(record) = record else { return };
    let is_kept = record.persistent || end != SessionEnd::Stop;
    let id = new_id("snap");
    let copied = if is_kept {
        let (from, to) = (engine.home(&record), engine.copy_dir(&id));
        let copied = tokio::task::spawn_blocking(move || copy_folder(&from, &to)).await;
        copied.map_err(std::io::Error::other).flatten().map(Some)
    } else {
        Ok(None)
    };
    let now = engine.clock.now_ms();
    let kept = engine.change(|inner| {
        let Some(entry) = inner.sandboxes.get_mut(name) else {
            return Ok(());
        };
        let Some(ended) = entry.record.session_mut().filter(|one| one.id == session) else {
            return Ok(());
        };
        ended.status = match &copied {
            Ok(_) => SessionStatus::Stopped,
            Err(_) => SessionStatus::Failed,
        };
        ended.stopped_at = Some(now);
        ended.updated_at = now;
        entry.record.updated_at = now;
        if let Ok(Some(bytes)) = copied {
            entry.record.current_snapshot = Some(id.clone());
            let snapshot = SnapshotRecord {
                id: id.clone(),
                sandbox: name.to_owned(),
                source_session: session.to_owned(),
                created_at: now,
                updated_at: now,
                expires_at: expiry(&entry.record, end, now),
                bytes,
                is_deleted: false,
            };
            let rule = entry.record.keep_last;
            inner.snapshots.insert(id.clone(), snapshot);
            evict(inner, name, rule, now);
        }
        Ok(())
    });
    if let Err(error) = kept {
        tracing::error!(reason = error.message, "a session's end could not be recorded");
    }
    sweep_copies(engine).await;
}

fn expiry(record: &Record, end: SessionEnd, now: i64) -> Option<i64> {
    let asked = match end {
        SessionEnd::Snapshot { expiration } => expiration,
        SessionEnd::Stop => record.keep_last.and_then(|rule| rule.expiration),
    };
    let ms = asked.or(record.snapshot_expiration).unwrap_or(SNAPSHOT_MS);
    // 0 means no expiry.
    (ms > 0).then(|| now.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX)))
}

/// Deletes snapshots that the sandbox's retention rule does not keep.
fn evict(inner: &mut ProviderState, name: &str, rule: Option<KeepLast>, now: i64) {
    let Some(rule) = rule.filter(|rule| rule.delete_evicted != Some(false)) else {
        return;
    };
    let of_it = inner.snapshots.values_mut();
    let mut of_it: Vec<&mut SnapshotRecord> =
        of_it.filter(|one| one.sandbox == name && !one.is_deleted).collect();
    // The current one stays, however snapshots of the same moment are ordered.
    of_it.sort_by_key(|one| one.created_at);
    let evicted = of_it.len().saturating_sub(rule.count);
    let current = inner.sandboxes.get(name);
    let current = current.and_then(|entry| entry.record.current_snapshot.clone());
    for snapshot in of_it.into_iter().take(evicted) {
        if Some(&snapshot.id) != current.as_ref() {
            snapshot.is_deleted = true;
            snapshot.updated_at = now;
        }
    }
}

/// Removes copies of deleted snapshots.
pub(crate) async fn sweep_copies(engine: &SharedEngine) {
    let gone: Vec<_> = {
        let inner = engine.lock();
        let deleted = inner.snapshots.values().filter(|one| one.is_deleted);
        deleted.map(|one| engine.copy_dir(&one.id)).collect()
    };
    let removed = tokio::task::spawn_blocking(move || {
        for copy in gone {
            if let Err(error) = remove_folder(&copy) {
                tracing::warn!(%error, "a snapshot's copy could not be removed");
            }
        }
    });
    drop(removed.await);
}

/// Begins a new session if the last one has ended; returns whether it did.
///
/// # Errors
/// The last session is still ending, or its disk is gone.
pub(crate) fn resume(engine: &SharedEngine, name: &str) -> Result<bool, ApiError> {
    let now = engine.clock.now_ms();
    let begun = engine.change(|inner| {
        let record = &inner.entry(name)?.record;
        match record.status() {
            SessionStatus::Pending | SessionStatus::Running => return Ok(None),
            SessionStatus::Stopping => return Err(ApiError::stopping()),
            SessionStatus::Snapshotting => return Err(ApiError::snapshotting()),
            SessionStatus::Stopped | SessionStatus::Failed => {}
        }
        let source = record.current_snapshot.clone();
        if let Some(id) = source.as_ref().filter(|_| !record.disk_is_left) {
            inner.snapshot(id, now)?;
        }
        let entry = inner.sandboxes.get_mut(name);
        let entry = entry.ok_or_else(|| ApiError::no_sandbox(name))?;
        let session = SessionRecord::new(entry.record.timeout_ms, source, now);
        let id = session.id.clone();
        let sessions = &mut entry.record.sessions;
        sessions.push(session);
        let over = sessions.len().saturating_sub(crate::limits::SESSIONS_KEPT);
        sessions.drain(..over);
        Ok(Some(id))
    })?;
    if let Some(session) = &begun {
        begin(engine, name, session);
    }
    Ok(begun.is_some())
}

/// Waits until a sandbox has no transition in progress or is gone, or the longest hold is over.
pub(crate) async fn settled(engine: &SharedEngine, name: &str) {
    let mut changes = engine.changes();
    let settled = async {
        loop {
            changes.mark_unchanged();
            let status = {
                let inner = engine.lock();
                inner.sandboxes.get(name).map(|entry| entry.record.status())
            };
            let is_under_way = matches!(
                status,
                Some(
                    SessionStatus::Pending | SessionStatus::Stopping | SessionStatus::Snapshotting
                )
            );
            if !is_under_way || changes.changed().await.is_err() {
                return;
            }
        }
    };
    // On a time-out the answer shows the transition in progress.
    let _ = tokio::time::timeout(Duration::from_millis(HOLD_MS_MAX), settled).await;
}

/// Deletes a sandbox at once, with everything that runs in it.
///
/// # Errors
/// It does not exist.
pub(crate) async fn remove(
    engine: &SharedEngine,
    name: &str,
    with_snapshots: bool,
) -> Result<crate::state::LiveSandbox, ApiError> {
    let now = engine.clock.now_ms();
    let mut entry = engine.change(|inner| {
        let entry = inner.sandboxes.remove(name);
        let entry = entry.ok_or_else(|| ApiError::no_sandbox(name))?;
        if with_snapshots {
            let used: Vec<String> = inner
                .sandboxes
                .values()
                .filter_map(|one| one.record.current_snapshot.clone())
                .collect();
            let orphans = inner
                .snapshots
                .values_mut()
                .filter(|one| one.sandbox == name && !used.contains(&one.id));
            for orphan in orphans {
                orphan.is_deleted = true;
                orphan.updated_at = now;
            }
        }
        Ok(entry)
    })?;
    entry.routes.clear();
    if let Some(process) = entry.process.take() {
        process.end(0).await;
    }
    let folder = engine.sandbox_dir(&entry.record);
    let removed = tokio::task::spawn_blocking(move || remove_folder(&folder)).await;
    if let Ok(Err(error)) = removed {
        tracing::warn!(%error, "a sandbox's files could not be removed");
    }
    sweep_copies(engine).await;
    Ok(entry)
}

/// Waits for the time of a transition.
async fn hold(engine: &SharedEngine, name: &str) {
    let held = engine.faults.take(&engine.names(name), |fault| match fault {
        Fault::Hold { ms } => Some(*ms),
        Fault::Page { .. } => None,
    });
    let ms = held.unwrap_or(engine.settings.run.transition_ms);
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(ms)) => {}
        () = engine.stopping.cancelled() => {}
    }
}
