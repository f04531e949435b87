//! The batch actions: several entries in one request, each with its own outcome.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};

use super::error::SqsError;
use super::queue::Queue;
use super::send::{self, MessageEntry};
use super::service::Sqs;
use super::transaction::QueueTransaction;
use super::wire::{SqsResult, value};
use crate::limits;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct BatchRequest<E> {
    #[serde(default)]
    queue_url: String,
    #[serde(default = "Vec::new")]
    entries: Vec<E>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ReceiptEntry {
    #[serde(default)]
    id: String,
    #[serde(default)]
    pub(super) receipt_handle: String,
    pub(super) visibility_timeout: Option<i64>,
}

impl Sqs {
    pub(super) fn send_batch(&self, request: BatchRequest<MessageEntry>) -> SqsResult {
        check_batch(request.entries.iter().map(|entry| entry.id.as_str()))?;
        let bytes: usize = request.entries.iter().map(send::size_bytes).sum();
        if bytes > limits::MESSAGE_BYTES_MAX {
            return Err(SqsError::batch_bytes(bytes, limits::MESSAGE_BYTES_MAX));
        }
        self.on_queue(&request.queue_url, |transaction, queue| {
            let mut reply = BatchReply::default();
            for entry in request.entries {
                let id = entry.id.clone();
                reply.add(&id, send::send(transaction, queue, entry).map(|sent| value(&sent)))?;
            }
            Ok(reply.value())
        })
    }

    pub(super) fn receipt_batch(
        &self,
        request: BatchRequest<ReceiptEntry>,
        work: impl Fn(&mut QueueTransaction<'_>, &Queue, &ReceiptEntry) -> Result<(), SqsError>,
    ) -> SqsResult {
        check_batch(request.entries.iter().map(|entry| entry.id.as_str()))?;
        self.on_queue(&request.queue_url, |transaction, queue| {
            let mut reply = BatchReply::default();
            for entry in &request.entries {
                let done = work(transaction, queue, entry).map(|()| json!({ "Id": entry.id }));
                reply.add(&entry.id, done)?;
            }
            Ok(reply.value())
        })
    }
}

/// The two lists of a batch's answer.
#[derive(Default)]
struct BatchReply {
    successful: Vec<Value>,
    failed: Vec<Value>,
}

impl BatchReply {
    /// Adds one entry's outcome; a store error fails the whole request.
    fn add(&mut self, id: &str, outcome: SqsResult) -> Result<(), SqsError> {
        match outcome {
            Ok(value) => self.successful.push(value),
            Err(error) if error.status.is_server_error() => return Err(error),
            Err(error) => self.failed.push(json!({
                "Id": id,
                "SenderFault": true,
                "Code": error.code,
                "Message": error.message,
            })),
        }
        Ok(())
    }

    fn value(self) -> Value {
        json!({ "Successful": self.successful, "Failed": self.failed })
    }
}

fn check_batch<'a>(ids: impl Iterator<Item = &'a str>) -> Result<(), SqsError> {
    let mut distinct = BTreeSet::new();
    let mut count = 0;
    for id in ids {
        count += 1;
        let fits = (1..=80).contains(&id.len())
            && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
        if !fits {
            return Err(SqsError::batch_id_format());
        }
        if !distinct.insert(id) {
            return Err(SqsError::batch_ids(id));
        }
    }
    match count {
        0 => Err(SqsError::empty_batch()),
        1..=limits::BATCH_ENTRIES_MAX => Ok(()),
        _ => Err(SqsError::batch_entries(count, limits::BATCH_ENTRIES_MAX)),
    }
}
