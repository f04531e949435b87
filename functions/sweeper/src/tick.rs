//! One tick: ask the shards of the due index, and send each thread found a sweep.
//!
//! What it takes grows with what is due: a shard answers with what is due alone. It is bounded all the same
//! ([`DUE_PAGE`] threads a shard, [`TICK_MS_MAX`] for sending): what it leaves is still due at the next tick.
//!
//! Before a sweep is sent its record is marked, and the mark stays until the sweep is done: behind a head that does not move,
//! or while no worker works, a group has one sweep and no second. What cannot be marked is not sent.

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

/// Shards that are asked at once: each needs a connection, whose handshake costs more than the wait that it saves.
pub const SHARDS_AT_ONCE: usize = 4;
/// Batches that are sent at once, over the same connections.
pub const BATCHES_AT_ONCE: usize = 4;
/// After this no further batch is sent: the function has 60 s (template), and ends its tick in words.
const TICK_MS_MAX: u64 = 40_000;

/// One tick. The numbers are for whoever invokes it by hand.
///
/// # Errors
/// The last thing that went wrong, after everything else was tried: what was missed is found at the next tick.
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
    // What has waited longest is first, should there be no time for all.
    due.sort_by_key(|(_, due_at_ms)| *due_at_ms);
    let mut sent = 0_usize;
    // Batches are made as they are sent, so that this is asked before each.
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

/// Marks and sends a batch of sweeps; how many were taken, and what went wrong last.
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
