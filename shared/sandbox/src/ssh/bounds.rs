//! Every bound of sandboxes over SSH, with its unit.

/// Hosts of a stack.
pub(super) const HOSTS_MAX: usize = 16;
/// Sandboxes of one host.
pub const SANDBOXES_MAX: u16 = 250;
/// Sandboxes that a listing holds at the most.
pub(super) const LISTED_MAX: usize = HOSTS_MAX * SANDBOXES_MAX as usize;

/// Until a connection stands: TCP, key exchange and login.
pub(super) const CONNECT_MS_MAX: u64 = 10_000;
/// Until a connection that stands gives a channel: one that broke while this program was frozen gives none, and is made anew.
pub(super) const CHANNEL_MS_MAX: u64 = 5_000;
/// Without a sign of life from a host, it is asked for one so often, and given up after so many in vain.
pub(super) const KEEPALIVE_MS: u64 = 15_000;
/// See [`KEEPALIVE_MS`].
pub(super) const KEEPALIVES_MAX: usize = 3;
/// Connections that are kept for the next call.
pub(super) const CONNECTIONS_MAX: usize = 64;
/// Commands at once over one connection; OpenSSH takes ten by default (`MaxSessions`).
pub(super) const COMMANDS_AT_ONCE: usize = 8;

/// A script of the life cycle, on the host.
pub(super) const SCRIPT_MS_MAX: u64 = 20_000;
/// A whole call of the life cycle: shorter than [`bobbin_core::base::limits::SandboxLimits::lifecycle_call_ms`].
pub(super) const LIFECYCLE_MS_MAX: u64 = 40_000;
/// What an exec may take beyond its own time.
pub(super) const EXEC_MARGIN_MS: u64 = 15_000;
/// Files on their way to or from a sandbox.
pub(super) const TRANSFER_MS_MAX: u64 = 60_000;
/// Bytes of what a command prints, of a file that is read, and of the files that are written together.
pub(super) const BYTES_MAX: usize = 16 * 1024 * 1024;
/// How long output is waited for once a command has ended: what it left running may hold its pipe open.
pub(super) const DRAIN_MS: u64 = 500;
/// Times that a user's processes are ended before what is left is told.
pub(super) const KILLS_MAX: u32 = 3;
/// Hosts and slots that are tried for one sandbox.
pub(super) const PLACES_TRIED_MAX: usize = 8;
/// Characters of a host's words that are passed on.
pub(super) const MESSAGE_CHARS_MAX: usize = 300;

/// Listeners on loopback, one a sandbox; the one that was used longest ago is closed for a further one.
pub(super) const FORWARDS_MAX: usize = 64;
/// Connections at once through one of them; a further one waits.
pub(super) const STREAMS_MAX: usize = 32;
/// The life of one of those connections: longer than any request of the functions, which live 15 minutes.
pub(super) const STREAM_MS_MAX: u64 = 20 * 60_000;
