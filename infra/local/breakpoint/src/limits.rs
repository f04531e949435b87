//! Every bound of this crate, with its unit in its name.

/// Breakpoints that may be set at once.
pub const BREAKPOINTS_MAX: usize = 256;
/// Calls that one breakpoint writes down; later ones pass unwritten.
pub const CALLS_MAX: usize = 2_000;
/// A held call that nobody releases goes on after this long.
pub const HOLD_MS_MAX: u64 = 120_000;
/// Longest request that is held before it is processed (the longest that a local service reads).
pub const REQUEST_BYTES_MAX: usize = 16 * 1024 * 1024;
/// A part of a path of at least this many bytes with a digit in it is an id.
pub const ID_BYTES_MIN: usize = 4;
