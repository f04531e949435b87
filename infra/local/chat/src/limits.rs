//! Limits of this crate; the unit is the last word of each name.
//!
//! Discord's and Slack's numbers are theirs (documented, or seen in production); the others are ours.

/// Largest request body of an API (Discord: 25 MiB for a whole request; some room for the multipart frame).
pub const REQUEST_BYTES_MAX: usize = 26 * 1024 * 1024;
/// Largest file in one upload (Discord's default `attachment_size_limit`).
pub const FILE_BYTES_MAX: usize = 10 * 1024 * 1024;
/// Largest body read back from the ingress.
pub const INGRESS_ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// Time limit of both platforms for the ingress's first answer.
pub const INGRESS_ANSWER_MS_MAX: u64 = 3_000;
/// Bot requests kept for inspection, per platform.
pub const REQUEST_LOG_ROWS_MAX: u64 = 5_000;
/// Messages kept per channel or thread; the oldest go first.
pub const MESSAGES_PER_CHANNEL_MAX: u64 = 5_000;
/// Kept files; the oldest go first.
pub const FILES_MAX: u64 = 500;
/// Interval of pruning.
pub const PRUNE_MS: u64 = 60 * 60 * 1_000;
/// How long interactions, open forms, uploads and nonces are kept after their last use.
pub const SHORT_LIVED_MS: u64 = 24 * 60 * 60 * 1_000;
/// How long Slack's file records and session states are kept.
pub const LONG_LIVED_MS: u64 = 30 * 24 * 60 * 60 * 1_000;
/// Discord threads kept; the oldest go first, with their messages.
pub const THREADS_MAX: usize = 1_000;
/// Faults armed at once.
pub const FAULTS_MAX: usize = 100;
/// Longest delay of an injected fault.
pub const FAULT_DELAY_MS_MAX: u64 = 60_000;
/// Streams of live notices open at once.
pub const LIVE_VIEWERS_MAX: usize = 32;
/// Live notices that a slow viewer may lag behind before it must reload everything.
pub const LIVE_BACKLOG_MAX: usize = 256;
/// Interval of reading the session records while a page is open.
pub const INSPECTOR_POLL_MS: u64 = 1_000;
/// Time limit of one read of the session records.
pub const INSPECTOR_READ_MS_MAX: u64 = 5_000;
/// Time limit of one read of the forge.
pub const FORGE_READ_MS_MAX: u64 = 10_000;
/// How long a press in the forge pane is waited for.
pub const FORGE_ACT_MS_MAX: u64 = 60_000;
/// Largest body of a press in the forge pane.
pub const FORGE_WISH_BYTES_MAX: usize = 4_096;
/// Repositories in the forge pane.
pub const FORGE_REPOSITORIES_MAX: usize = 200;
/// Branches, and pull requests, of the open repository.
pub const FORGE_ROWS_MAX: usize = 100;
/// Open pull requests of a repository in the list.
pub const FORGE_LISTED_MAX: usize = 10;
/// Files of a pull request.
pub const FORGE_FILES_MAX: usize = 300;
/// Longest text, and longest patch of a file.
pub const FORGE_CHARS_MAX: usize = 40_000;
/// All patches of a pull request together.
pub const FORGE_PATCHES_CHARS_MAX: usize = 400_000;
/// Delivered Slack events kept for a requested retry.
pub const EVENTS_KEPT_MAX: usize = 500;
/// Rate-limit windows remembered; beyond this all restart.
pub const RATE_WINDOWS_MAX: usize = 1_000;
/// Requests in one rate-limit window of a Discord route.
pub const RATE_WINDOW_REQUESTS: u64 = 10;
/// Length of that window.
pub const RATE_WINDOW_MS: u64 = 5_000;
/// How long a stop waits for open requests.
pub const STOP_MS_MAX: u64 = 2_000;

/// Lifetime of a Discord interaction token after the 3 s for the first answer.
pub const INTERACTION_TOKEN_MS: u64 = 15 * 60 * 1_000;
/// How long an enforced nonce finds its message ("a few minutes").
pub const NONCE_MS: u64 = 5 * 60 * 1_000;
/// Discord: characters of `content`, counted as UTF-16 units.
pub const CONTENT_UNITS_MAX: usize = 2_000;
/// Discord: components of a message, including nested ones.
pub const COMPONENTS_MAX: usize = 40;
/// Discord: characters of all text displays of a message together.
pub const TEXT_DISPLAY_UNITS_MAX: usize = 4_000;
/// Discord: processed bytes of all text displays (bytes + 12 each); above it Discord answers 500.
pub const TEXT_DISPLAY_BYTES_MAX: usize = 10_170;
/// Discord: files of a message.
pub const FILES_PER_MESSAGE_MAX: usize = 10;
/// Discord: characters of a nonce.
pub const NONCE_UNITS_MAX: usize = 25;
/// Discord: messages per page of a listing.
pub const LIST_MAX: u64 = 100;

/// Slack: `text` is cut off here.
pub const SLACK_TEXT_CHARS_MAX: usize = 40_000;
/// Slack: longest `text` for `chat.update`.
pub const SLACK_UPDATE_CHARS_MAX: usize = 4_000;
/// Slack: largest page of a listing.
pub const SLACK_LIST_MAX: u64 = 1_000;
/// Slack: delays before the three retries of an event, shortened from 0, 60 s and 300 s for a laptop.
pub const RETRY_DELAYS_MS: [u64; 3] = [0, 2_000, 10_000];
/// Longest configurable delay before a retry.
pub const RETRY_DELAY_MS_MAX: u64 = 300_000;
/// How long a Slack stream accepts appends.
pub const STREAM_MS: u64 = 306_000;
