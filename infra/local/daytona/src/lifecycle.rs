//! Sandboxes from creation to their end: each call begins a transition, which a task carries through.

use std::sync::Arc;
use std::time::Duration;

use crate::api_error::ApiError;
use crate::clock::system_ms;
use crate::engine::{Engine, SharedEngine};
use crate::faults::Fault;
use crate::init_process::InitProcess;
use crate::launch::{free_port, run_entrypoint, start_init};
use crate::limits::HOLD_MS_MAX;
use crate::processes::ProcessSet;
use crate::random::token;
use crate::record::Record;
use crate::state::{Operation, SandboxState, Verdict, verdict};
use crate::store::Entry;

/// What a call leaves behind it.
pub(crate) struct Begun {
    /// The row as it is when the call is answered.
    pub(crate) record: Record,
    /// Whether something is going on now.
    pub(crate) moving: bool,
}

/// Begins a lifecycle call, or says why not.
pub(crate) fn begin(
    engine: &SharedEngine,
    id: &str,
    operation: Operation,
    force: bool,
) -> Result<Begun, ApiError> {
    let now = engine.clock.now_ms();
    let begun = engine
        .store
        .change(id, |entry| begin_entry(entry, operation, now));
    let (begun, epoch) = begun.ok_or_else(|| ApiError::no_sandbox(id))??;
    if begun.moving {
        let (engine, id, state) = (engine.clone(), id.to_owned(), begun.record.state);
        let grace_ms = if force { 0 } else { engine.stop_grace_ms };
        let tasks = engine.tasks.clone();
        tasks.spawn(async move { carry_through(&engine, &id, epoch, state, grace_ms).await });
    }
    Ok(begun)
}

/// Brings a sandbox to the first state of what an operation begins; answers the epoch of that too.
fn begin_entry(
    entry: &mut Entry,
    operation: Operation,
    now: i64,
) -> Result<(Begun, u64), ApiError> {
    let begun = |entry: &Entry, moving| {
        let record = entry.record.clone();
        (Begun { record, moving }, entry.epoch)
    };
    match verdict(operation, entry.record.state, entry.record.recoverable) {
        Verdict::Refuse(status, text) => return Err(ApiError::new(status, text)),
        Verdict::Nothing => return Ok(begun(entry, false)),
        Verdict::Go => {}
    }
    // An ephemeral sandbox is deleted by its stop.
    let operation = match operation {
        Operation::Stop if entry.record.auto_delete == 0 => Operation::Delete,
        operation => operation,
    };
    entry.epoch += 1;
    entry.record.updated_at = now;
    entry.record.last_activity = now;
    entry.record.state = match (operation, entry.record.state) {
        (Operation::Start, SandboxState::Archived) => SandboxState::Restoring,
        (Operation::Start | Operation::Recover, _) => SandboxState::Starting,
        (Operation::Stop, _) => SandboxState::Stopping,
        (Operation::Archive, _) => SandboxState::Archiving,
        (Operation::Delete, _) => SandboxState::Destroying,
    };
    if operation == Operation::Delete {
        // The name is free at once.
        entry.record.name = format!("DESTROYED_{}_{now}", entry.record.name);
    }
    Ok(begun(entry, true))
}

/// Carries a sandbox from the first state of an operation to the last.
async fn carry_through(
    engine: &SharedEngine,
    id: &str,
    epoch: u64,
    state: SandboxState,
    grace_ms: u64,
) {
    match state {
        SandboxState::Stopping => stop(engine, id, epoch, grace_ms).await,
        SandboxState::Destroying => destroy(engine, id, epoch).await,
        SandboxState::Archiving => {
            if pass_through(engine, id, epoch, SandboxState::Archiving).await {
                set_state(engine, id, epoch, SandboxState::Archived);
            }
        }
        _ => {
            if pass_through(engine, id, epoch, state).await {
                boot(engine, id, epoch).await;
            }
        }
    }
}

