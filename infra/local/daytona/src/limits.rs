//! Every bound of the crate besides those of the engine ([`bobbin_local_sandbox::limits`]), with its unit in the name.

pub use bobbin_local_sandbox::limits::*;

/// Sandboxes that exist at once.
pub const SANDBOXES_MAX: usize = 1_200;
/// Characters of a sandbox's name.
pub const NAME_CHARS_MAX: usize = 128;
/// Bytes of a JSON body of the control API.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long `create`, `start` and `recover` hold their answer (reference: up to 30 s).
pub const HOLD_MS_MAX: u64 = 30_000;
/// How often the timers look at every sandbox, in real time whatever the clock says.
pub const TIMER_TICK_MS: u64 = 1_000;
/// When memory is short, a sandbox idle for this long may be stopped: one in use shows activity every few seconds.
pub const RELIEF_IDLE_MS: i64 = 3 * 60_000;
/// Signs of life closer together than this count as one (reference: one per 5 s).
pub const ACTIVITY_THROTTLE_MS: i64 = 5_000;
/// Items of a list page where the request names no number.
pub const PAGE_DEFAULT: usize = 100;
/// Items of a list page at the most; more are refused with 400.
pub const PAGE_MAX: usize = 200;
/// Preview listeners of one sandbox.
pub const PREVIEWS_MAX: usize = 32;
/// Signed preview tokens of one sandbox.
pub const SIGNED_MAX: usize = 100;
/// Life of a signed preview link, in seconds.
pub const SIGNED_SECONDS_MAX: i64 = 86_400;
/// A request body that the replay fault may send twice (reference: 256 KiB).
pub const REPLAY_BYTES_MAX: usize = 256 * 1024;
/// Snapshots that exist at once (organisations at Daytona have 30 to 100).
pub const SNAPSHOTS_MAX: usize = 100;
/// A snapshot that no sandbox was made from for so long is put to sleep (Daytona: two weeks).
pub const SNAPSHOT_IDLE_MS_MAX: i64 = 14 * 24 * 60 * 60_000;
/// Secrets that exist at once.
pub const SECRETS_MAX: usize = 500;
/// Interval of auto-archive when 0 is asked for: the maximum, in minutes.
pub const AUTO_ARCHIVE_MINUTES_MAX: i64 = 43_200;
/// One npm, tar or version call of the installer.
pub const INSTALL_STEP_MS_MAX: u64 = 600_000;

const _: () = assert!(PAGE_DEFAULT <= PAGE_MAX);
