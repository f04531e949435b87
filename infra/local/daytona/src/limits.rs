//! Limits of this crate besides the engine's ([`bobbin_local_sandbox::limits`]); each name contains its unit.

pub use bobbin_local_sandbox::limits::*;

/// Sandboxes at once.
pub const SANDBOXES_MAX: usize = 1_200;
/// Characters of a sandbox's name.
pub const NAME_CHARS_MAX: usize = 128;
/// Bytes of a JSON body of the control API.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Longest delay of an answer to `create`, `start` and `recover` (reference: up to 30 s).
pub const HOLD_MS_MAX: u64 = 30_000;
/// Interval of the timers' check of every sandbox, in real time whatever the clock says.
pub const TIMER_TICK_MS: u64 = 1_000;
/// When memory is short, a sandbox idle for this long may be stopped: one in use has activity every few seconds.
pub const RELIEF_IDLE_MS: i64 = 3 * 60_000;
/// Activity closer together than this counts once (reference: one per 5 s).
pub const ACTIVITY_THROTTLE_MS: i64 = 5_000;
/// Default items per list page.
pub const PAGE_DEFAULT: usize = 100;
/// Most items per list page; more are refused with 400.
pub const PAGE_MAX: usize = 200;
/// Preview listeners of one sandbox.
pub const PREVIEWS_MAX: usize = 32;
/// Signed preview tokens of one sandbox.
pub const SIGNED_MAX: usize = 100;
/// Life of a signed preview link, in seconds.
pub const SIGNED_SECONDS_MAX: i64 = 86_400;
/// Largest request body that the replay fault may send twice (reference: 256 KiB).
pub const REPLAY_BYTES_MAX: usize = 256 * 1024;
/// Snapshots at once (Daytona's organisations have 30 to 100).
pub const SNAPSHOTS_MAX: usize = 100;
/// A snapshot unused by new sandboxes for this long is deactivated (Daytona: two weeks).
pub const SNAPSHOT_IDLE_MS_MAX: i64 = 14 * 24 * 60 * 60_000;
/// Secrets of one sandbox, as `maxSecretsPerSandbox` says.
pub const SECRETS_OF_SANDBOX_MAX: usize = 10;
/// Secrets at once.
pub const SECRETS_MAX: usize = 500;
/// Auto-archive interval for 0: the maximum, in minutes.
pub const AUTO_ARCHIVE_MINUTES_MAX: i64 = 43_200;
/// Time limit of one npm, tar or version call of the installer.
pub const INSTALL_STEP_MS_MAX: u64 = 600_000;

const _: () = assert!(PAGE_DEFAULT <= PAGE_MAX);
