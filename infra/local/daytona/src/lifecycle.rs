//! Sandboxes from creation to deletion: each call begins a transition, which a task completes.

use std::time::Duration;

use crate::api_error::ApiError;
use crate::engine::SharedEngine;
use crate::limits::HOLD_MS_MAX;
use crate::record::Record;
use crate::state::{CallVerdict, DaytonaState, LifecycleCall, verdict};
use crate::store::SandboxEntry;
use crate::transition::{Transition, remove};

/// Result of starting a call.
pub(crate) struct CallStart {
    /// The row at the time of the answer.
    pub(crate) record: Record,
    /// Whether a transition is in progress.
    pub(crate) moving: bool,
}

/// Begins a lifecycle call, or refuses it.
pub(crate) fn begin(
    engine: &SharedEngine,
    id: &str,
    operation: LifecycleCall,
    force: bool,
) -> Result<CallStart, ApiError> {
    let now = engine.clock.now_ms();
    let begun = engine.store.change(id, |entry| begin_entry(entry, operation, now));
    let (begun, epoch) = begun.ok_or_else(|| ApiError::no_sandbox(id))??;
    if begun.moving {
        let transition = Transition::new(engine, id, epoch);
        let grace_ms = if force { 0 } else { engine.run.stop_grace_ms };
        let state = begun.record.state;
        engine.machine.tasks.spawn(async move { transition.carry_through(state, grace_ms).await });
    }
    Ok(begun)
}

/// Sets an operation's first state; also returns its epoch.
fn begin_entry(
    entry: &mut SandboxEntry,
    operation: LifecycleCall,
    now: i64,
) -> Result<(CallStart, u64), ApiError> {
    let begun = |entry: &SandboxEntry, moving| {
        let record = entry.record.clone();
        (CallStart { record, moving }, entry.epoch)
    };
    match verdict(operation, entry.record.state, entry.record.recoverable) {
        CallVerdict::Refuse(status, text) => return Err(ApiError::new(status, text)),
        CallVerdict::Nothing => return Ok(begun(entry, false)),
        CallVerdict::Go => {}
    }
    // Stopping an ephemeral sandbox deletes it.
    let operation = match operation {
        LifecycleCall::Stop if entry.record.auto_delete == 0 => LifecycleCall::Delete,
        operation => operation,
    };
    entry.epoch += 1;
    entry.relieved = false;
    entry.record.updated_at = now;
    entry.record.last_activity = now;
    entry.record.state = match (operation, entry.record.state) {
        (LifecycleCall::Start, DaytonaState::Archived) => DaytonaState::Restoring,
        (LifecycleCall::Start | LifecycleCall::Recover, _) => DaytonaState::Starting,
        (LifecycleCall::Stop, _) => DaytonaState::Stopping,
        (LifecycleCall::Archive, _) => DaytonaState::Archiving,
        (LifecycleCall::Delete, _) => DaytonaState::Destroying,
        (LifecycleCall::Snapshot, before) => {
            entry.record.back_to = Some(before);
            DaytonaState::Snapshotting
        }
    };
    if operation == LifecycleCall::Delete {
        // The name is free at once.
        entry.record.name = format!("DESTROYED_{}_{now}", entry.record.name);
    }
    Ok(begun(entry, true))
}

/// Begins a snapshot of a sandbox. Its result is not reported.
pub(crate) fn begin_snapshot(
    engine: &SharedEngine,
    id: &str,
    name: String,
) -> Result<Record, ApiError> {
    let now = engine.clock.now_ms();
    let begun = engine.store.change(id, |entry| begin_entry(entry, LifecycleCall::Snapshot, now));
    let (begun, epoch) = begun.ok_or_else(|| ApiError::no_sandbox(id))??;
    let transition = Transition::new(engine, id, epoch);
    engine.machine.tasks.spawn(async move { transition.snapshot(name).await });
    Ok(begun.record)
}

/// Takes a new sandbox through the states of its creation.
pub(crate) fn provision(engine: &SharedEngine, id: &str, build: bool) {
    let transition = Transition::new(engine, id, 0);
    engine.machine.tasks.spawn(async move { transition.create(build).await });
}

/// Waits until the sandbox is started, failed or gone, or the longest hold is over.
pub(crate) async fn wait_until_settled(engine: &SharedEngine, id: &str) -> Option<Record> {
    let mut changes = engine.store.changes();
    let settled = async {
        loop {
            changes.mark_unchanged();
            let record = engine.store.record(id)?;
            if matches!(
                record.state,
                DaytonaState::Started
                    | DaytonaState::Stopped
                    | DaytonaState::Error
                    | DaytonaState::BuildFailed
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

/// Deletes the sandbox at once, with everything that runs in it.
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
