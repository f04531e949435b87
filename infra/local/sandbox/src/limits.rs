//! Limits of this crate; each name contains its unit.

/// Bytes of one file in a file call, up or down, and of one bulk upload.
pub const FILE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of one frame between the provider and a sandbox's first process: a file in base64 plus its envelope.
pub const FRAME_BYTES_MAX: usize = FILE_BYTES_MAX / 3 * 4 + 1024 * 1024;
/// Bytes kept of a command's output; the rest is discarded, so that the command does not block.
pub const OUTPUT_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Concurrent calls of one sandbox.
pub const CALLS_MAX: usize = 256;
/// Sessions (persistent shells) of one sandbox.
pub const SESSIONS_MAX: usize = 64;
/// Commands remembered per session.
pub const SESSION_COMMANDS_MAX: usize = 1_000;
/// Longest wait for a synchronous command of a session.
pub const SESSION_WAIT_MS_MAX: u64 = 3_600_000;
/// Time between SIGTERM and SIGKILL when a session is deleted.
pub const SESSION_GRACE_MS: u64 = 5_000;
/// Programs of one sandbox, running or remembered.
pub const COMMANDS_MAX: usize = 1_000;
/// Wait for the last output of a program that has exited.
pub const OUTPUT_DRAIN_MS_MAX: u64 = 200;
/// Poll interval for a session's command, a stop or a followed log.
pub const POLL_MS: u64 = 20;
/// Entries returned by a listing or a search.
pub const ENTRIES_MAX: usize = 10_000;
/// Depth of a listing or a search.
pub const DEPTH_MAX: u32 = 32;
/// Bytes of one file searched by content.
pub const FIND_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Wait for the greeting of a sandbox's first process.
pub const BOOT_MS_MAX: u64 = 15_000;
/// Wait for processes to disappear after SIGKILL.
pub const KILL_WAIT_MS_MAX: u64 = 5_000;
/// Wait for a connection to a port inside a sandbox.
pub const CONNECT_MS_MAX: u64 = 5_000;
/// Attempts to find a free port for a sandbox.
pub const PORT_TRIES_MAX: usize = 200;
/// First port for sandboxes; below the range that systems use for outgoing connections.
pub const PORT_FIRST: u16 = 20_000;
/// Last port for sandboxes.
pub const PORT_LAST: u16 = 31_999;
/// Hosts with a cached certificate; further ones are generated anew.
pub const CERTIFICATES_MAX: usize = 100;
/// Wait for open connections when the provider stops.
pub const DRAIN_MS_MAX: u64 = 1_000;
/// Faults armed at once.
pub const FAULTS_MAX: usize = 100;

const _: () = assert!(FRAME_BYTES_MAX > OUTPUT_BYTES_MAX, "a command's output must fit in a frame");
