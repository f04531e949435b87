//! Plain text: its length, shortening, and formatted numbers.

use std::borrow::Borrow;

use unicode_segmentation::UnicodeSegmentation as _;

/// The length in UTF-16 units.
#[must_use]
pub fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// At most `chars` characters (and UTF-16 units): cut at the end of a word if there is one in the last third, with `…`
/// at the end.
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
    let word = text[..end].rfind(char::is_whitespace).filter(|at| *at >= end - end / 3);
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

/// What is shown of a list, with commas; `more` is how many others there are.
#[must_use]
pub fn and_more<S: Borrow<str>>(shown: &[S], more: usize) -> String {
    let shown = shown.join(", ");
    match more {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The text in units that a reader sees as one character each (UAX #29), with their byte indexes. A unit longer than
/// `units_max` is split into its characters.
pub fn clusters(text: &str, units_max: usize) -> impl Iterator<Item = (usize, &str)> {
    text.grapheme_indices(true).flat_map(move |(start, cluster)| {
        let fits = units(cluster) <= units_max;
        let whole = fits.then_some((start, cluster));
        let chars = cluster.char_indices().filter(move |_| !fits);
        let chars = chars.map(move |(at, c)| (start + at, &cluster[at..at + c.len_utf8()]));
        whole.into_iter().chain(chars)
    })
}

/// The longest prefix with at most this many units that cuts no cluster that fits, as a byte index.
pub(super) fn prefix_within(text: &str, units_max: usize) -> usize {
    let mut used = 0;
    let beyond = clusters(text, units_max).find(|(_, one)| {
        used += units(one);
        used > units_max
    });
    beyond.map_or(text.len(), |(at, _)| at)
}

/// A number with thousands separators: `12,345`.
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

/// Millionths of a US dollar, for people: `$1,234.50`; four digits below a cent, because many turns cost less.
#[must_use]
pub fn dollars(micro_usd: u64) -> String {
    match micro_usd {
        1..9_950 => format!("$0.{:04}", (micro_usd + 50) / 100),
        _ => {
            let cents = micro_usd.saturating_add(5_000) / 10_000;
            format!("${}.{:02}", thousands(cents / 100), cents % 100)
        }
    }
}

/// A duration in a person's words.
#[must_use]
pub fn span(ms: u64) -> String {
    let s = ms / 1000;
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{} min {} s", s / 60, s % 60),
        _ => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}
