//! Every bound of this crate, with its unit last in the name.
//!
//! Numbers marked (AWS) are the documented quotas of the service that is imitated; the others are ours.

/// Longest DynamoDB, SQS or Lambda request that the endpoint reads (DynamoDB's own limit, AWS).
pub const REQUEST_BYTES_MAX: usize = 16 * 1024 * 1024;
/// A signature is taken when its time is at most this far from now (AWS).
pub const SIGNATURE_SKEW_SECONDS_MAX: u64 = 5 * 60;
/// Longest request or response of a function URL or a synchronous invocation (AWS).
pub const FUNCTION_PAYLOAD_BYTES_MAX: usize = 6 * 1024 * 1024;
/// Longest event of an asynchronous invocation (AWS).
pub const EVENT_PAYLOAD_BYTES_MAX: usize = 1024 * 1024;
/// Longest value of a secret (AWS).
pub const SECRET_BYTES_MAX: usize = 65_536;

/// Body plus attributes of one message, and of a whole batch (AWS).
pub const MESSAGE_BYTES_MAX: usize = 1024 * 1024;
/// Entries in a batch request and messages in one receive (AWS).
pub const BATCH_ENTRIES_MAX: usize = 10;
/// Longest deduplication id or group id in characters (AWS).
pub const MESSAGE_ID_CHARACTERS_MAX: usize = 128;
/// Message attributes on one message (AWS).
pub const MESSAGE_ATTRIBUTES_MAX: usize = 10;
/// Longest queue name, `.fifo` included (AWS).
pub const QUEUE_NAME_CHARACTERS_MAX: usize = 80;
/// How long a deduplication id counts after it was sent (AWS).
pub const DEDUPLICATION_WINDOW_MS: i64 = 5 * 60 * 1000;
/// A message stays invisible at most this long, counted from its receive (AWS).
pub const VISIBILITY_SECONDS_MAX: i64 = 12 * 60 * 60;
/// Longest long poll (AWS).
pub const WAIT_SECONDS_MAX: i64 = 20;
/// A queue can be purged once in this time (AWS).
pub const PURGE_INTERVAL_MS: i64 = 60 * 1000;
/// Messages that one receive moves to a dead-letter queue before it lets others in.
pub const DEAD_LETTERS_PER_RECEIVE_MAX: usize = 1000;
/// The name of a deleted queue cannot be used again for this long (AWS).
pub const QUEUE_NAME_HELD_MS: i64 = 60 * 1000;
/// Longest name and longest type of a message attribute in characters (AWS).
pub const ATTRIBUTE_NAME_CHARACTERS_MAX: usize = 256;
/// Names in one answer of `ListQueues` (AWS).
pub const LISTED_QUEUES_MAX: usize = 1000;
/// Messages that the test call returns which lists a queue without receiving.
pub const PEEKED_MESSAGES_MAX: usize = 1000;
/// A queue without any activity is checked again after this long, so that nothing waits for a lost wake-up.
pub const QUEUE_CHECK_INTERVAL_MS: i64 = 20 * 1000;
/// A queue that could not be read is read again after this long.
pub const QUEUE_RETRY_MS: i64 = 1000;

/// Longest schedule `Input` in characters (AWS).
pub const SCHEDULE_INPUT_CHARACTERS_MAX: usize = 256 * 1024;
/// Schedules in one answer of `ListSchedules` (AWS).
pub const LISTED_SCHEDULES_MAX: usize = 100;
/// Attempts after the first for one firing of a schedule (AWS default and maximum).
pub const SCHEDULE_RETRIES_MAX: i64 = 185;
/// Age at which a firing is given up (AWS default and maximum).
pub const SCHEDULE_AGE_SECONDS_MAX: i64 = 24 * 60 * 60;
/// First pause between the attempts of a firing; each further one is twice as long.
pub const SCHEDULE_BACKOFF_MS_MIN: i64 = 1000;
/// Longest pause between the attempts of a firing.
pub const SCHEDULE_BACKOFF_MS_MAX: i64 = 5 * 60 * 1000;
/// The firing loop checks again after this long, so that nothing waits for a lost wake-up.
pub const SCHEDULE_CHECK_INTERVAL_MS: i64 = 60 * 1000;
/// Firings handled in one round of the loop.
pub const FIRINGS_PER_ROUND_MAX: usize = 100;

