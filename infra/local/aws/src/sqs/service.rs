//! The queues' interface to the rest of the engine: sending, mappings, waiting for changes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::params;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::error::SqsError;
use super::queue::Queue;
use super::receipt;
use super::receive::{self, ReceiveOptions, Received};
use super::send::{self, MessageEntry};
use super::stored;
use super::transaction::QueueTransaction;
use super::wire::name_of_url;
use crate::account::AwsAccount;
use crate::clock::Clock;
use crate::limits;
use crate::store::Database;

/// The queues of this stack.
pub(crate) struct Sqs {
    store: Arc<Database>,
    pub(super) clock: Clock,
    pub(super) account: AwsAccount,
    /// One per queue: signals that something may have become receivable.
    changes: Mutex<HashMap<String, watch::Sender<()>>>,
    /// Queues whose mappings are off.
    disabled: Mutex<BTreeSet<String>>,
    pub(super) stopping: CancellationToken,
}

impl Sqs {
    pub(crate) fn new(
        store: Arc<Database>,
        clock: Clock,
        account: AwsAccount,
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

    /// Creates a queue of the template, or updates an existing one's attributes.
    pub(crate) fn deploy(
        &self,
        name: &str,
        attributes: &BTreeMap<String, String>,
        tags: &BTreeMap<String, String>,
    ) -> Result<(), SqsError> {
        self.transaction(|transaction| stored::deploy(transaction, name, attributes, tags))
    }

    /// Sends one message from within the engine.
    pub(crate) fn send(&self, queue: &str, entry: MessageEntry) -> Result<(), SqsError> {
        self.transaction(|transaction| {
            let queue = stored::find(transaction, queue)?;
            send::send(transaction, &queue, entry)?;
            Ok(())
        })
    }

    /// Messages for one invocation, marked as held by a function; on a FIFO queue from one group.
    pub(crate) fn take_batch(
        &self,
        queue: &str,
        count_max: usize,
    ) -> Result<Vec<Received>, SqsError> {
        let disabled = self.disabled.lock();
        if disabled.unwrap_or_else(PoisonError::into_inner).contains(queue) {
            return Ok(Vec::new());
        }
        self.transaction(|transaction| {
            let queue = stored::find(transaction, queue)?;
            let options = ReceiveOptions {
                count_max,
                visibility_seconds: queue.visibility_seconds(),
                for_function: true,
            };
            receive::receive(transaction, &queue, options)
        })
    }

    /// Switches a queue's mappings on or off; invocations in progress finish.
    pub(crate) fn set_mapping(&self, queue: &str, enabled: bool) -> Result<(), SqsError> {
        self.transaction(|transaction| stored::find(transaction, queue).map(drop))?;
        let mut disabled = self.disabled.lock().unwrap_or_else(PoisonError::into_inner);
        if enabled {
            disabled.remove(queue)
        } else {
            disabled.insert(queue.to_owned())
        };
        drop(disabled);
        self.wake([queue]);
        Ok(())
    }

    /// Ends a batch: `done` is deleted, `failed` stays invisible as set. Returns refusals, one per line.
    pub(crate) fn finish_batch(
        &self,
        queue: &str,
        done: &[&Received],
        failed: &[&Received],
    ) -> Result<Vec<String>, SqsError> {
        self.transaction(|transaction| {
            let queue = stored::find(transaction, queue)?;
            let mut refused = Vec::new();
            for message in done {
                receipt::leave_function(transaction, &message.receipt)?;
                if let Err(error) = receipt::delete(transaction, &queue, &message.receipt) {
                    refused.push(format!("message {} was not deleted: {error}", message.id));
                }
            }
            for message in failed {
                receipt::leave_function(transaction, &message.receipt)?;
            }
            Ok(refused)
        })
    }

    /// Releases messages held by functions of an earlier run; these are known to be gone.
    pub(crate) fn release_abandoned(&self) -> Result<usize, SqsError> {
        self.transaction(|transaction| {
            Ok(transaction.sql.execute(
                "UPDATE messages SET visible_ms = MIN(visible_ms, ?1), in_function = 0 WHERE in_function = 1",
                params![transaction.now_ms],
            )?)
        })
    }

    /// Returns when the queue should be checked again: after a change, when a message becomes visible, or after an
    /// interval.
    pub(crate) async fn changed(&self, queue: &str, changes: &mut watch::Receiver<()>) {
        let next_ms = self.next_check_ms(queue);
        tokio::select! {
            _ = changes.changed() => {}
            () = self.clock.sleep_until_ms(next_ms) => {}
            () = self.stopping.cancelled() => {}
        }
    }

    /// Subscribes to changes of a queue; subscribe before checking, so that none is missed.
    pub(crate) fn watch(&self, queue: &str) -> watch::Receiver<()> {
        self.changes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(queue.to_owned())
            .or_insert_with(|| watch::Sender::new(()))
            .subscribe()
    }

    /// A queue's messages, oldest first, without receiving them.
    pub(crate) fn peek(&self, name: &str) -> Result<Value, SqsError> {
        self.transaction(|transaction| {
            stored::find(transaction, name)?;
            let mut statement = transaction.sql.prepare_cached(
                "SELECT id, body, group_id, deduplication_id, sent_ms, visible_ms, receives, in_function
                 FROM messages WHERE queue = ?1 ORDER BY sequence LIMIT ?2",
            )?;
            let now_ms = transaction.now_ms;
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

    fn next_check_ms(&self, queue: &str) -> i64 {
        let now_ms = self.clock.now_ms();
        match self.transaction(|transaction| receive::next_visible_ms(transaction, queue)) {
            Ok(visible_ms) => {
                visible_ms.unwrap_or(i64::MAX).min(now_ms + limits::QUEUE_CHECK_INTERVAL_MS)
            }
            Err(_) => now_ms + limits::QUEUE_RETRY_MS,
        }
    }

    /// Runs one transaction on the queue in a request's URL.
    pub(super) fn on_queue<T>(
        &self,
        url: &str,
        work: impl FnOnce(&mut QueueTransaction<'_>, &Queue) -> Result<T, SqsError>,
    ) -> Result<T, SqsError> {
        let name = name_of_url(url)?;
        self.transaction(|transaction| {
            let queue = stored::find(transaction, name)?;
            work(transaction, &queue)
        })
    }

    /// Runs one transaction and wakes the consumers of the queues it touched.
    pub(super) fn transaction<T>(
        &self,
        work: impl FnOnce(&mut QueueTransaction<'_>) -> Result<T, SqsError>,
    ) -> Result<T, SqsError> {
        let (result, woken) = self.store.transaction(|sql| {
            let mut transaction = QueueTransaction {
                sql,
                now_ms: self.clock.now_ms(),
                account: &self.account.id,
                region: &self.account.region,
                woken: BTreeSet::new(),
            };
            let result = work(&mut transaction)?;
            Ok::<_, SqsError>((result, transaction.woken))
        })?;
        self.wake(woken.iter().map(String::as_str));
        Ok(result)
    }

    fn wake<'a>(&self, queues: impl IntoIterator<Item = &'a str>) {
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        for queue in queues {
            if let Some(change) = changes.get(queue) {
                change.send_replace(());
            }
        }
    }
}
