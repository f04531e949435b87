//! Bits of a message's `flags`.

pub const SUPPRESS_EMBEDS: u64 = 4;
pub const HAS_THREAD: u64 = 32;
pub const EPHEMERAL: u64 = 64;
pub const LOADING: u64 = 128;
pub const SILENT: u64 = 4096;
pub const COMPONENTS_V2: u64 = 32_768;
/// Flag of a message that forwards another one.
pub const HAS_SNAPSHOT: u64 = 1 << 14;