/// Carries a new sandbox through the states of its creation.
pub(crate) fn provision(engine: &SharedEngine, id: &str, build: bool) {
    let (engine, id) = (engine.clone(), id.to_owned());
    let tasks = engine.tasks.clone();
    tasks.spawn(async move {
        let all = [
            SandboxState::PendingBuild,
            SandboxState::BuildingSnapshot,
            SandboxState::PullingSnapshot,
            SandboxState::Creating,
        ];
        for state in &all[if build { 0 } else { 3 }..] {
            if !pass_through(&engine, &id, 0, *state).await {
                return;
            }
            let failed = (*state == SandboxState::BuildingSnapshot).then(|| {
                engine.faults.take(&engine.names(&id), |fault| match fault {
                    Fault::FailBuild { recoverable } => Some(*recoverable),
                    _ => None,
                })
            });
            if let Some(Some(recoverable)) = failed {
                let reason = "the build failed";
                return fail(
                    &engine,
                    &id,
                    0,
                    SandboxState::BuildFailed,
                    reason,
                    recoverable,
                );
            }
        }
        boot(&engine, &id, 0).await;
    });
}

/// Waits until the sandbox is started, has failed or is gone, or the call has been held for long enough.
pub(crate) async fn wait_until_settled(engine: &SharedEngine, id: &str) -> Option<Record> {
    let mut changes = engine.store.changes();
    let settled = async {
        loop {
            changes.mark_unchanged();
            let record = engine.store.record(id)?;
            if matches!(
                record.state,
                SandboxState::Started
                    | SandboxState::Stopped
                    | SandboxState::Error
                    | SandboxState::BuildFailed
            ) {
                return Some(record);
            }
            changes.changed().await.ok()?;
        }
    };
    tokio::time::timeout(Duration::from_millis(HOLD_MS_MAX), settled)
        .await
        .unwrap_or_else(|_| engine.store.record(id))
}

/// The sandbox is gone at once, with everything that runs in it.
pub(crate) async fn lose(engine: &SharedEngine, id: &str) {
    let process = engine.store.change(id, |entry| {
        entry.epoch += 1;
        entry.process.take()
    });
    if let Some(Some(process)) = process {
        process.end(0).await;
    }
    remove(engine, id).await;
}

/// Is in `state` for as long as a transition takes. False: something else has begun meanwhile.
async fn pass_through(engine: &SharedEngine, id: &str, epoch: u64, state: SandboxState) -> bool {
    if !set_state(engine, id, epoch, state) {
        return false;
    }
    let held = engine.faults.take(&engine.names(id), |fault| match fault {
        Fault::HoldState { state: at, ms } if *at == state => Some(*ms),
        _ => None,
    });
    let duration = Duration::from_millis(held.unwrap_or(engine.transition_ms));
    tokio::select! {
        () = tokio::time::sleep(duration) => {}
        () = engine.stopping.cancelled() => return false,
    }
    is_current(engine, id, epoch)
}

fn is_current(engine: &SharedEngine, id: &str, epoch: u64) -> bool {
    engine
        .store
        .lock()
        .sandboxes
        .get(id)
        .is_some_and(|entry| entry.epoch == epoch)
}

/// Notes the state that a transition has reached, unless something else has begun meanwhile.
fn set_state(engine: &SharedEngine, id: &str, epoch: u64, state: SandboxState) -> bool {
    let now = engine.clock.now_ms();
    let changed = engine.store.change(id, |entry| {
        let current = entry.epoch == epoch;
        if current && entry.record.state != state {
            entry.record.state = state;
            entry.record.updated_at = now;
        }
        current
    });
    changed == Some(true)
}

fn fail(
    engine: &SharedEngine,
    id: &str,
    epoch: u64,
    state: SandboxState,
    reason: &str,
    recoverable: bool,
) {
    if set_state(engine, id, epoch, state) {
        engine.store.change(id, |entry| {
            entry.record.error_reason = Some(reason.to_owned());
            entry.record.recoverable = recoverable;
        });
        tracing::warn!(sandbox.id = id, reason, "a sandbox failed");
    }
}

