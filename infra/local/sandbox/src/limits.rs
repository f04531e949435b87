//! Every bound of the crate, with its unit in the name.

/// Bytes of one file that goes through the file calls, up or down, and of one bulk upload.
pub const FILE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of one frame between the provider and a sandbox's first process: a file in base64 and what is around it.
pub const FRAME_BYTES_MAX: usize = FILE_BYTES_MAX / 3 * 4 + 1024 * 1024;
/// Bytes kept of what a command prints; the rest is read and thrown away, so that the command is not blocked.
pub const OUTPUT_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Calls that one sandbox works on at once.
pub const CALLS_MAX: usize = 256;
/// Sessions (shells that stay) in one sandbox.
pub const SESSIONS_MAX: usize = 64;
/// Commands that one session remembers.
pub const SESSION_COMMANDS_MAX: usize = 1_000;
/// Wait for a command of a session that is run synchronously.
pub const SESSION_WAIT_MS_MAX: u64 = 3_600_000;
/// Time between SIGTERM and SIGKILL when a session is deleted.
pub const SESSION_GRACE_MS: u64 = 5_000;
/// Programs that one sandbox runs or remembers.
pub const COMMANDS_MAX: usize = 1_000;
/// Wait for the last words of a program that has ended.
pub const OUTPUT_DRAIN_MS_MAX: u64 = 200;
/// How often a session's command, a stop or a log that is followed is looked at.
pub const POLL_MS: u64 = 20;
/// Entries that a listing or a search answers.
pub const ENTRIES_MAX: usize = 10_000;
/// Folders below each other that a listing or a search enters.
pub const DEPTH_MAX: u32 = 32;
/// Bytes of one file that a content search reads.
pub const FIND_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Wait for the first word of a sandbox's first process.
pub const BOOT_MS_MAX: u64 = 15_000;
/// Wait for the operating system to remove processes that were sent SIGKILL.
pub const KILL_WAIT_MS_MAX: u64 = 5_000;
/// Wait for a connection to a port inside a sandbox.
pub const CONNECT_MS_MAX: u64 = 5_000;
/// Tries to find a free port for a sandbox.
pub const PORT_TRIES_MAX: usize = 200;
/// The first of the ports for sandboxes, which are below the range from which systems take ports for outgoing connections.
pub const PORT_FIRST: u16 = 20_000;
/// The last of the ports for sandboxes.
pub const PORT_LAST: u16 = 31_999;
/// Hosts for which a certificate is kept; more are made anew.
pub const CERTIFICATES_MAX: usize = 100;
/// Wait for open connections when the provider stops.
pub const DRAIN_MS_MAX: u64 = 1_000;
/// Faults that can be armed at once.
pub const FAULTS_MAX: usize = 100;

const _: () = assert!(FRAME_BYTES_MAX > OUTPUT_BYTES_MAX, "a command's output must fit in a frame");
