//! A stranger's words inside a sentence of ours.

use bobbin_core::text::{one_line, shorten, visible};

/// Characters of a quoted text.
const QUOTED_MAX: usize = 60;

/// A stranger's text as code: one line, nothing hidden, bounded.
pub(crate) fn code(text: &str) -> String {
    // Cut first, because only the beginning is shown.
    let start: String = text.chars().take(4 * QUOTED_MAX).collect();
    format!("`{}`", shorten(&visible(&one_line(&start)), QUOTED_MAX).replace('`', "'"))
}

/// Texts as a list for reading: `a, b and c`.
pub(crate) fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| code(name)).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} and {last}", before.join(", ")),
        None => String::new(),
    }
}

/// The word that has to be changed least to become this one.
pub(crate) fn nearest<'a>(word: &str, words: &[&'a str]) -> &'a str {
    words.iter().min_by_key(|known| distance(word, known)).copied().unwrap_or_default()
}

/// How many letters have to be put in, left out or replaced.
fn distance(from: &str, to: &str) -> usize {
    // A longer word is near to none of ours.
    let from: Vec<char> = from.chars().take(QUOTED_MAX).collect();
    let mut row: Vec<usize> = (0..=from.len()).collect();
    for (index, letter) in to.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for at in 0..from.len() {
            let replaced = diagonal + usize::from(from[at] != letter);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[from.len()]
}
