//! Sandboxes from creation to their end: each call begins a transition, which a task carries through.

use std::sync::Arc;
use std::time::Duration;

use crate::fail::Fail;
use crate::faults::Fault;
use crate::guest::Guest;
use crate::launch::{free_port, run_entrypoint, start_guest};
use crate::limits::HOLD_MS_MAX;
use crate::processes::Mark;
use crate::record::{Record, token};
use crate::shared::Context;
use crate::state::{Operation, State, Verdict, verdict};
/// What a call leaves behind it.
pub(crate) struct Begun {
    /// The row as it is when the call is answered.
    pub(crate) record: Record,
    /// Whether something is going on now.
    pub(crate) moving: bool,
}

/// Begins a lifecycle call, or says why not.
pub(crate) fn begin(
    shared: &Context,
    id: &str,
    operation: Operation,
    force: bool,
) -> Result<Begun, Fail> {
    let now = shared.clock.now_ms();
    let begun = shared.store.change(id, |entry| {
        match verdict(operation, entry.record.state, entry.record.recoverable) {
            Verdict::Refuse(status, text) => return Err(Fail::new(status, text)),
            Verdict::Nothing => {
                return Ok((
                    Begun {
                        record: entry.record.clone(),
                        moving: false,
                    },
                    entry.epoch,
                ));
            }
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
            (Operation::Start, State::Archived) => State::Restoring,
            (Operation::Start | Operation::Recover, _) => State::Starting,
            (Operation::Stop, _) => State::Stopping,
            (Operation::Archive, _) => State::Archiving,
            (Operation::Delete, _) => State::Destroying,
        };
        if operation == Operation::Delete {
            // The name is free at once.
            entry.record.name = format!("DESTROYED_{}_{now}", entry.record.name);
        }
        Ok((
            Begun {
                record: entry.record.clone(),
                moving: true,
            },
            entry.epoch,
        ))
    });
    let (begun, epoch) = begun.ok_or_else(|| Fail::no_sandbox(id))??;
    if begun.moving {
        let (shared, id, state) = (shared.clone(), id.to_owned(), begun.record.state);
        let grace_ms = if force { 0 } else { shared.stop_grace_ms };
        let tasks = shared.tasks.clone();
        tasks.spawn(async move {
            match state {
                State::Stopping => halt(&shared, &id, epoch, grace_ms).await,
                State::Destroying => destroy(&shared, &id, epoch).await,
                State::Archiving => {
                    if pass(&shared, &id, epoch, State::Archiving).await {
                        settle(&shared, &id, epoch, State::Archived);
                    }
                }
                _ => {
                    if pass(&shared, &id, epoch, state).await {
                        boot(&shared, &id, epoch).await;
                    }
                }
            }
        });
    }
    Ok(begun)
}

/// Carries a new sandbox through the states of its creation.
pub(crate) fn provision(shared: &Context, id: &str, build: bool) {
    let (shared, id) = (shared.clone(), id.to_owned());
    let tasks = shared.tasks.clone();
    tasks.spawn(async move {
        let all = [
            State::PendingBuild,
            State::BuildingSnapshot,
            State::PullingSnapshot,
            State::Creating,
        ];
        for state in &all[if build { 0 } else { 3 }..] {
            if !pass(&shared, &id, 0, *state).await {
                return;
            }
            let failed = (*state == State::BuildingSnapshot).then(|| {
                shared.faults.take(&shared.names(&id), |fault| match fault {
                    Fault::FailBuild { recoverable } => Some(*recoverable),
                    _ => None,
                })
            });
            if let Some(Some(recoverable)) = failed {
                return fail(
                    &shared,
                    &id,
                    0,
                    State::BuildFailed,
                    "the build failed",
                    recoverable,
                );
            }
        }
        boot(&shared, &id, 0).await;
    });
}

/// Waits until the sandbox is started, has failed or is gone, or the call has been held for long enough.
pub(crate) async fn hold(shared: &Context, id: &str) -> Option<Record> {
    let mut changes = shared.store.changes();
    let settled = async {
        loop {
            changes.mark_unchanged();
            let record = shared.store.record(id)?;
            if matches!(
                record.state,
                State::Started | State::Stopped | State::Error | State::BuildFailed
            ) {
                return Some(record);
            }
            changes.changed().await.ok()?;
        }
    };
    tokio::time::timeout(Duration::from_millis(HOLD_MS_MAX), settled)
        .await
        .unwrap_or_else(|_| shared.store.record(id))
}

/// The sandbox is gone at once, with everything that runs in it.
pub(crate) async fn lose(shared: &Context, id: &str) {
    let guest = shared.store.change(id, |entry| {
        entry.epoch += 1;
        entry.guest.take()
    });
    if let Some(Some(guest)) = guest {
        guest.end(0).await;
    }
    remove(shared, id).await;
}

/// Is in `state` for as long as a transition takes. False: something else has begun meanwhile.
async fn pass(shared: &Context, id: &str, epoch: u64, state: State) -> bool {
    if !settle(shared, id, epoch, state) {
        return false;
    }
    let held = shared.faults.take(&shared.names(id), |fault| match fault {
        Fault::HoldState { state: at, ms } if *at == state => Some(*ms),
        _ => None,
    });
    let duration = Duration::from_millis(held.unwrap_or(shared.transition_ms));
    tokio::select! {
        () = tokio::time::sleep(duration) => {}
        () = shared.stopping.cancelled() => return false,
    }
    is_current(shared, id, epoch)
}

