//! Text: answers cut at the platforms' limits, and made fit for what a platform can show.
//!
//! Promised: a cut never lies inside of what is seen as one character, and lies inside a code block, table, link or word
//! only where a whole one does not fit; a cut code block is closed and opened again, a cut table has its header again;
//! nothing but white space is lost. Lengths are UTF-16 units, the strictest reading of the platforms' "characters".
//! What a chat does not read as CommonMark is written in its own dialect before it is cut. Deliberately absent: HTML, and
//! any change of words.

mod dialect;
mod gist;
mod hidden;
mod markdown;
mod plain;
mod split;
mod tables;
mod terminal;

pub use dialect::{Dialect, apart_fences, code, fit, parts};
pub use gist::gist;
pub use hidden::{is_hidden, visible};
pub use plain::{clusters, one_line, shorten, span, thousands, units};
pub use split::{PART_UNITS_MIN, split};
pub use terminal::without_controls;

#[cfg(test)]
mod tests;
