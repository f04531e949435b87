//! SQS: standard and FIFO queues as AWS documents them, on the store's file.
//!
//! Promised: a group of a FIFO queue is locked while one of its messages is in flight; its order survives failures;
//! expired receipt handles are refused there; duplicates within five minutes are answered and dropped; a message that
//! was received `maxReceiveCount` times moves to the dead-letter queue at the next receive, where on FIFO its own id is
//! its deduplication id; a waiting consumer wakes at once; an action without an output answers an empty body. All times come from the injected clock, computed when somebody looks.
//!
//! Deliberately absent: queue policies and permissions, encryption, throttles, the cap on messages in flight,
//! `ReceiveRequestAttemptId` (accepted, without effect), and the older query protocol.

mod digest;
mod error;
mod moves;
mod protocol;
mod queue;
mod receipt;
mod receive;
mod send;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Transaction, params};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::account::Account;
use crate::clock::Clock;
use crate::limits;
use crate::store::Store;

pub(crate) use error::SqsError;
pub(crate) use protocol::asks_for_query_codes;
pub(crate) use queue::name_of_arn;
pub(crate) use receive::Received;
pub(crate) use send::Entry;

use queue::Queue;
use receive::Wish;

/// The queues of this stack.
pub(crate) struct Sqs {
    store: Arc<Store>,
    clock: Clock,
    account: Account,
    /// One per queue: changes when something may have become receivable.
    changes: Mutex<HashMap<String, watch::Sender<()>>>,
    /// Queues whose mappings take nothing.
    disabled: Mutex<BTreeSet<String>>,
    stopping: CancellationToken,
}

/// One transaction: the time it happens at and the queues whose consumers must look afterwards.
pub(crate) struct Step<'a> {
    tx: &'a Transaction<'a>,
    now_ms: i64,
    account: &'a str,
    region: &'a str,
    woken: BTreeSet<String>,
}

impl Step<'_> {
    fn arn(&self, queue: &str) -> String {
        queue_arn(self.region, self.account, queue)
    }
}

/// The ARN of a queue.
pub(crate) fn queue_arn(region: &str, account: &str, queue: &str) -> String {
    format!("arn:aws:sqs:{region}:{account}:{queue}")
}

impl Sqs {
    pub(crate) fn new(
        store: Arc<Store>,
        clock: Clock,
        account: Account,
        stopping: CancellationToken,
    ) -> Self {
        Self {
            store,
            clock,
            account,
            changes: Mutex::default(),
            disabled: Mutex::default(),
            stopping,
        }
    }

    /// Creates the queue of a template, or gives the present one these attributes.
    pub(crate) fn deploy(
        &self,
        name: &str,
        attributes: &BTreeMap<String, String>,
        tags: &BTreeMap<String, String>,
    ) -> Result<(), SqsError> {
        self.step(|step| queue::deploy(step, name, attributes, tags))
    }

    /// Sends one message.
    pub(crate) fn send(&self, queue: &str, entry: Entry) -> Result<(), SqsError> {
        self.step(|step| {
            let queue = queue::find(step, queue)?;
            send::send(step, &queue, entry)?;
            Ok(())
        })
    }

    /// Messages for one invocation: of one group on a FIFO queue, marked as being in a function.
    pub(crate) fn take_batch(
        &self,
        queue: &str,
        count_max: usize,
    ) -> Result<Vec<Received>, SqsError> {
        let disabled = self.disabled.lock();
        if disabled
            .unwrap_or_else(PoisonError::into_inner)
            .contains(queue)
        {
            return Ok(Vec::new());
        }
        self.step(|step| {
            let queue = queue::find(step, queue)?;
            let wish = Wish {
                count_max,
                visibility_seconds: queue.visibility_seconds(),
                for_function: true,
            };
            receive::receive(step, &queue, wish)
        })
    }

    /// Switches the mappings of a queue off or on: what is in work goes on to its end.
    pub(crate) fn set_mapping(&self, queue: &str, enabled: bool) -> Result<(), SqsError> {
        self.step(|step| queue::find(step, queue).map(drop))?;
        let mut disabled = self.disabled.lock().unwrap_or_else(PoisonError::into_inner);
        if enabled {
            disabled.remove(queue)
        } else {
            disabled.insert(queue.to_owned())
        };
        drop(disabled);
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(change) = changes.get(queue) {
            change.send_replace(());
        }
        Ok(())
    }

    /// Ends a batch: `done` is deleted, `kept` stays as its visibility says. Returns refusals, one line each.
    pub(crate) fn finish_batch(
        &self,
        queue: &str,
        done: &[&Received],
        kept: &[&Received],
    ) -> Result<Vec<String>, SqsError> {
        self.step(|step| {
            let queue = queue::find(step, queue)?;
            let mut refused = Vec::new();
            for message in done {
                receipt::leave_function(step, &message.receipt)?;
                if let Err(error) = receipt::delete(step, &queue, &message.receipt) {
                    refused.push(format!("message {} was not deleted: {error}", message.id));
                }
            }
            for message in kept {
                receipt::leave_function(step, &message.receipt)?;
            }
            Ok(refused)
        })
    }

