//! One transition of a sandbox: its states, and the processes that start or end on the way.

use std::sync::Arc;
use std::time::Duration;

use crate::disk::{copy_folder, remove_folder};
use crate::engine::SharedEngine;
use crate::faults::Fault;
use crate::init_process::InitProcess;
use crate::launch::{free_port, run_entrypoint, start_init};
use crate::random::{token, uuid};
use crate::record::Record;
use crate::snapshot::StoredSnapshot;
use crate::state::DaytonaState;
use crate::store::SandboxEntry;

/// A transition of a sandbox. Gives up when another one has begun, which the epoch tells.
#[derive(Clone)]
pub(crate) struct Transition {
    engine: SharedEngine,
    /// Sandbox id.
    id: String,
    epoch: u64,
}

impl Transition {
    pub(crate) fn new(engine: &SharedEngine, id: &str, epoch: u64) -> Self {
        Transition { engine: engine.clone(), id: id.to_owned(), epoch }
    }

    /// Goes from an operation's first state to its last.
    pub(crate) async fn carry_through(&self, state: DaytonaState, grace_ms: u64) {
        match state {
            DaytonaState::Stopping => self.stop(grace_ms).await,
            DaytonaState::Destroying => self.destroy().await,
            DaytonaState::Archiving => {
                if self.pass_through(DaytonaState::Archiving).await {
                    self.set_state(DaytonaState::Archived);
                }
            }
            _ => {
                if self.pass_through(state).await {
                    self.boot().await;
                }
            }
        }
    }

    /// Goes through the states of a creation, after those of a build if there is one.
    pub(crate) async fn create(&self, build: bool) {
        let all = [
            DaytonaState::PendingBuild,
            DaytonaState::BuildingSnapshot,
            DaytonaState::PullingSnapshot,
            DaytonaState::Creating,
        ];
        for state in &all[if build { 0 } else { 3 }..] {
            if !self.pass_through(*state).await {
                return;
            }
            let failed = (*state == DaytonaState::BuildingSnapshot).then(|| {
                self.take_fault(|fault| match fault {
                    Fault::FailBuild { recoverable } => Some(*recoverable),
                    _ => None,
                })
            });
            if let Some(Some(recoverable)) = failed {
                let reason = "the build failed";
                return self.fail(DaytonaState::BuildFailed, reason, recoverable);
            }
        }
        match self.fill().await {
            Ok(()) => self.boot().await,
            Err(reason) => self.fail(DaytonaState::Error, &reason, false),
        }
    }

    /// Copies a snapshot's files into a new sandbox.
    async fn fill(&self) -> Result<(), String> {
        let record = self.engine.store.record(&self.id);
        let Some((record, source)) = record.and_then(|record| {
            let source = record.to_fill.clone()?;
            Some((record, source))
        }) else {
            return Ok(());
        };
        let from = self.engine.store.copy_dir(&source);
        let to = self.engine.store.sandbox_dir(&record.folder).join("home");
        let copied = tokio::task::spawn_blocking(move || copy_folder(&from, &to)).await;
        match copied {
            Ok(Ok(_)) => {
                self.change(|entry| entry.record.to_fill = None);
                Ok(())
            }
            Ok(Err(error)) => Err(format!("the snapshot could not be copied: {error}")),
            Err(error) => Err(format!("the snapshot could not be copied: {error}")),
        }
    }

