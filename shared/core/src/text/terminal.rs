//! Removes terminal control sequences from the output of programs.

/// Characters of the longest terminal title or link that is recognised; if its end is not within reach, only its
/// beginning is removed.
const STRING_CHARS_MAX: usize = 2_048;

/// The text without sequences for colours, cursor movement and links, and without all other control characters except
/// line breaks and tabs. No word is lost.
#[must_use]
pub fn without_controls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let behind = &rest[c.len_utf8()..];
        rest = match c {
            '\u{1b}' => behind_escape(behind),
            '\u{9b}' => behind_parameters(behind),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => behind_string(behind),
            '\r' if behind.starts_with('\n') => behind,
            '\r' => {
                out.push('\n');
                behind
            }
            '\n' | '\t' => {
                out.push(c);
                behind
            }
            _ => {
                out.extend((!c.is_control()).then_some(c));
                behind
            }
        };
    }
    out
}

/// The text after a sequence, given the text after its escape character.
fn behind_escape(rest: &str) -> &str {
    let mut chars = rest.chars();
    match chars.next() {
        Some('[') => behind_parameters(chars.as_str()),
        Some(']' | 'P' | 'X' | '^' | '_') => behind_string(chars.as_str()),
        Some(' '..='/') => {
            let rest = rest.trim_start_matches(|c| matches!(c, ' '..='/'));
            rest.strip_prefix(|c| matches!(c, '0'..='~')).unwrap_or(rest)
        }
        Some('0'..='~') => chars.as_str(),
        _ => rest,
    }
}

/// Skips the numbers and the final letter of a sequence; without that letter, only the numbers.
fn behind_parameters(rest: &str) -> &str {
    let rest = rest.trim_start_matches(|c| matches!(c, '0'..='?'));
    let rest = rest.trim_start_matches(|c| matches!(c, ' '..='/'));
    rest.strip_prefix(|c| matches!(c, '@'..='~')).unwrap_or(rest)
}

/// Skips a title or link up to its end, if that is near and on the same line.
fn behind_string(rest: &str) -> &str {
    let line = rest.split(['\n', '\r']).next().unwrap_or_default();
    let end = line
        .char_indices()
        .take(STRING_CHARS_MAX)
        .find(|(_, c)| matches!(c, '\u{7}' | '\u{9c}' | '\u{1b}'));
    match end {
        Some((at, '\u{1b}')) => rest[at..].strip_prefix("\u{1b}\\").unwrap_or(rest),
        Some((at, c)) => &rest[at + c.len_utf8()..],
        None => rest,
    }
}
