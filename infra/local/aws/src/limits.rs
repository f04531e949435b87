//! Limits of this crate; the unit is the last word of each name.
//!
//! Numbers marked (AWS) are documented quotas of the emulated service; the others are ours.

/// Longest DynamoDB, SQS or Lambda request that the endpoint reads (DynamoDB's own limit, AWS).
pub const REQUEST_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Largest distance of a signature's time from now (AWS).
pub const SIGNATURE_SKEW_SECONDS_MAX: u64 = 5 * 60;
/// Longest request or response of a function URL or a synchronous invocation (AWS).
pub const FUNCTION_PAYLOAD_BYTES_MAX: usize = 6 * 1024 * 1024;
/// Longest event of an asynchronous invocation (AWS).
pub const EVENT_PAYLOAD_BYTES_MAX: usize = 1024 * 1024;
/// Longest value of a secret (AWS).
pub const SECRET_BYTES_MAX: usize = 65_536;

/// Body and attributes of a message, and of a whole batch (AWS).
pub const MESSAGE_BYTES_MAX: usize = 1024 * 1024;
/// Entries in a batch request and messages in one receive (AWS).
pub const BATCH_ENTRIES_MAX: usize = 10;
/// Longest deduplication id or group id in characters (AWS).
pub const MESSAGE_ID_CHARACTERS_MAX: usize = 128;
/// Message attributes on one message (AWS).
pub const MESSAGE_ATTRIBUTES_MAX: usize = 10;
/// Longest queue name, `.fifo` included (AWS).
pub const QUEUE_NAME_CHARACTERS_MAX: usize = 80;
/// How long a deduplication id counts after its message was sent (AWS).
pub const DEDUPLICATION_WINDOW_MS: i64 = 5 * 60 * 1000;
/// Longest invisibility, counted from the receive (AWS).
pub const VISIBILITY_SECONDS_MAX: i64 = 12 * 60 * 60;
/// Longest long poll (AWS).
pub const WAIT_SECONDS_MAX: i64 = 20;
/// Least time between two purges of a queue (AWS).
pub const PURGE_INTERVAL_MS: i64 = 60 * 1000;
/// Messages that one receive moves to a dead-letter queue before others get a turn.
pub const DEAD_LETTERS_PER_RECEIVE_MAX: usize = 1000;
/// How long a deleted queue's name stays reserved (AWS).
pub const QUEUE_NAME_HELD_MS: i64 = 60 * 1000;
/// Longest name and longest type of a message attribute in characters (AWS).
pub const ATTRIBUTE_NAME_CHARACTERS_MAX: usize = 256;
/// Names per answer of `ListQueues` (AWS).
pub const LISTED_QUEUES_MAX: usize = 1000;
/// Messages returned by the test call that lists a queue without receiving.
pub const PEEKED_MESSAGES_MAX: usize = 1000;
/// Idle queues are checked again after this long, in case a wake-up was lost.
pub const QUEUE_CHECK_INTERVAL_MS: i64 = 20 * 1000;
/// Retry interval for a queue that could not be read.
pub const QUEUE_RETRY_MS: i64 = 1000;

/// Longest schedule `Input` in characters (AWS).
pub const SCHEDULE_INPUT_CHARACTERS_MAX: usize = 256 * 1024;
/// Schedules per answer of `ListSchedules` (AWS).
pub const LISTED_SCHEDULES_MAX: usize = 100;
/// Retries of one firing (AWS default and maximum).
pub const SCHEDULE_RETRIES_MAX: i64 = 185;
/// Age at which a firing is dropped (AWS default and maximum).
pub const SCHEDULE_AGE_SECONDS_MAX: i64 = 24 * 60 * 60;
/// First delay between the attempts of a firing; it doubles each time.
pub const SCHEDULE_BACKOFF_MS_MIN: i64 = 1000;
/// Longest delay between the attempts of a firing.
pub const SCHEDULE_BACKOFF_MS_MAX: i64 = 5 * 60 * 1000;
/// The firing loop checks again after this long, in case a wake-up was lost.
pub const SCHEDULE_CHECK_INTERVAL_MS: i64 = 60 * 1000;
/// Firings per round of the loop.
pub const FIRINGS_PER_ROUND_MAX: usize = 100;

