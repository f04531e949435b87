//! Records whose sandbox the provider does not list: their threads are asked to look.
//!
//! The sweeper itself decides nothing about them: between listing and reading a sandbox may have come or gone, so all
//! that follows is a look, in the thread's own group.

use std::collections::BTreeSet;

use bobbin_adapters::queue::Queues;
use bobbin_adapters::store::{DUE_SHARDS, Store};
use bobbin_core::ids::{Ms, ThreadKey};
use bobbin_core::limits::Limits;
use bobbin_core::message::{Body, Message, Work};
use bobbin_core::wire::daytona::Sandbox;
use serde_json::{Value, json};

/// The sweeper's tick: once in every `look_ms` there is one that looks.
const TICK_MS: u64 = 60_000;
/// Looks asked for in one tick; the next one that looks asks for the rest.
const LOOKS_MAX: usize = 200;

/// Asks the threads whose records have a sandbox that is not `listed` to look, when it is time for that.
///
/// # Errors
/// The last thing that went wrong, after everything else was tried.
pub async fn look(
    store: &Store,
    queues: &Queues,
    limits: &Limits,
    listed: &[Sandbox],
    now_ms: Ms,
) -> Result<Value, String> {
    if now_ms % limits.look_ms.max(TICK_MS) >= TICK_MS {
        return Ok(json!({"looked": false}));
    }
    let there: BTreeSet<ThreadKey> = listed
        .iter()
        .filter_map(|sandbox| sandbox.owner().map(|(thread, _)| thread))
        .collect();
    let (mut asked, mut trouble) = (0_usize, None);
    'shards: for shard in 0..DUE_SHARDS {
        let armed = match store.armed(shard).await {
            Ok(armed) => armed,
            Err(error) => {
                trouble = Some(error.to_string());
                continue;
            }
        };
        for thread in armed.into_iter().filter(|thread| !there.contains(thread)) {
            if asked == LOOKS_MAX {
                break 'shards;
            }
            asked += 1;
            let id = format!("look-{}-{}", thread.short_hash(), now_ms / TICK_MS);
            let message = Message {
                id,
                thread,
                accepted_at_ms: now_ms,
                work: Work::Look,
            };
            if let Err(error) = queues.send(&Body::Message(message)).await {
                trouble = Some(error.to_string());
            }
        }
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
