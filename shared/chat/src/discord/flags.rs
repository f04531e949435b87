//! Flags of a message, as Discord numbers them.

/// Only the person who asked sees it.
pub(super) const EPHEMERAL: u64 = 64;
/// The message consists of components.
pub(super) const COMPONENTS_V2: u64 = 32_768;
/// Discord shows no previews of the links in the message.
pub(super) const SUPPRESS_EMBEDS: u64 = 4;
