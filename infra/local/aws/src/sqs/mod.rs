//! SQS: standard and FIFO queues as AWS documents them, in the store's file.
//!
//! Promised: a group of a FIFO queue is locked while one of its messages is in flight; its order survives failures;
//! expired receipt handles are refused there; duplicates within five minutes are answered and dropped; a message
//! received `maxReceiveCount` times moves to the dead-letter queue at the next receive, where on FIFO its own id is its
//! deduplication id; a waiting consumer wakes at once; an action without an output answers an empty body. All times
//! come from the injected clock and are computed when a queue is used.
//!
//! Deliberately absent: queue policies and permissions, encryption, throttles, the cap on messages in flight,
//! `ReceiveRequestAttemptId` (accepted, without effect), and the older query protocol.

mod batch;
mod digest;
mod error;
mod protocol;
mod queue;
mod receipt;
mod receive;
mod receive_message;
mod send;
mod service;
mod stored;
mod transaction;
mod wire;

pub(crate) use queue::name_of_arn;
pub(crate) use receive::Received;
pub(crate) use send::MessageEntry;
pub(crate) use service::Sqs;
pub(crate) use transaction::queue_arn;
pub(crate) use wire::asks_for_query_codes;
