//! Text by the columns that a terminal gives it: what can be shown, how wide that is, and where it is cut.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// What stands for what was cut off.
pub const CUT: char = '…';

/// The beginning of a text that takes more than so many columns, on one line. What would move the cursor is left out, and
/// nothing that is seen as one character is cut in half.
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

/// The two ends of such a text, a third of it from the beginning.
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

/// A text on one line.
pub fn one_line(text: &str) -> String {
    visible(text).replace(['\n', '\t'], " ")
}

/// A text without what would move the cursor, change the terminal or turn the direction of what follows.
pub fn visible(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().filter(|c| *c == '\n' || *c == '\t' || !(c.is_control() || turns(*c))).collect()
}

/// Columns of a terminal that a text takes.
pub fn columns(text: &str) -> usize {
    text.width()
}
