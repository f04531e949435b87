//! One tick: ask the shards of the due index, and send each thread found a sweep.
//!
//! What it takes grows with what is due: a shard answers with what is due alone. It is bounded all the same
//! ([`DUE_PAGE`] threads a shard, [`TICK_MS_MAX`] for sending): what it leaves is still due at the next tick.

use std::time::{Duration, Instant};

use bobbin_cloud::clock::now_ms;
use bobbin_cloud::queue::{BATCH_MAX, Queues};
#[cfg(doc)]
use bobbin_cloud::store::DUE_PAGE;
use bobbin_cloud::store::{DUE_SHARDS, Store};
use bobbin_core::ids::{Ms, ThreadKey};
use bobbin_core::message::{Message, Work};
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
        .map(|batch| send(queues, batch, now_ms))
        .buffer_unordered(BATCHES_AT_ONCE);
    while let Some((taken, failed)) = batches.next().await {
        sent += taken;
        trouble = failed.or(trouble);
    }
    tracing::info!(
        event = "sweep.done",
        due = due.len(),
        sent,
        "a sweep is done"
    );
    match trouble {
        None => Ok(json!({"due": due.len(), "sent": sent})),
        Some(trouble) => Err(trouble),
    }
}

/// Sends a batch of sweeps; how many were taken, and what the last was not taken for.
async fn send(queues: &Queues, due: &[(ThreadKey, Ms)], now_ms: Ms) -> (usize, Option<String>) {
    let sweeps = due
        .iter()
        .map(|(thread, due_at_ms)| sweep(thread, *due_at_ms, now_ms));
    let answers = queues.send_messages(sweeps.collect()).await;
    let (mut sent, mut trouble) = (0, None);
    for ((thread, due_at_ms), answer) in due.iter().zip(answers) {
        let (correlation_id, group) = (id(thread, *due_at_ms), thread.to_string());
        match answer {
            Ok(()) => {
                tracing::info!(
                    event = "sweep.sent",
                    correlation_id,
                    group,
                    due_at_ms,
                    "a thread is due"
                );
                sent += 1;
            }
            Err(error) => {
                tracing::error!(event = "sweep.failed", correlation_id, group, %error, "a sweep could not be sent");
                trouble = Some(error.to_string());
            }
        }
    }
    (sent, trouble)
}

fn sweep(thread: &ThreadKey, due_at_ms: Ms, now_ms: Ms) -> Message {
    Message {
        id: id(thread, due_at_ms).into(),
        thread: thread.clone(),
        accepted_at_ms: now_ms,
        work: Work::Sweep,
    }
}

/// The due time is part of the id: while a thread stays due for the same reason, the queue holds one sweep of it
/// (within its five minutes), and a thread that is due anew gets a new one.
fn id(thread: &ThreadKey, due_at_ms: Ms) -> String {
    format!("sweep-{}-{due_at_ms}", thread.short_hash())
}
