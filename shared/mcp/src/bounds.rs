//! All bounds of the tools, with the unit in the name.

/// Most bytes of a tool's text: an agent that gets more cuts it itself, and worse.
pub(crate) const TEXT_BYTES_MAX: usize = 48 * 1024;
/// Most lines of a tool's text.
pub(crate) const TEXT_LINES_MAX: usize = 2_000;
/// Most bytes of a command's output in it; the rest is for the description.
pub(crate) const OUTPUT_BYTES_MAX: usize = 46 * 1024;
/// Most bytes of a command: it is passed as an environment variable, which Linux limits to 128 KB.
pub(crate) const COMMAND_BYTES_MAX: usize = 64 * 1024;
/// Most variables that a call may set.
pub(crate) const VARIABLES_MAX: usize = 50;
/// Most bytes of their values.
pub(crate) const VARIABLE_BYTES_MAX: usize = 8 * 1024;
/// Most bytes of a path (Linux: `PATH_MAX`).
pub(crate) const PATH_BYTES_MAX: usize = 4_096;
/// Most bytes of a file that is written as text.
pub(crate) const WRITE_BYTES_MAX: usize = 1024 * 1024;
/// Most bytes of a file that is written as base64: a request to a function URL is limited to 6 MB.
pub(crate) const UPLOAD_BYTES_MAX: usize = 3 * 1024 * 1024;
/// Most bytes of a shown image: the answer, in base64, is limited to 6 MB.
pub(crate) const IMAGE_BYTES_MAX: usize = 3 * 1024 * 1024;
/// Most entries of a file list.
pub(crate) const ENTRIES_MAX: usize = 1_000;
/// Most folder levels of a file list.
pub(crate) const DEPTH_MAX: u32 = 10;
/// Most lines of a search result.
pub(crate) const MATCHES_MAX: usize = 500;
/// Default time that an answer waits for a command: less than the 60 s after which clients give up by default.
pub(crate) const WAIT_MS: u64 = 45_000;
/// Longest time that an answer waits for one, below the function's own timeout.
pub(crate) const WAIT_MS_MAX: u64 = 600_000;
/// Longest wait of one poll inside the sandbox, so that no connection is idle for long.
pub(crate) const LOOK_MS_MAX: u64 = 20_000;
/// Polls per second, in the script.
pub(crate) const LOOKS_A_SECOND: u64 = 5;
/// Bound of a script in the sandbox, besides the time that it waits.
pub(crate) const SCRIPT_MS_MAX: u64 = 30_000;
/// Default time after which a command is killed.
pub(crate) const COMMAND_MS: u64 = 30 * 60_000;
/// Longest time that a command may take.
pub(crate) const COMMAND_MS_MAX: u64 = 120 * 60_000;
/// Calls whose outcome the sandbox keeps.
pub(crate) const CALLS_KEPT: usize = 200;
/// Longest session id from a client, in bytes.
pub(crate) const SESSION_BYTES_MAX: usize = 128;
