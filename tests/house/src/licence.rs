//! Licences under which a crate may come in.

use std::iter::Peekable;

/// What asks for no more than its notice.
const ALLOWED: [&str; 11] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Zlib",
];

/// Whether an SPDX expression can be met by the licences that are allowed. A slash is an OR, as older crates write it.
#[must_use]
pub fn is_allowed(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    either(&mut words) && words.next().is_none()
}

fn either<'a, I: Iterator<Item = &'a str>>(words: &mut Peekable<I>) -> bool {
    let mut met = all(words);
    while words.next_if_eq(&"OR").is_some() {
        met |= all(words);
    }
    met
}

fn all<'a, I: Iterator<Item = &'a str>>(words: &mut Peekable<I>) -> bool {
    let mut met = one(words);
    while words.next_if_eq(&"AND").is_some() {
        met &= one(words);
    }
    met
}

fn one<'a, I: Iterator<Item = &'a str>>(words: &mut Peekable<I>) -> bool {
    let Some(word) = words.next() else {
        return false;
    };
    if word == "(" {
        return either(words) && words.next_if_eq(&")").is_some();
    }
    if words.next_if_eq(&"WITH").is_some() {
        let exception = words.next().unwrap_or_default();
        return ALLOWED.contains(&format!("{word} WITH {exception}").as_str());
    }
    ALLOWED.contains(&word)
}
