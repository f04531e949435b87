//! What programs write for a terminal.

/// Longest title or link of a terminal that is taken for one; without its end in reach only its beginning goes.
const STRING_CHARS_MAX: usize = 2_048;

/// A text without the sequences by which a terminal is coloured, moved and linked, and without every other control
/// character but line breaks and tabs. No word is lost.
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

/// What follows a sequence, given what follows its escape character.
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

/// Numbers and the letter that they are for; where none comes, only the numbers go.
fn behind_parameters(rest: &str) -> &str {
    let rest = rest.trim_start_matches(|c| matches!(c, '0'..='?'));
    let rest = rest.trim_start_matches(|c| matches!(c, ' '..='/'));
    rest.strip_prefix(|c| matches!(c, '@'..='~')).unwrap_or(rest)
}

/// A title or a link up to its end, if that is on the same line and near.
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
