//! Text: answers cut at the platforms' limits, and made fit for what a platform can show.
//!
//! Promised: a cut never lies inside a code point, and lies inside a code block, table, link or word only where a
//! whole one does not fit; a cut code block is closed and opened again; nothing but white space is lost. Lengths are
//! UTF-16 units, the strictest reading of the platforms' "characters". Deliberately absent: HTML, and any change of
//! words.

mod gist;
mod hidden;
mod markdown;
mod plain;
mod split;
mod tables;

pub use gist::gist;
pub use hidden::{is_hidden, visible};
pub use plain::{one_line, shorten, span, thousands, units};
pub use split::{PART_UNITS_MIN, split};
pub use tables::discord_markdown;

#[cfg(test)]
mod tests;
