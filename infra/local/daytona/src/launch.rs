//! A sandbox's start: its port, environment and entrypoint.

use std::sync::Arc;

use crate::engine::{Engine, SharedEngine};
use crate::gateway::{HeaderRule, Substitution, Treatment};
use crate::init::protocol::Op;
use crate::init_process::InitProcess;
use crate::machine::{self, SandboxStart};
use crate::record::Record;

/// Starts the first process of a sandbox with its environment.
///
/// # Errors
/// The reason, in words.
pub(crate) async fn start_init(
    engine: &SharedEngine,
    record: &Record,
) -> Result<InitProcess, String> {
    // Weak, since the engine holds the network through its sandbox.
    let (weak, id) = (Arc::downgrade(engine), record.id.clone());
    let treatments = Arc::new(move |host: &str| {
        let Some(engine) = weak.upgrade() else { return Treatment::Refuse };
        if !engine.store.reaches(&id, host) {
            return Treatment::Refuse;
        }
        let held = engine.store.substitutions(&id, host);
        let rule = |(placeholder, value)| {
            Box::new(Substitution { placeholder, value }) as Box<dyn HeaderRule>
        };
        Treatment::of(held.into_iter().map(rule).collect())
    });
    let start = SandboxStart {
        id: &record.id,
        folder: &engine.store.sandbox_dir(&record.folder),
        port: record.port,
        user: &record.user,
        variables: vec![("DAYTONA_SANDBOX_ID".to_owned(), record.id.clone())],
        trusts: !record.secrets.is_empty(),
        treatments,
    };
    engine.machine.start(start).await
}

/// Like the daemon at each start: in the session `entrypoint`, whose logs show the result.
pub(crate) async fn run_entrypoint(process: &InitProcess, record: &Record) {
    let session = "entrypoint".to_owned();
    let quoted = record.entrypoint.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''")));
    let command = quoted.collect::<Vec<_>>().join(" ");
    let env = record.env.clone();
    // A sandbox that ended in the meantime is noticed by its watcher.
    if process.call(Op::SessionCreate { session: session.clone(), env }).await.is_some() {
        let _ = process.call(Op::SessionRun { session, command, wait: false }).await;
    }
}

/// The sandbox's previous port if it is free, else another.
pub(crate) fn free_port(engine: &Engine, record: &Record) -> Option<u16> {
    let others: Vec<u16> = {
        let inner = engine.store.lock();
        inner
            .sandboxes
            .values()
            .map(|entry| &entry.record)
            .filter(|other| other.id != record.id)
            .map(|other| other.port)
            .collect()
    };
    machine::free_port(record.port, &others)
}
