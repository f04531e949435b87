//! Limits of this crate; each name contains its unit.

/// Breakpoints at once.
pub const BREAKPOINTS_MAX: usize = 256;
/// Calls that one breakpoint records; later ones are not recorded.
pub const CALLS_MAX: usize = 2_000;
/// Longest hold of a call that is not released.
pub const HOLD_MS_MAX: u64 = 120_000;
/// Longest request held before processing (the longest that a local service reads).
pub const REQUEST_BYTES_MAX: usize = 16 * 1024 * 1024;
/// A path segment with at least this many bytes and a digit is an id.
pub const ID_BYTES_MIN: usize = 4;