    /// Gives back what functions of an earlier run held when the whole stack ended: they are known to be gone.
    pub(crate) fn release_abandoned(&self) -> Result<usize, SqsError> {
        self.step(|step| {
            Ok(step.tx.execute(
                "UPDATE messages SET visible_ms = MIN(visible_ms, ?1), in_function = 0 WHERE in_function = 1",
                params![step.now_ms],
            )?)
        })
    }

    /// Returns when the queue should be looked at again: something changed, a message became visible, or a while passed.
    pub(crate) async fn changed(&self, queue: &str, seen: &mut watch::Receiver<()>) {
        let next_ms = self.next_look_ms(queue);
        tokio::select! {
            _ = seen.changed() => {}
            () = self.clock.sleep_until_ms(next_ms) => {}
            () = self.stopping.cancelled() => {}
        }
    }

    /// Subscribes to changes of a queue; take it before looking, so that none is missed.
    pub(crate) fn watch(&self, queue: &str) -> watch::Receiver<()> {
        self.changes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(queue.to_owned())
            .or_insert_with(|| watch::Sender::new(()))
            .subscribe()
    }

    /// What is in a queue, oldest first, without receiving it.
    pub(crate) fn peek(&self, name: &str) -> Result<Value, SqsError> {
        self.step(|step| {
            queue::find(step, name)?;
            let mut statement = step.tx.prepare_cached(
                "SELECT id, body, group_id, deduplication_id, sent_ms, visible_ms, receives, in_function
                 FROM messages WHERE queue = ?1 ORDER BY sequence LIMIT ?2",
            )?;
            let now_ms = step.now_ms;
            let count_max = i64::try_from(limits::PEEKED_MESSAGES_MAX).unwrap_or(i64::MAX);
            let rows = statement.query_map(params![name, count_max], |row| {
                let visible_ms: i64 = row.get(5)?;
                let receives: i64 = row.get(6)?;
                let state = match (visible_ms <= now_ms, receives) {
                    (true, _) => "visible",
                    (false, 0) => "delayed",
                    (false, _) => "in flight",
                };
                Ok(json!({
                    "message_id": row.get::<_, String>(0)?,
                    "body": row.get::<_, String>(1)?,
                    "group_id": row.get::<_, Option<String>>(2)?,
                    "deduplication_id": row.get::<_, Option<String>>(3)?,
                    "sent_ms": row.get::<_, i64>(4)?,
                    "visible_ms": visible_ms,
                    "receives": receives,
                    "in_function": row.get::<_, bool>(7)?,
                    "state": state,
                }))
            })?;
            Ok(Value::Array(rows.collect::<Result<_, _>>()?))
        })
    }

    fn next_look_ms(&self, queue: &str) -> i64 {
        let now_ms = self.clock.now_ms();
        let looked = self.step(|step| {
            let visible_ms = receive::next_visible_ms(step, queue)?;
            Ok((visible_ms, moves::is_any_running(step)?))
        });
        match looked {
            Ok((visible_ms, false)) => visible_ms
                .unwrap_or(i64::MAX)
                .min(now_ms + limits::QUEUE_LOOK_INTERVAL_MS),
            Ok((_, true)) | Err(_) => now_ms + 1000,
        }
    }

    /// Runs one transaction and wakes the consumers of the queues that it touched.
    fn step<T>(
        &self,
        work: impl FnOnce(&mut Step<'_>) -> Result<T, SqsError>,
    ) -> Result<T, SqsError> {
        let (result, woken) = self.store.transaction(|tx| {
            let mut step = Step {
                tx,
                now_ms: self.clock.now_ms(),
                account: &self.account.id,
                region: &self.account.region,
                woken: BTreeSet::new(),
            };
            moves::progress(&mut step)?;
            let result = work(&mut step)?;
            Ok::<_, SqsError>((result, step.woken))
        })?;
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        for queue in &woken {
            if let Some(change) = changes.get(queue) {
                change.send_replace(());
            }
        }
        Ok(result)
    }
}

fn counts(step: &Step<'_>, queue: &Queue) -> Result<[(&'static str, i64); 3], SqsError> {
    let (visible, delayed, in_flight) = step.tx.query_row(
        "SELECT COUNT(*) FILTER (WHERE visible_ms <= ?2),
                COUNT(*) FILTER (WHERE visible_ms > ?2 AND receives = 0),
                COUNT(*) FILTER (WHERE visible_ms > ?2 AND receives > 0)
         FROM messages WHERE queue = ?1 AND sent_ms > ?3",
        params![queue.name, step.now_ms, step.now_ms - queue.retention_ms()],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    Ok([
        ("ApproximateNumberOfMessages", visible),
        ("ApproximateNumberOfMessagesDelayed", delayed),
        ("ApproximateNumberOfMessagesNotVisible", in_flight),
    ])
}
