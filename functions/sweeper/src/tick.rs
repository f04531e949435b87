//! One tick: queries the shards of the due index and sends a sweep to each thread found.
//!
//! The cost grows with the number of due threads: a shard returns due threads only. It is still bounded ([`DUE_PAGE`]
//! threads per shard, [`TICK_MS_MAX`] for sending): the rest is still due at the next tick.
//!
//! A record is marked before its sweep is sent, and the mark stays until the sweep is done: behind a blocked head, or
//! while no worker runs, a group has one sweep and no second. A sweep whose record cannot be marked is not sent.

use std::fmt::Display;
use std::time::{Duration, Instant};

use bobbin_cloud::clock::now_ms;
use bobbin_cloud::queue::{BATCH_MAX, Queues};
#[cfg(doc)]
use bobbin_cloud::store::DUE_PAGE;
use bobbin_cloud::store::{DUE_SHARDS, Store};
use bobbin_core::base::ids::{Ms, ThreadKey};
use bobbin_core::base::limits::{SWEEP_OUT_MS, SWEEP_UNSENT_MS};
use bobbin_core::records::message::Message;
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};

/// Shards queried at once: each needs a connection, and more handshakes would cost more than the wait that they save.
pub const SHARDS_AT_ONCE: usize = 4;
/// Batches sent at once, over the same connections.
pub const BATCHES_AT_ONCE: usize = 4;
/// No further batch is sent after this: the function has 60 s (template), and must end its tick with a message.
const TICK_MS_MAX: u64 = 40_000;

/// One tick. The counts are for an operator who invokes it by hand.
///
/// # Errors
/// The last error, after everything else was tried: the next tick finds what was missed.
pub async fn tick(store: &Store, queues: &Queues) -> Result<Value, String> {
    let (began, now_ms) = (Instant::now(), now_ms());
    let mut trouble = None;
    let mut due: Vec<(ThreadKey, Ms)> = Vec::new();
    let mut shards = stream::iter(0..DUE_SHARDS)
        .map(|shard| async move { (shard, store.due(shard, now_ms).await) })
        .buffer_unordered(SHARDS_AT_ONCE);
    while let Some((shard, found)) = shards.next().await {
        match found {
            Ok(found) => due.extend(found),
            Err(error) => {
                tracing::error!(event = "sweep.failed", shard, %error, "a shard of the due index could not be read");
                trouble = Some(error.to_string());
            }
        }
    }
    // Longest waiting first, in case there is not enough time for all.
    due.sort_by_key(|(_, due_at_ms)| *due_at_ms);
    let mut sent = 0_usize;
    // Batches are created as they are sent, so this is checked before each.
    let in_time = |_: &&[(ThreadKey, Ms)]| began.elapsed() < Duration::from_millis(TICK_MS_MAX);
    let mut batches = stream::iter(due.chunks(BATCH_MAX).take_while(in_time))
        .map(|batch| send((store, queues), batch, now_ms))
        .buffer_unordered(BATCHES_AT_ONCE);
    while let Some((taken, failed)) = batches.next().await {
        sent += taken;
        trouble = failed.or(trouble);
    }
    tracing::info!(event = "sweep.done", due = due.len(), sent, "a sweep is done");
    match trouble {
        None => Ok(json!({"due": due.len(), "sent": sent})),
        Some(trouble) => Err(trouble),
    }
}

/// Marks and sends a batch of sweeps; returns how many were accepted, and the last error.
async fn send(
    (store, queues): (&Store, &Queues),
    due: &[(ThreadKey, Ms)],
    now_ms: Ms,
) -> (usize, Option<String>) {
    let mut trouble = None;
    let mut failed = |sweep: &Message, error: &dyn Display| {
        let group = sweep.thread.to_string();
        tracing::error!(event = "sweep.failed", correlation_id = %sweep.id, group, %error, "a sweep could not be sent");
        trouble = Some(error.to_string());
    };
    let mut marked = Vec::new();
    for (thread, due_at_ms) in due {
        let sweep = Message::sweep(thread.clone(), now_ms);
        let again_at_ms = now_ms + SWEEP_UNSENT_MS;
        let meant = store.means_sweep((thread, *due_at_ms), &sweep.id, again_at_ms);
        match meant.await {
            Ok(Some(id)) => marked.push((Message { id, ..sweep }, *due_at_ms)),
            // The index lags behind its records.
            Ok(None) => {}
            Err(error) => failed(&sweep, &error),
        }
    }
    if marked.is_empty() {
        return (0, trouble);
    }
    let sweeps = marked.iter().map(|(sweep, _)| sweep.clone()).collect();
    let answers = queues.send_messages(sweeps).await;
    let mut sent = 0;
    for ((sweep, due_at_ms), answer) in marked.iter().zip(answers) {
        if let Err(error) = answer {
            failed(sweep, &error);
            continue;
        }
        tracing::info!(
            event = "sweep.sent",
            correlation_id = %sweep.id,
            group = %sweep.thread,
            due_at_ms,
            "a thread is due"
        );
        sent += 1;
        let until_ms = now_ms + SWEEP_OUT_MS;
        let noted = store.sweep_is_out(&sweep.thread, &sweep.id, until_ms);
        if let Err(error) = noted.await {
            failed(sweep, &error);
        }
    }
    (sent, trouble)
}
