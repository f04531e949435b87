//! Records whose sandbox the provider does not list: their threads are asked to look.
//!
//! The sweeper itself decides nothing about them: between listing and reading a sandbox may have come or gone, so all
//! that follows is a look, in the thread's own group.

use std::collections::BTreeSet;

use bobbin_cloud::queue::{BATCH_MAX, Queues};
use bobbin_cloud::store::{DUE_SHARDS, Store};
use bobbin_core::ids::{Ms, ThreadKey};
use bobbin_core::limits::Limits;
use bobbin_core::message::{Message, Work};
use bobbin_sandbox::Sandbox;
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};

use crate::tick::{BATCHES_AT_ONCE, SHARDS_AT_ONCE};

/// The sweeper's tick: once in every `look_ms` there is one that looks.
const TICK_MS: u64 = 60_000;
/// Looks asked for in one tick; the next one that looks asks for the rest.
const LOOKS_MAX: usize = 200;

/// Asks the threads whose records have a sandbox that is not `listed` (of `listed_max` at most) to look, when it is time for that.
///
/// # Errors
/// The last thing that went wrong, after everything else was tried.
pub async fn look(
    store: &Store,
    queues: &Queues,
    limits: &Limits,
    (listed, listed_max): (&[Sandbox], usize),
    now_ms: Ms,
) -> Result<Value, String> {
    if now_ms % limits.look_ms.max(TICK_MS) >= TICK_MS {
        return Ok(json!({"looked": false}));
    }
    // Of a list that is not whole it cannot be told what is missing from it.
    if listed.len() >= listed_max {
        tracing::warn!(
            event = "sweep.looked",
            listed = listed.len(),
            "more sandboxes than can be listed: those that have vanished are left to their due times"
        );
        return Ok(json!({"looked": false}));
    }
    let there: BTreeSet<ThreadKey> = listed
        .iter()
        .filter_map(|sandbox| sandbox.owner().map(|(key, _)| key.thread().clone()))
        .collect();
    let (mut missing, mut trouble) = (Vec::new(), None);
    let mut shards = stream::iter(0..DUE_SHARDS)
        .map(|shard| store.armed(shard))
        .buffer_unordered(SHARDS_AT_ONCE);
    while let Some(armed) = shards.next().await {
        match armed {
            Ok(armed) => missing.extend(armed.into_iter().filter(|thread| !there.contains(thread))),
            Err(error) => trouble = Some(error.to_string()),
        }
        if missing.len() >= LOOKS_MAX {
            break;
        }
    }
    missing.truncate(LOOKS_MAX);
    let asked = missing.len();
    let looks: Vec<Message> = missing
        .into_iter()
        .map(|thread| Message {
            id: format!("look-{}-{}", thread.short_hash(), now_ms / TICK_MS),
            thread,
            accepted_at_ms: now_ms,
            work: Work::Look,
        })
        .collect();
    let mut sending = stream::iter(looks.chunks(BATCH_MAX))
        .map(|batch| queues.send_messages(batch.to_vec()))
        .buffer_unordered(BATCHES_AT_ONCE);
    while let Some(answers) = sending.next().await {
        let failed = answers.into_iter().filter_map(Result::err).next_back();
        trouble = failed.map(|e| e.to_string()).or(trouble);
    }
    tracing::info!(
        event = "sweep.looked",
        asked,
        "records without a listed sandbox were asked to look"
    );
    match trouble {
        None => Ok(json!({"looked": true, "asked": asked})),
        Some(trouble) => Err(trouble),
    }
}
