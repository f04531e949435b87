//! Text measured in terminal columns: what is printable, how wide it is, where to cut it.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Marks a cut.
pub const CUT: char = '…';

/// Cuts a text to `columns_max` columns on one line. Control characters are removed, and no grapheme is split.
pub fn cut(text: &str, columns_max: usize) -> String {
    let text = one_line(text);
    if columns(&text) <= columns_max {
        return text;
    }
    let room = columns_max.saturating_sub(1);
    let mut kept = String::new();
    for character in text.graphemes(true) {
        if columns(&kept) + columns(character) > room {
            break;
        }
        kept.push_str(character);
    }
    kept.push(CUT);
    kept
}

/// Cuts out the middle; a third of the width is kept for the beginning.
pub fn cut_middle(text: &str, columns_max: usize) -> String {
    let text = one_line(text);
    let characters = text.chars().count();
    if columns(&text) <= columns_max {
        return text;
    }
    let room = columns_max.saturating_sub(1);
    let head: String = text.chars().take(room / 3).collect();
    let end = text.chars().skip(characters - (room - room / 3));
    head + &CUT.to_string() + &end.collect::<String>()
}

/// The text on one line.
pub fn one_line(text: &str) -> String {
    visible(text).replace(['\n', '\t'], " ")
}

/// The text without control characters and direction marks.
pub fn visible(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().filter(|c| *c == '\n' || *c == '\t' || !(c.is_control() || turns(*c))).collect()
}

/// Width of a text in columns.
pub fn columns(text: &str) -> usize {
    text.width()
}