/// Longest segment document (AWS).
pub const SEGMENT_BYTES_MAX: usize = 64 * 1024;
/// Segment documents kept for tests.
pub const SEGMENTS_MAX: usize = 2_000;

/// Time from a function's start to its first request for work (AWS).
pub const FUNCTION_INIT_MS_MAX: u64 = 10_000;
/// `Timeout` of a function without one (AWS).
pub const FUNCTION_TIMEOUT_SECONDS_DEFAULT: u64 = 3;
/// Longest `Timeout` of a function (AWS).
pub const FUNCTION_TIMEOUT_SECONDS_MAX: u64 = 900;
/// An idle process is ended after this long.
pub const FUNCTION_IDLE_MS_MAX: i64 = 5 * 60 * 1000;
/// Interval of the check for idle processes.
pub const FUNCTION_IDLE_CHECK_MS: i64 = 10_000;
/// Time from a process's answer to its next request for work, before it is killed.
pub const FUNCTION_RETURN_MS_MAX: u64 = 5_000;
/// Concurrent processes of one function (AWS: account concurrency).
pub const FUNCTION_CONCURRENCY_MAX: usize = 1000;
/// Retries of an asynchronous invocation (AWS default).
pub const EVENT_INVOCATION_RETRIES_MAX: u32 = 2;
/// Delay before the first retry of an asynchronous invocation; the second takes twice as long (AWS).
pub const EVENT_INVOCATION_BACKOFF_MS: i64 = 60_000;
/// Longest output line of a function; a longer one is split.
pub const LOG_LINE_BYTES_MAX: u64 = 64 * 1024;
/// Batches in flight for a mapping without `MaximumConcurrency` (the maximum that the setting takes, AWS).
pub const MAPPING_CONCURRENCY_MAX: usize = 1000;
/// Pause of a mapping after the engine failed to receive or to start a function.
pub const MAPPING_PAUSE_MS: u64 = 1000;

/// Interval of the removal of expired items.
pub const TTL_SWEEP_INTERVAL_MS: u64 = 10_000;
/// Copies of the tables kept for the index lag.
pub const INDEX_COPIES_MAX: usize = 64;
/// Longest settable duration of transactions.
pub const TRANSACTION_MS_MAX: u64 = 10_000;
/// Longest settable index lag.
pub const INDEX_LAG_MS_MAX: i64 = 60 * 60 * 1000;

/// Longest plaintext for a symmetric KMS key (API reference, `Encrypt`).
pub const KMS_PLAINTEXT_BYTES_MAX: usize = 4_096;
/// Longest ciphertext (API reference, `Decrypt`).
pub const KMS_CIPHERTEXT_BYTES_MAX: usize = 6_144;

/// Pause after a failed accept.
pub const ACCEPT_PAUSE_MS: u64 = 50;
/// How long a stop waits for requests in flight.
pub const STOP_MS_MAX: u64 = 3_000;
/// How long a killed leftover process may take to disappear.
pub const LEFTOVER_GONE_MS_MAX: u64 = 5_000;

const _: () = assert!(DEAD_LETTERS_PER_RECEIVE_MAX >= BATCH_ENTRIES_MAX);
const _: () = assert!(MESSAGE_BYTES_MAX < FUNCTION_PAYLOAD_BYTES_MAX);
const _: () = assert!(FUNCTION_PAYLOAD_BYTES_MAX < REQUEST_BYTES_MAX);
const _: () = assert!(SCHEDULE_BACKOFF_MS_MIN < SCHEDULE_BACKOFF_MS_MAX);
