//! Plain text: how long it is, where it is shortened, and numbers in it.

/// The length in UTF-16 units.
#[must_use]
pub fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// At most `chars` characters (and UTF-16 units): cut at a word where one ends in the last third, with `…` at the end.
#[must_use]
pub fn shorten(text: &str, chars: usize) -> String {
    let text = text.trim();
    if units(text) <= chars {
        return text.to_owned();
    }
    let Some(room) = chars.checked_sub(1) else {
        return String::new();
    };
    let end = prefix_within(text, room);
    let word = text[..end]
        .rfind(char::is_whitespace)
        .filter(|at| *at >= end - end / 3);
    format!("{}…", text[..word.unwrap_or(end)].trim_end())
}

/// One line of text: every run of white space and control characters becomes one space.
#[must_use]
pub fn one_line(text: &str) -> String {
    text.split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Characters that change the one before them.
pub(super) fn joins(c: char) -> bool {
    matches!(c, '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{0300}'..='\u{036f}' | '\u{1f3fb}'..='\u{1f3ff}' | '\u{20d0}'..='\u{20ff}')
}

/// The longest prefix with at most this many units, as a byte index.
pub(super) fn prefix_within(text: &str, units_max: usize) -> usize {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.len_utf16();
        if used > units_max {
            return at;
        }
    }
    text.len()
}

/// A number with its thousands apart: `12,345`.
#[must_use]
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A span of time as a person says it.
#[must_use]
pub fn span(ms: u64) -> String {
    let s = ms / 1000;
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{} min {} s", s / 60, s % 60),
        _ => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}
