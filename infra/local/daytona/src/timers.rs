//! Auto-stop, auto-archive, auto-delete and time to live, by the clock that a test can advance. When memory gets short
//! the least recently used sandbox is stopped early, like its auto-stop would: the next use starts it again.

use bobbin_local_sandbox::memory;
use bobbin_local_sandbox::serve::again_and_again;

use crate::engine::SharedEngine;
use crate::lifecycle;
use crate::limits::{RELIEF_IDLE_MS, TIMER_TICK_MS};
use crate::record::Record;
use crate::state::{DaytonaState, LifecycleCall};
use crate::store::SandboxEntry;

const MINUTE_MS: i64 = 60_000;

/// Checks every sandbox at an interval until the provider stops.
pub(crate) async fn run(engine: SharedEngine) {
    let stopping = engine.stopping.clone();
    again_and_again(TIMER_TICK_MS, stopping, || sweep(&engine)).await;
}

/// Begins what is due. A sandbox in transition is checked again later.
pub(crate) fn sweep(engine: &SharedEngine) {
    let now = engine.clock.now_ms();
    let mut due = Vec::new();
    for (id, entry) in &mut engine.store.lock().sandboxes {
        // An open connection counts as activity.
        if entry.open > 0 {
            entry.record.last_activity = now;
        }
        if let Some(operation) = due_operation(&entry.record, now) {
            due.push((id.clone(), operation));
        }
    }
    put_snapshots_to_sleep(engine, now);
    if let Some(id) = to_relieve(engine, now) {
        tracing::warn!(sandbox.id = id, "memory is short: the longest unused sandbox is stopped");
        if lifecycle::begin(engine, &id, LifecycleCall::Stop, false).is_ok() {
            engine.store.change(&id, |entry| entry.relieved = true);
        }
    }
    for (id, operation) in due {
        tracing::info!(sandbox.id = id, operation = ?operation, "a sandbox's timer has run out");
        if let Err(refused) = lifecycle::begin(engine, &id, operation, false) {
            tracing::debug!(
                sandbox.id = id,
                reason = refused.message,
                "the timer's operation is refused for now"
            );
        }
    }
}

/// The sandbox to stop for lack of memory: one at a time, so that the freed memory is seen before the next.
fn to_relieve(engine: &SharedEngine, now: i64) -> Option<String> {
    let wanted_mb = engine.run.memory_left_mb;
    if wanted_mb == 0 || memory::left_mb()? >= wanted_mb {
        return None;
    }
    let inner = engine.store.lock();
    let all = || inner.sandboxes.iter();
    if all().any(|(_, entry)| entry.record.state == DaytonaState::Stopping) {
        return None;
    }
    let is_unused = |entry: &SandboxEntry| {
        let idle = now.saturating_sub(entry.record.last_activity);
        entry.record.state == DaytonaState::Started && entry.open == 0 && idle >= RELIEF_IDLE_MS
    };
    let longest = all()
        .filter(|(_, entry)| is_unused(entry))
        .min_by_key(|(_, entry)| entry.record.last_activity);
    longest.map(|(id, _)| id.clone())
}

fn put_snapshots_to_sleep(engine: &SharedEngine, now: i64) {
    let snapshots = &mut engine.store.lock().snapshots;
    let mut idle = snapshots.values_mut().filter(|one| one.is_idle(now)).peekable();
    if idle.peek().is_none() {
        return;
    }
    for snapshot in idle {
        "inactive".clone_into(&mut snapshot.state);
    }
    if let Err(error) = engine.store.save_snapshots(snapshots) {
        tracing::error!(reason = error.message, "the snapshots could not be written");
    }
}

fn due_operation(record: &Record, now: i64) -> Option<LifecycleCall> {
    let idle = now.saturating_sub(record.last_activity);
    let over = |minutes: i64| idle >= minutes.saturating_mul(MINUTE_MS);
    if record.state == DaytonaState::Destroying {
        return None;
    }
    if record.destroy_at.is_some_and(|at| now >= at) {
        return Some(LifecycleCall::Delete);
    }
    match record.state {
        DaytonaState::Started if record.auto_stop > 0 && over(record.auto_stop) => {
            Some(LifecycleCall::Stop)
        }
        DaytonaState::Stopped if record.auto_delete >= 0 && over(record.auto_delete) => {
            Some(LifecycleCall::Delete)
        }
        DaytonaState::Stopped if record.auto_archive > 0 && over(record.auto_archive) => {
            Some(LifecycleCall::Archive)
        }
        _ => None,
    }
}