/// Longest segment document (AWS).
pub const SEGMENT_BYTES_MAX: usize = 64 * 1024;
/// Segment documents that are kept for the tests that read them.
pub const SEGMENTS_MAX: usize = 2_000;

/// A function has this long from its start to its first request for work (AWS).
pub const FUNCTION_INIT_MS_MAX: u64 = 10_000;
/// `Timeout` of a function that names none (AWS).
pub const FUNCTION_TIMEOUT_SECONDS_DEFAULT: u64 = 3;
/// Longest `Timeout` of a function (AWS).
pub const FUNCTION_TIMEOUT_SECONDS_MAX: u64 = 900;
/// A process without work is ended after this long.
pub const FUNCTION_IDLE_MS_MAX: i64 = 5 * 60 * 1000;
/// How often processes without work are checked for their age.
pub const FUNCTION_IDLE_CHECK_MS: i64 = 10_000;
/// After its answer a process has this long to ask for more work, else it is ended.
pub const FUNCTION_RETURN_MS_MAX: u64 = 5_000;
/// Processes of all invocations of one function together (AWS: account concurrency).
pub const FUNCTION_CONCURRENCY_MAX: usize = 1000;
/// Attempts of an asynchronous invocation after the first (AWS default).
pub const EVENT_INVOCATION_RETRIES_MAX: u32 = 2;
/// Pause before the first retry of an asynchronous invocation; the second waits twice as long (AWS).
pub const EVENT_INVOCATION_BACKOFF_MS: i64 = 60_000;
/// Longest line of a function's output; a longer one arrives in pieces.
pub const LOG_LINE_BYTES_MAX: u64 = 64 * 1024;
/// Batches in flight for a mapping without `MaximumConcurrency` (the maximum that the setting takes, AWS).
pub const MAPPING_CONCURRENCY_MAX: usize = 1000;
/// A mapping pauses this long after the engine itself failed to receive or to start a function.
pub const MAPPING_PAUSE_MS: u64 = 1000;

/// How often expired items are removed from tables with a time to live.
pub const TTL_SWEEP_INTERVAL_MS: u64 = 10_000;
/// Copies of the tables kept for the index lag.
pub const INDEX_COPIES_MAX: usize = 64;
/// Longest time that transactions can be asked to last.
pub const TRANSACTION_MS_MAX: u64 = 10_000;
/// Longest index lag that can be asked for.
pub const INDEX_LAG_MS_MAX: i64 = 60 * 60 * 1000;

/// Bytes that KMS encrypts with a symmetric key, and of a ciphertext that it takes (API reference, `Encrypt` and `Decrypt`).
pub const KMS_PLAINTEXT_BYTES_MAX: usize = 4_096;
/// The same of a ciphertext.
pub const KMS_CIPHERTEXT_BYTES_MAX: usize = 6_144;

/// Pause after a connection could not be taken.
pub const ACCEPT_PAUSE_MS: u64 = 50;
/// Stopping waits this long for requests under way.
pub const STOP_MS_MAX: u64 = 3_000;
/// A process that was left over from an earlier run has this long to be gone after it was killed.
pub const LEFTOVER_GONE_MS_MAX: u64 = 5_000;

const _: () = assert!(DEAD_LETTERS_PER_RECEIVE_MAX >= BATCH_ENTRIES_MAX);
const _: () = assert!(MESSAGE_BYTES_MAX < FUNCTION_PAYLOAD_BYTES_MAX);
const _: () = assert!(FUNCTION_PAYLOAD_BYTES_MAX < REQUEST_BYTES_MAX);
const _: () = assert!(SCHEDULE_BACKOFF_MS_MIN < SCHEDULE_BACKOFF_MS_MAX);
