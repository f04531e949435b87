//! One transaction on the queues' tables.

use std::collections::BTreeSet;

use rusqlite::Transaction;

/// One transaction: its time, and the queues whose consumers must check again afterwards.
pub(crate) struct QueueTransaction<'a> {
    pub(crate) sql: &'a Transaction<'a>,
    pub(crate) now_ms: i64,
    pub(crate) account: &'a str,
    pub(crate) region: &'a str,
    pub(crate) woken: BTreeSet<String>,
}

impl QueueTransaction<'_> {
    pub(crate) fn arn(&self, queue: &str) -> String {
        queue_arn(self.region, self.account, queue)
    }
}

/// The ARN of a queue.
pub(crate) fn queue_arn(region: &str, account: &str, queue: &str) -> String {
    format!("arn:aws:sqs:{region}:{account}:{queue}")
}
