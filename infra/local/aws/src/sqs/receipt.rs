//! A consumer's actions on a delivered message: delete it, or change its visibility timeout.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rusqlite::{OptionalExtension, params};

use super::error::SqsError;
use super::queue::Queue;
use super::transaction::QueueTransaction;
use crate::limits;

/// A receipt handle: names the queue and the message, and is new for every delivery.
pub(crate) struct ReceiptHandle {
    queue: String,
    sequence: i64,
    nonce: String,
}

impl ReceiptHandle {
    pub(crate) fn mint(queue: &str, sequence: i64) -> Self {
        Self { queue: queue.to_owned(), sequence, nonce: uuid::Uuid::new_v4().simple().to_string() }
    }

    pub(crate) fn text(&self) -> String {
        STANDARD.encode(format!("{}/{}/{}", self.queue, self.sequence, self.nonce))
    }

    fn parse(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text).ok()?;
        let decoded = String::from_utf8(bytes).ok()?;
        let mut parts = decoded.splitn(3, '/');
        Some(Self {
            queue: parts.next()?.to_owned(),
            sequence: parts.next()?.parse().ok()?,
            nonce: parts.next()?.to_owned(),
        })
    }
}

/// State of the delivery that a handle names.
enum DeliveryState {
    /// The message is gone.
    Gone,
    /// Delivered again since, or visible again.
    Expired {
        delivered_again: bool,
    },
    InFlight {
        received_ms: i64,
    },
}

/// Deletes the message of a handle.
///
/// FIFO refuses a handle whose visibility timeout is over; a standard queue accepts it until the message is received
/// again. Deleting a message that is gone succeeds.
pub(crate) fn delete(
    transaction: &mut QueueTransaction<'_>,
    queue: &Queue,
    handle: &str,
) -> Result<(), SqsError> {
    let receipt = checked(queue, handle)?;
    match delivery_state(transaction, &receipt, handle)? {
        DeliveryState::Gone => return Ok(()),
        DeliveryState::Expired { .. } if queue.is_fifo() => {
            return Err(SqsError::expired_receipt(handle));
        }
        DeliveryState::Expired { delivered_again: true } => return Ok(()),
        DeliveryState::Expired { .. } | DeliveryState::InFlight { .. } => {}
    }
    transaction
        .sql
        .prepare_cached("DELETE FROM messages WHERE sequence = ?1")?
        .execute([receipt.sequence])?;
    transaction.woken.insert(queue.name.clone());
    Ok(())
}

/// Sets the visibility timeout from now on; 0 makes the message visible at once.
pub(crate) fn change_visibility(
    transaction: &mut QueueTransaction<'_>,
    queue: &Queue,
    handle: &str,
    seconds: Option<i64>,
) -> Result<(), SqsError> {
    let seconds = seconds.ok_or_else(|| SqsError::missing("VisibilityTimeout"))?;
    if !(0..=limits::VISIBILITY_SECONDS_MAX).contains(&seconds) {
        return Err(SqsError::value(
            "VisibilityTimeout",
            seconds,
            "VisibilityTimeout must be >= 0 and <= 43200.",
        ));
    }
    let receipt = checked(queue, handle)?;
    let received_ms = match delivery_state(transaction, &receipt, handle)? {
        DeliveryState::InFlight { received_ms } => received_ms,
        DeliveryState::Expired { .. } if !queue.is_fifo() => return Err(SqsError::not_in_flight()),
        DeliveryState::Gone | DeliveryState::Expired { .. } => {
            return Err(SqsError::not_available(handle));
        }
    };
    let visible_ms = transaction.now_ms + seconds * 1000;
    if visible_ms - received_ms > limits::VISIBILITY_SECONDS_MAX * 1000 {
        return Err(SqsError::value(
            "VisibilityTimeout",
            seconds,
            "Total VisibilityTimeout for the message is beyond the limit [43200 seconds].",
        ));
    }
    transaction
        .sql
        .prepare_cached("UPDATE messages SET visible_ms = ?2 WHERE sequence = ?1")?
        .execute(params![receipt.sequence, visible_ms])?;
    transaction.woken.insert(queue.name.clone());
    Ok(())
}

/// Records that no function processes the message any more.
pub(crate) fn leave_function(
    transaction: &QueueTransaction<'_>,
    handle: &str,
) -> Result<(), SqsError> {
    let receipt = ReceiptHandle::parse(handle).ok_or_else(SqsError::malformed_receipt)?;
    transaction
        .sql
        .prepare_cached("UPDATE messages SET in_function = 0 WHERE sequence = ?1 AND receipt = ?2")?
        .execute(params![receipt.sequence, handle])?;
    Ok(())
}

fn checked(queue: &Queue, handle: &str) -> Result<ReceiptHandle, SqsError> {
    if handle.is_empty() {
        return Err(SqsError::missing("ReceiptHandle"));
    }
    ReceiptHandle::parse(handle)
        .filter(|receipt| receipt.queue == queue.name)
        .ok_or_else(SqsError::malformed_receipt)
}

fn delivery_state(
    transaction: &QueueTransaction<'_>,
    receipt: &ReceiptHandle,
    handle: &str,
) -> Result<DeliveryState, SqsError> {
    let found: Option<(Option<String>, i64, Option<i64>)> = transaction
        .sql
        .prepare_cached(
            "SELECT receipt, visible_ms, received_ms FROM messages WHERE sequence = ?1 AND queue = ?2",
        )?
        .query_row(params![receipt.sequence, receipt.queue], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()?;
    Ok(match found {
        None => DeliveryState::Gone,
        Some((current, ..)) if current.as_deref() != Some(handle) => {
            DeliveryState::Expired { delivered_again: true }
        }
        Some((_, visible_ms, _)) if visible_ms <= transaction.now_ms => {
            DeliveryState::Expired { delivered_again: false }
        }
        Some((.., received_ms)) => {
            DeliveryState::InFlight { received_ms: received_ms.unwrap_or(transaction.now_ms) }
        }
    })
}
