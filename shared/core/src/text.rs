//! Text: answers split at the platforms' limits, and converted to what a platform can show.
//!
//! Promised: a cut is never inside what is seen as one character, and inside a code block, table, link or word only if
//! a whole one does not fit. A cut code block is closed and opened again, and a cut table repeats its header. Nothing
//! but white space is lost. Lengths are UTF-16 units, the strictest reading of the platforms' "characters". For a chat
//! that does not read CommonMark, text is converted to its dialect before it is cut. Deliberately absent: any change of
//! wording.

mod dialect;
mod gist;
mod hidden;
mod html;
mod markdown;
mod plain;
mod split;
mod tables;
mod terminal;

pub use dialect::{Dialect, apart_fences, code, fit, parts};
pub use gist::gist;
pub use hidden::{is_hidden, visible};
pub use html::html_text;
pub use plain::{and_more, clusters, dollars, one_line, shorten, span, thousands, units};
pub use split::{PART_UNITS_MIN, split};
pub use terminal::without_controls;

#[cfg(test)]
mod tests;