    /// Copies the sandbox's folder under this name while its processes are frozen, writes the snapshot's record, and
    /// then returns to the previous state. Errors are not reported.
    pub(crate) async fn snapshot(&self, name: String) {
        let Some(record) = self.engine.store.record(&self.id) else {
            return;
        };
        let copied = self.copy(&record).await;
        if !self.pass_through(DaytonaState::Snapshotting).await {
            return;
        }
        let kept = copied.and_then(|(id, bytes)| {
            let kept = self.keep(&record, &id, name, bytes);
            if kept.is_err() {
                // The copy is not recorded; leftovers are removed at the next start.
                let _ = remove_folder(&self.engine.store.copy_dir(&id));
            }
            kept
        });
        if let Err(reason) = kept {
            tracing::error!(sandbox.id = self.id, reason, "a snapshot failed");
        }
        let mut process = None;
        self.change(|entry| {
            entry.record.state = entry.record.back_to.take().unwrap_or(DaytonaState::Stopped);
            process.clone_from(&entry.process);
        });
        if let Some(process) = process {
            self.watch_for_end(&process);
        }
    }

    /// Copies the folder; returns the new snapshot's id and its bytes.
    async fn copy(&self, record: &Record) -> Result<(String, u64), String> {
        let lost = self.take_fault(|fault| matches!(fault, Fault::LoseSnapshot).then_some(()));
        if lost.is_some() {
            return Err("a fault was armed".to_owned());
        }
        let id = uuid();
        let from = self.engine.store.sandbox_dir(&record.folder).join("home");
        let to = self.engine.store.copy_dir(&id);
        let held = self.engine.machine.processes(&self.id).hold().await;
        let copied = tokio::task::spawn_blocking(move || copy_folder(&from, &to)).await;
        drop(held);
        match copied {
            Ok(Ok(bytes)) => Ok((id, bytes)),
            Ok(Err(error)) => Err(error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Records a copied snapshot. Whether the name is taken is checked only now.
    fn keep(&self, record: &Record, id: &str, name: String, bytes: u64) -> Result<(), String> {
        let now = self.engine.clock.now_ms();
        let store = &self.engine.store;
        let snapshots = &mut store.lock().snapshots;
        if snapshots.values().any(|other| other.name == name) {
            return Err(format!("Snapshot with name \"{name}\" already exists"));
        }
        let snapshot = StoredSnapshot::of(record, id.to_owned(), name, bytes, now);
        snapshots.insert(id.to_owned(), snapshot);
        store.save_snapshots(snapshots).map_err(|error| error.message)
    }

    fn take_fault<T>(&self, pick: impl Fn(&Fault) -> Option<T>) -> Option<T> {
        self.engine.faults.take(&self.engine.names(&self.id), pick)
    }

    /// Stays in `state` for one transition time. False: another transition has begun.
    async fn pass_through(&self, state: DaytonaState) -> bool {
        if !self.set_state(state) {
            return false;
        }
        let held = self.take_fault(|fault| match fault {
            Fault::HoldState { state: at, ms } if *at == state => Some(*ms),
            _ => None,
        });
        let duration = Duration::from_millis(held.unwrap_or(self.engine.run.transition_ms));
        tokio::select! {
            () = tokio::time::sleep(duration) => {}
            () = self.engine.stopping.cancelled() => return false,
        }
        self.is_current()
    }

    fn is_current(&self) -> bool {
        let inner = self.engine.store.lock();
        let entry = inner.sandboxes.get(&self.id);
        entry.is_some_and(|entry| entry.epoch == self.epoch)
    }

    /// Changes the sandbox. False: another transition has begun, and nothing was changed.
    fn change(&self, change: impl FnOnce(&mut SandboxEntry)) -> bool {
        let changed = self.engine.store.change(&self.id, |entry| {
            let is_current = entry.epoch == self.epoch;
            if is_current {
                change(entry);
            }
            is_current
        });
        changed == Some(true)
    }

    /// Sets the state.
    fn set_state(&self, state: DaytonaState) -> bool {
        let now = self.engine.clock.now_ms();
        self.change(|entry| {
            if entry.record.state != state {
                entry.record.state = state;
                entry.record.updated_at = now;
            }
        })
    }

    fn fail(&self, state: DaytonaState, reason: &str, recoverable: bool) {
        if self.set_state(state) {
            self.engine.store.change(&self.id, |entry| {
                entry.record.error_reason = Some(reason.to_owned());
                entry.record.recoverable = recoverable;
            });
            tracing::warn!(sandbox.id = self.id, reason, "a sandbox failed");
        }
    }

    /// Starts the first process; the sandbox is started once it has sent its greeting.
    async fn boot(&self) {
        let broken = self.take_fault(|fault| match fault {
            Fault::FailStart { recoverable } => Some(*recoverable),
            _ => None,
        });
        if let Some(recoverable) = broken {
            return self.fail(DaytonaState::Error, "the start failed", recoverable);
        }
        let Some(record) = self.engine.store.record(&self.id) else {
            return;
        };
        let Some(port) = free_port(&self.engine, &record) else {
            let reason = "no free port was found on this machine";
            return self.fail(DaytonaState::Error, reason, true);
        };
        let record = Record { port, ..record };
        let process = match start_init(&self.engine, &record).await {
            Ok(process) => Arc::new(process),
            Err(reason) => return self.fail(DaytonaState::Error, &reason, true),
        };
        if !record.entrypoint.is_empty() {
            run_entrypoint(&process, &record).await;
        }
        let stale_ms = self.take_fault(|fault| match fault {
            Fault::StalePreview { ms } => Some(*ms),
            _ => None,
        });
        let now = self.engine.clock.now_ms();
        if !self.change(|entry| note_start(entry, port, process.clone(), stale_ms, now)) {
            process.end(0).await;
            return;
        }
        self.watch_for_end(&process);
    }

    /// A sandbox whose first process exits by itself is stopped, like a container.
    fn watch_for_end(&self, process: &InitProcess) {
        let mut ended = process.ended();
        let transition = self.clone();
        tokio::spawn(async move {
            // An error means that the handle is gone.
            let _ = ended.wait_for(|ended| *ended).await;
            if transition.change(|entry| entry.process = None) {
                transition.set_state(DaytonaState::Stopped);
            }
        });
    }

    async fn stop(&self, grace_ms: u64) {
        let ended = async {
            match self.take_process() {
                Some(process) => process.end(grace_ms).await,
                None => self.engine.machine.processes(&self.id).end(grace_ms).await,
            }
        };
        let (left, current) = tokio::join!(ended, self.pass_through(DaytonaState::Stopping));
        if left > 0 {
            let reason = format!("{left} processes could not be ended");
            return self.fail(DaytonaState::Error, &reason, true);
        }
        if current {
            self.set_state(DaytonaState::Stopped);
        }
    }

    async fn destroy(&self) {
        let ended = async {
            if let Some(process) = self.take_process() {
                process.end(0).await;
            }
        };
        tokio::join!(ended, self.pass_through(DaytonaState::Destroying));
        remove(&self.engine, &self.id).await;
    }

    fn take_process(&self) -> Option<Arc<InitProcess>> {
        let taken = self.engine.store.change(&self.id, |entry| entry.process.take());
        taken.flatten()
    }
}

/// Updates the record after a start, above all the preview token; the fault delays when the proxy learns of it.
fn note_start(
    entry: &mut SandboxEntry,
    port: u16,
    process: Arc<InitProcess>,
    stale_ms: Option<u64>,
    now: i64,
) {
    entry.stale_token = stale_ms.map(|ms| {
        let until = now.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX));
        (entry.record.token.clone(), until)
    });
    entry.record.token = token(32);
    entry.record.port = port;
    entry.record.state = DaytonaState::Started;
    entry.record.error_reason = None;
    entry.record.recoverable = false;
    entry.record.updated_at = now;
    entry.record.last_activity = now;
    entry.process = Some(process);
}

/// Removing a big folder takes a while, so it runs outside of the runtime.
pub(crate) async fn remove(engine: &SharedEngine, id: &str) {
    let (engine, id) = (engine.clone(), id.to_owned());
    let removed = tokio::task::spawn_blocking(move || engine.store.remove(&id)).await;
    drop(removed);
}
