//! All bounds of sandboxes over SSH, with their units.

/// Most hosts of a stack.
pub(super) const HOSTS_MAX: usize = 16;
/// Most sandboxes of one host.
pub const SANDBOXES_MAX: u16 = 250;
/// Most sandboxes that a listing returns.
pub(super) const LISTED_MAX: usize = HOSTS_MAX * SANDBOXES_MAX as usize;

/// Bound of establishing a connection: TCP, key exchange and login.
pub(super) const CONNECT_MS_MAX: u64 = 10_000;
/// Bound of opening a channel on an existing connection: one that broke while this program was frozen opens none, and
/// is replaced.
pub(super) const CHANNEL_MS_MAX: u64 = 5_000;
/// Interval of keepalives to a silent host; after [`KEEPALIVES_MAX`] unanswered ones the connection is given up.
pub(super) const KEEPALIVE_MS: u64 = 15_000;
/// See [`KEEPALIVE_MS`].
pub(super) const KEEPALIVES_MAX: usize = 3;
/// Connections that are kept for reuse.
pub(super) const CONNECTIONS_MAX: usize = 64;
/// Concurrent commands over one connection; OpenSSH allows ten by default (`MaxSessions`).
pub(super) const COMMANDS_AT_ONCE: usize = 8;

/// Bound of a lifecycle script on the host.
pub(super) const SCRIPT_MS_MAX: u64 = 20_000;
/// Bound of a whole lifecycle call: shorter than [`bobbin_core::base::limits::SandboxLimits::lifecycle_call_ms`].
pub(super) const LIFECYCLE_MS_MAX: u64 = 40_000;
/// Extra time for an exec beyond its own timeout.
pub(super) const EXEC_MARGIN_MS: u64 = 15_000;
/// Bound of a file transfer to or from a sandbox.
pub(super) const TRANSFER_MS_MAX: u64 = 60_000;
/// Most bytes of a command's output, of a file that is read, and of the files that are written together.
pub(super) const BYTES_MAX: usize = 16 * 1024 * 1024;
/// How long output is read after a command has ended: its leftover processes may hold the pipe open.
pub(super) const DRAIN_MS: u64 = 500;
/// Attempts to kill a user's processes before the remaining ones are reported.
pub(super) const KILLS_MAX: u32 = 3;
/// Hosts and slots that are tried for one sandbox.
pub(super) const PLACES_TRIED_MAX: usize = 8;
/// Most snapshots of one host, those of other stacks and those that are being made included.
pub(super) const SNAPSHOTS_MAX: u32 = 250;
/// Most bytes of a snapshot's archive.
pub(super) const SNAPSHOT_BYTES_MAX: u64 = 8 * 1024 * 1024 * 1024;
/// Bound of packing or unpacking a snapshot in seconds: as long as one is waited for
/// ([`bobbin_core::base::limits::ShareLimits::snapshot_ms`]).
pub(super) const PACK_S_MAX: u64 = 15 * 60;
/// Longest part of a host's message that is passed on, in characters.
pub(super) const MESSAGE_CHARS_MAX: usize = 300;

/// Listeners on loopback, one per sandbox; the least recently used one is closed for a new one.
pub(super) const FORWARDS_MAX: usize = 64;
/// Concurrent connections through one listener; a further one waits.
pub(super) const STREAMS_MAX: usize = 32;
/// Longest life of one of those connections: longer than any request of the functions, which live 15 minutes.
pub(super) const STREAM_MS_MAX: u64 = 20 * 60_000;
