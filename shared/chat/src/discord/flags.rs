//! Flags of a message, as Discord numbers them.

/// Only the person who asked sees it.
pub(super) const EPHEMERAL: u64 = 64;
/// The message is made of components.
pub(super) const COMPONENTS_V2: u64 = 32_768;
/// Message flag: Discord shows no previews of the links in it.
pub(super) const SUPPRESS_EMBEDS: u64 = 4;
