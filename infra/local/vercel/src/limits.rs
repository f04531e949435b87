//! Limits of this crate besides the engine's ([`bobbin_local_sandbox::limits`]); each name contains its unit.

pub use bobbin_local_sandbox::limits::*;

/// Sandboxes at once.
pub const SANDBOXES_MAX: usize = 1_200;
/// Characters of a sandbox's name.
pub const NAME_CHARS_MAX: usize = 128;
/// Tags of a sandbox.
pub const TAGS_MAX: usize = 5;
/// Ports of a sandbox with a route.
pub const PORTS_MAX: usize = 15;
/// Bytes of a JSON body.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Default session timeout.
pub const SESSION_MS: u64 = 5 * 60_000;
/// Longest session.
pub const SESSION_MS_MAX: u64 = 24 * 60 * 60_000;
/// Most snapshots in a retention rule.
pub const KEPT_MAX: usize = 10;
/// Default lifetime of a snapshot.
pub const SNAPSHOT_MS: u64 = 30 * 24 * 60 * 60_000;
/// Longest delay of an answer to a create, resume, stop or snapshot.
pub const HOLD_MS_MAX: u64 = 30_000;
/// Longest wait for news in one poll of a command's output.
pub const FOLLOW_MS_MAX: u64 = 1_000;
/// Default items per list page.
pub const PAGE_DEFAULT: usize = 20;
/// Most items per list page.
pub const PAGE_MAX: usize = 50;
/// Sessions remembered per sandbox.
pub const SESSIONS_KEPT: usize = 50;
/// Interval of the timers' check of every session, in real time whatever the clock says.
pub const TIMER_TICK_MS: u64 = 500;

const _: () = assert!(PAGE_DEFAULT <= PAGE_MAX);
