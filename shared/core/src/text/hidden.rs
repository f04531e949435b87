//! Invisible characters.

/// Writes out characters that hide or reorder others, and control characters: what a person approves must be what the
/// person reads. Joiners and variation selectors stay if they are needed for a letter or an emoji.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = None;
    for c in text.chars() {
        let control = c.is_control() && !matches!(c, '\n' | '\t');
        if control || (is_hidden(c) && !belongs(c, before)) {
            out.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
        } else {
            out.push(c);
        }
        before = Some(c);
    }
    out
}

/// Whether the character is invisible by itself.
#[must_use]
pub const fn is_hidden(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether it shapes the character before it and hides nothing.
fn belongs(c: char, before: Option<char>) -> bool {
    let pictures = |c: char| matches!(c, '\u{a9}' | '\u{ae}' | '\u{203c}'..='\u{27ff}' | '\u{2900}'..='\u{3299}' | '\u{1f000}'..='\u{1faff}');
    before.is_some_and(|before| match c {
        // As text or as a picture.
        '\u{fe0e}' | '\u{fe0f}' => pictures(before) && !is_hidden(before),
        // Joins letters in Indian scripts, and pictures into one; U+FE0F may come before it.
        '\u{200d}' => !before.is_ascii() && (before == '\u{fe0f}' || !is_hidden(before)),
        _ => false,
    })
}
