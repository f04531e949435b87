//! Every bound of the tools, with its unit in its name.

/// Bytes of a text that a tool answers with: an agent that gets more cuts it itself, and worse.
pub(crate) const TEXT_BYTES_MAX: usize = 48 * 1024;
/// Lines of one.
pub(crate) const TEXT_LINES_MAX: usize = 2_000;
/// Bytes of a command's output in it; the rest is for what is said of it.
pub(crate) const OUTPUT_BYTES_MAX: usize = 46 * 1024;
/// Bytes of a command: it travels as a variable of a process's environment, of which Linux takes 128 KB each.
pub(crate) const COMMAND_BYTES_MAX: usize = 64 * 1024;
/// Variables that a call may set.
pub(crate) const VARIABLES_MAX: usize = 50;
/// Bytes of their values.
pub(crate) const VARIABLE_BYTES_MAX: usize = 8 * 1024;
/// Bytes of a path (Linux: `PATH_MAX`).
pub(crate) const PATH_BYTES_MAX: usize = 4_096;
/// Bytes of a file that is written as text.
pub(crate) const WRITE_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of a file that is written as base64: a request of a function's address holds 6 MB.
pub(crate) const UPLOAD_BYTES_MAX: usize = 3 * 1024 * 1024;
/// Bytes of an image that is shown: the answer holds 6 MB, in base64.
pub(crate) const IMAGE_BYTES_MAX: usize = 3 * 1024 * 1024;
/// Entries of a list of files.
pub(crate) const ENTRIES_MAX: usize = 1_000;
/// Levels of folders that a list goes down.
pub(crate) const DEPTH_MAX: u32 = 10;
/// Lines that a search answers with.
pub(crate) const MATCHES_MAX: usize = 500;
/// How long an answer waits for a command unless the call says otherwise: less than the 60 s after which clients give a
/// call up by default.
pub(crate) const WAIT_MS: u64 = 45_000;
/// The longest that an answer waits for one, below the function's own time.
pub(crate) const WAIT_MS_MAX: u64 = 600_000;
/// One look at a command inside the sandbox waits no longer than this, so that no connection is idle for long.
pub(crate) const LOOK_MS_MAX: u64 = 20_000;
/// Looks within a second, in the script.
pub(crate) const LOOKS_A_SECOND: u64 = 5;
/// A script in the sandbox takes no longer than this besides what it waits for.
pub(crate) const SCRIPT_MS_MAX: u64 = 30_000;
/// A command is ended after this unless the call says otherwise.
pub(crate) const COMMAND_MS: u64 = 30 * 60_000;
/// The longest that a command may take.
pub(crate) const COMMAND_MS_MAX: u64 = 120 * 60_000;
/// Calls whose outcome the sandbox keeps.
pub(crate) const CALLS_KEPT: usize = 200;
/// Bytes of a session's id that a client may send.
pub(crate) const SESSION_BYTES_MAX: usize = 128;