/// Starts the first process; the sandbox is started when that has greeted.
async fn boot(engine: &SharedEngine, id: &str, epoch: u64) {
    let names = engine.names(id);
    let broken = engine.faults.take(&names, |fault| match fault {
        Fault::FailStart { recoverable } => Some(*recoverable),
        _ => None,
    });
    if let Some(recoverable) = broken {
        let reason = "the start failed";
        return fail(engine, id, epoch, SandboxState::Error, reason, recoverable);
    }
    let Some(record) = engine.store.record(id) else {
        return;
    };
    let Some(port) = free_port(engine, &record) else {
        let reason = "no free port was found on this machine";
        return fail(engine, id, epoch, SandboxState::Error, reason, true);
    };
    let record = Record { port, ..record };
    let process = match start_init(engine, &record).await {
        Ok(process) => Arc::new(process),
        Err(reason) => return fail(engine, id, epoch, SandboxState::Error, &reason, true),
    };
    if !record.entrypoint.is_empty() {
        run_entrypoint(&process, &record).await;
    }
    let stale_ms = engine.faults.take(&names, |fault| match fault {
        Fault::StalePreview { ms } => Some(*ms),
        _ => None,
    });
    let now = engine.clock.now_ms();
    let is_current = engine.store.change(id, |entry| {
        let is_current = entry.epoch == epoch;
        if is_current {
            note_start(entry, port, process.clone(), stale_ms, now);
        }
        is_current
    });
    if is_current != Some(true) {
        process.end(0).await;
        return;
    }
    watch_for_end(engine, id, epoch, &process);
}

/// What a start changes: above all the preview token, which the fault keeps the proxy from hearing of for a while.
fn note_start(
    entry: &mut Entry,
    port: u16,
    process: Arc<InitProcess>,
    stale_ms: Option<u64>,
    now: i64,
) {
    entry.stale_token = stale_ms.map(|ms| {
        let until = system_ms().saturating_add(i64::try_from(ms).unwrap_or(i64::MAX));
        (entry.record.token.clone(), until)
    });
    entry.record.token = token(32);
    entry.record.port = port;
    entry.record.state = SandboxState::Started;
    entry.record.error_reason = None;
    entry.record.recoverable = false;
    entry.record.updated_at = now;
    entry.record.last_activity = now;
    entry.process = Some(process);
}

/// A sandbox whose first process ends by itself is stopped, as a container is.
fn watch_for_end(engine: &SharedEngine, id: &str, epoch: u64, process: &InitProcess) {
    let mut ended = process.ended();
    let (engine, id) = (engine.clone(), id.to_owned());
    tokio::spawn(async move {
        // An error means that the handle is gone altogether.
        let _ = ended.wait_for(|ended| *ended).await;
        if is_current(&engine, &id, epoch) {
            engine.store.change(&id, |entry| entry.process = None);
            set_state(&engine, &id, epoch, SandboxState::Stopped);
        }
    });
}

async fn stop(engine: &SharedEngine, id: &str, epoch: u64, grace_ms: u64) {
    let process = take_process(engine, id);
    let ended = async {
        match process {
            Some(process) => process.end(grace_ms).await,
            None => {
                ProcessSet::of_sandbox(&engine.state_dir, id)
                    .end(grace_ms)
                    .await
            }
        }
    };
    let (left, current) = tokio::join!(
        ended,
        pass_through(engine, id, epoch, SandboxState::Stopping)
    );
    if left > 0 {
        let reason = format!("{left} processes could not be ended");
        return fail(engine, id, epoch, SandboxState::Error, &reason, true);
    }
    if current {
        set_state(engine, id, epoch, SandboxState::Stopped);
    }
}

async fn destroy(engine: &SharedEngine, id: &str, epoch: u64) {
    let process = take_process(engine, id);
    let ended = async {
        if let Some(process) = process {
            process.end(0).await;
        }
    };
    tokio::join!(
        ended,
        pass_through(engine, id, epoch, SandboxState::Destroying)
    );
    remove(engine, id).await;
}

fn take_process(engine: &Engine, id: &str) -> Option<Arc<InitProcess>> {
    engine
        .store
        .change(id, |entry| entry.process.take())
        .flatten()
}

/// Removing a big folder takes a while, so it is done outside of the runtime.
async fn remove(engine: &SharedEngine, id: &str) {
    let (engine, id) = (engine.clone(), id.to_owned());
    let removed = tokio::task::spawn_blocking(move || engine.store.remove(&id)).await;
    drop(removed);
}
