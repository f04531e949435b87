//! Every bound of this crate in one place, unit last in the name.
//!
//! The numbers of Discord and Slack are theirs (documented, or seen in production); the others are ours.

/// Largest request body that an API accepts (Discord: whole request 25 MiB; some room for the multipart frame).
pub const REQUEST_BYTES_MAX: usize = 26 * 1024 * 1024;
/// Largest file in one upload (Discord's default `attachment_size_limit`).
pub const FILE_BYTES_MAX: usize = 10 * 1024 * 1024;
/// Largest body read back from the ingress.
pub const INGRESS_ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// Time that both platforms give the ingress for a first answer.
pub const INGRESS_ANSWER_MS_MAX: u64 = 3_000;
/// Requests of the bot that are kept for inspection, per platform.
pub const REQUEST_LOG_ROWS_MAX: u64 = 5_000;
/// Messages kept per channel or thread; the oldest go first.
pub const MESSAGES_PER_CHANNEL_MAX: u64 = 5_000;
/// Kept files; the oldest go first.
pub const FILES_MAX: u64 = 500;
/// How often what has served its time is let go.
pub const PRUNE_MS: u64 = 60 * 60 * 1_000;
/// How long interactions, open forms, uploads and nonces are kept after their last use.
pub const SHORT_LIVED_MS: u64 = 24 * 60 * 60 * 1_000;
/// How long Slack's file records and session states are kept.
pub const LONG_LIVED_MS: u64 = 30 * 24 * 60 * 60 * 1_000;
/// Discord threads kept; the oldest go first, with their messages.
pub const THREADS_MAX: usize = 1_000;
/// Faults that may wait for their request at once.
pub const FAULTS_MAX: usize = 100;
/// Longest delay that an injected fault may add.
pub const FAULT_DELAY_MS_MAX: u64 = 60_000;
/// Streams of live notices that may be open at once.
pub const LIVE_VIEWERS_MAX: usize = 32;
/// Live notices that a slow viewer may be behind before it has to read everything again.
pub const LIVE_BACKLOG_MAX: usize = 256;
/// How often the session records are read while somebody looks at the page.
pub const INSPECTOR_POLL_MS: u64 = 1_000;
/// How long one read of the session records may take.
pub const INSPECTOR_READ_MS_MAX: u64 = 5_000;
/// Delivered Slack events kept so that a retry of one can be asked for.
pub const EVENTS_KEPT_MAX: usize = 500;
/// Rate-limit windows that are remembered; beyond it all start anew.
pub const RATE_WINDOWS_MAX: usize = 1_000;
/// Requests in one rate-limit window of a Discord route.
pub const RATE_WINDOW_REQUESTS: u64 = 10;
/// Length of that window.
pub const RATE_WINDOW_MS: u64 = 5_000;
/// How long open requests may take to finish when the server stops.
pub const STOP_MS_MAX: u64 = 2_000;

/// Life of a Discord interaction token after the first answer's 3 s.
pub const INTERACTION_TOKEN_MS: u64 = 15 * 60 * 1_000;
/// How long an enforced nonce finds the message that it made ("a few minutes").
pub const NONCE_MS: u64 = 5 * 60 * 1_000;
/// Discord: characters of `content`, counted as UTF-16 units.
pub const CONTENT_UNITS_MAX: usize = 2_000;
/// Discord: components of a message, nested ones counted.
pub const COMPONENTS_MAX: usize = 40;
/// Discord: characters of all text displays of a message together.
pub const TEXT_DISPLAY_UNITS_MAX: usize = 4_000;
/// Discord: processed bytes of all text displays (bytes + 12 each); above it Discord answers 500.
pub const TEXT_DISPLAY_BYTES_MAX: usize = 10_170;
/// Discord: files of a message.
pub const FILES_PER_MESSAGE_MAX: usize = 10;
/// Discord: characters of a nonce.
pub const NONCE_UNITS_MAX: usize = 25;
/// Discord: messages in one page of a listing.
pub const LIST_MAX: u64 = 100;

/// Slack: where `text` is cut off.
pub const SLACK_TEXT_CHARS_MAX: usize = 40_000;
/// Slack: longest `text` that `chat.update` takes.
pub const SLACK_UPDATE_CHARS_MAX: usize = 4_000;
/// Slack: largest page of a listing.
pub const SLACK_LIST_MAX: u64 = 1_000;
/// Slack: waits before the three retries of an event, shortened from 0, 60 s and 300 s for a laptop.
pub const RETRY_DELAYS_MS: [u64; 3] = [0, 2_000, 10_000];
/// Longest wait before a retry that may be configured.
pub const RETRY_DELAY_MS_MAX: u64 = 300_000;
/// How long a stream of Slack takes pieces.
pub const STREAM_MS: u64 = 306_000;