fn is_current(shared: &Context, id: &str, epoch: u64) -> bool {
    shared
        .store
        .lock()
        .sandboxes
        .get(id)
        .is_some_and(|entry| entry.epoch == epoch)
}

/// Notes the state that a transition has reached, unless something else has begun meanwhile.
fn settle(shared: &Context, id: &str, epoch: u64, state: State) -> bool {
    let now = shared.clock.now_ms();
    let changed = shared.store.change(id, |entry| {
        let current = entry.epoch == epoch;
        if current && entry.record.state != state {
            entry.record.state = state;
            entry.record.updated_at = now;
        }
        current
    });
    changed == Some(true)
}

fn fail(shared: &Context, id: &str, epoch: u64, state: State, reason: &str, recoverable: bool) {
    if settle(shared, id, epoch, state) {
        shared.store.change(id, |entry| {
            entry.record.error_reason = Some(reason.to_owned());
            entry.record.recoverable = recoverable;
        });
        tracing::warn!(sandbox.id = id, reason, "a sandbox failed");
    }
}

/// Starts the first process; the sandbox is started when that has greeted.
async fn boot(shared: &Context, id: &str, epoch: u64) {
    let names = shared.names(id);
    let broken = shared.faults.take(&names, |fault| match fault {
        Fault::FailStart { recoverable } => Some(*recoverable),
        _ => None,
    });
    if let Some(recoverable) = broken {
        return fail(
            shared,
            id,
            epoch,
            State::Error,
            "the start failed",
            recoverable,
        );
    }
    let Some(record) = shared.store.record(id) else {
        return;
    };
    let Some(port) = free_port(shared, &record) else {
        return fail(
            shared,
            id,
            epoch,
            State::Error,
            "no free port was found on this machine",
            true,
        );
    };
    let record = Record { port, ..record };
    let guest = match start_guest(shared, &record).await {
        Ok(guest) => Arc::new(guest),
        Err(reason) => return fail(shared, id, epoch, State::Error, &reason, true),
    };
    if !record.entrypoint.is_empty() {
        run_entrypoint(&guest, &record).await;
    }
    let stale_ms = shared.faults.take(&names, |fault| match fault {
        Fault::StalePreview { ms } => Some(*ms),
        _ => None,
    });
    let now = shared.clock.now_ms();
    let taken = shared.store.change(id, |entry| {
        if entry.epoch != epoch {
            return false;
        }
        entry.stale_token = stale_ms.map(|ms| {
            let until =
                crate::clock::system_ms().saturating_add(i64::try_from(ms).unwrap_or(i64::MAX));
            (entry.record.token.clone(), until)
        });
        entry.record.token = token(32);
        entry.record.port = port;
        entry.record.state = State::Started;
        entry.record.error_reason = None;
        entry.record.recoverable = false;
        entry.record.updated_at = now;
        entry.record.last_activity = now;
        entry.guest = Some(guest.clone());
        true
    });
    if taken != Some(true) {
        guest.end(0).await;
        return;
    }
    notice_end(shared, id, epoch, &guest);
}

/// A sandbox whose first process ends by itself is stopped, as a container is.
fn notice_end(shared: &Context, id: &str, epoch: u64, guest: &Guest) {
    let mut ended = guest.ended();
    let (shared, id) = (shared.clone(), id.to_owned());
    tokio::spawn(async move {
        // An error means that the guest is gone altogether.
        let _ = ended.wait_for(|ended| *ended).await;
        if is_current(&shared, &id, epoch) {
            shared.store.change(&id, |entry| entry.guest = None);
            settle(&shared, &id, epoch, State::Stopped);
        }
    });
}

async fn halt(shared: &Context, id: &str, epoch: u64, grace_ms: u64) {
    let guest = shared
        .store
        .change(id, |entry| entry.guest.take())
        .flatten();
    let ended = async {
        match guest {
            Some(guest) => guest.end(grace_ms).await,
            None => Mark::one(&shared.state_dir, id).end(grace_ms).await,
        }
    };
    let (left, current) = tokio::join!(ended, pass(shared, id, epoch, State::Stopping));
    if left > 0 {
        return fail(
            shared,
            id,
            epoch,
            State::Error,
            &format!("{left} processes could not be ended"),
            true,
        );
    }
    if current {
        settle(shared, id, epoch, State::Stopped);
    }
}

async fn destroy(shared: &Context, id: &str, epoch: u64) {
    halt_for_good(shared, id, epoch).await;
    remove(shared, id).await;
}

async fn halt_for_good(shared: &Context, id: &str, epoch: u64) {
    let guest = shared
        .store
        .change(id, |entry| entry.guest.take())
        .flatten();
    let ended = async {
        if let Some(guest) = guest {
            guest.end(0).await;
        }
    };
    tokio::join!(ended, pass(shared, id, epoch, State::Destroying));
}

/// Removing a big folder takes a while, so it is done beside the runtime.
async fn remove(shared: &Context, id: &str) {
    let (shared, id) = (shared.clone(), id.to_owned());
    let removed = tokio::task::spawn_blocking(move || shared.store.remove(&id)).await;
    drop(removed);
}
