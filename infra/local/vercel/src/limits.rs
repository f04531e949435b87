//! Every bound of the crate besides those of the engine ([`bobbin_local_sandbox::limits`]), with its unit in the name.

pub use bobbin_local_sandbox::limits::*;

/// Sandboxes that exist at once.
pub const SANDBOXES_MAX: usize = 1_200;
/// Characters of a sandbox's name.
pub const NAME_CHARS_MAX: usize = 128;
/// Tags of a sandbox.
pub const TAGS_MAX: usize = 5;
/// Ports of a sandbox that get a route.
pub const PORTS_MAX: usize = 15;
/// Bytes of a JSON body.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Session time where the request names none.
pub const SESSION_MS: u64 = 5 * 60_000;
/// The hard end of a session.
pub const SESSION_MS_MAX: u64 = 24 * 60 * 60_000;
/// Snapshots that a retention rule may keep.
pub const KEPT_MAX: usize = 10;
/// Life of a snapshot where nobody names one.
pub const SNAPSHOT_MS: u64 = 30 * 24 * 60 * 60_000;
/// How long a call that makes, resumes, stops or snapshots holds its answer.
pub const HOLD_MS_MAX: u64 = 30_000;
/// How long one look at a command's output waits for news.
pub const FOLLOW_MS_MAX: u64 = 1_000;
/// Items of a list page where the request names no number.
pub const PAGE_DEFAULT: usize = 20;
/// Items of a list page at the most.
pub const PAGE_MAX: usize = 50;
/// Sessions of a sandbox that are remembered.
pub const SESSIONS_KEPT: usize = 50;
/// How often the timers look at every session, in real time whatever the clock says.
pub const TIMER_TICK_MS: u64 = 500;

const _: () = assert!(PAGE_DEFAULT <= PAGE_MAX);
