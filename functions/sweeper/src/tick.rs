//! One tick: ask each shard of the due index, and send each thread found a sweep.

use bobbin_adapters::metrics::{Metrics, Unit};
use bobbin_adapters::queue::Queues;
use bobbin_adapters::store::{DUE_SHARDS, Store};
use bobbin_adapters::world::now_ms;
use bobbin_core::ids::{Ms, ThreadKey};
use bobbin_core::message::{Body, Message, Work};
use bobbin_core::signals::DUE;
use serde_json::{Value, json};

/// One tick. The numbers are for whoever invokes it by hand.
///
/// # Errors
/// The last thing that went wrong, after everything else was tried: what was missed is found at the next tick.
pub async fn tick(store: &Store, queues: &Queues, metrics: &Metrics) -> Result<Value, String> {
    let now_ms = now_ms();
    let (mut due, mut sent, mut trouble) = (0_u32, 0_u32, None);
    for shard in 0..DUE_SHARDS {
        let found = match store.due(shard, now_ms).await {
            Ok(found) => found,
            Err(error) => {
                tracing::error!(event = "sweep.failed", shard, %error, "a shard of the due index could not be read");
                trouble = Some(error.to_string());
                continue;
            }
        };
        for (thread, due_at_ms) in found {
            due += 1;
            let body = sweep(thread, due_at_ms, now_ms);
            let (correlation_id, group) = (body.correlation(), body.group());
            match queues.send(&body).await {
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
    }
    metrics.put(&[(DUE, Unit::Count, due.into())], now_ms);
    tracing::info!(event = "sweep.done", due, sent, "a sweep is done");
    match trouble {
        None => Ok(json!({"due": due, "sent": sent})),
        Some(trouble) => Err(trouble),
    }
}

/// The due time is part of the id: while a thread stays due for the same reason, the queue holds one sweep of it
/// (within its five minutes), and a thread that is due anew gets a new one.
fn sweep(thread: ThreadKey, due_at_ms: Ms, now_ms: Ms) -> Body {
    let id = format!("sweep-{}-{due_at_ms}", thread.short_hash());
    Body::Message(Message {
        id,
        thread,
        accepted_at_ms: now_ms,
        work: Work::Sweep,
    })
}
