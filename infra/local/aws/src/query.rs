//! Query strings and percent encoding.

use std::collections::BTreeMap;

/// A decoded query string.
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs
                .map(|pair| {
                    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                    (decoded(name), decoded(value))
                })
                .collect(),
        )
    }

    /// The first value of a name.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Every name once; several values are joined by commas.
    pub(crate) fn joined(self) -> BTreeMap<String, String> {
        let mut joined: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in self.0 {
            joined
                .entry(name)
                .and_modify(|earlier| {
                    earlier.push(',');
                    earlier.push_str(&value);
                })
                .or_insert(value);
        }
        joined
    }
}

/// Undoes percent encoding, and `+` for a space.
pub(crate) fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while let Some(byte) = bytes.get(index) {
        let escaped = bytes
            .get(index + 1..index + 3)
            .filter(|_| *byte == b'%')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        index += if escaped.is_some() { 3 } else { 1 };
        plain.push(match (escaped, byte) {
            (Some(escaped), _) => escaped,
            (None, b'+') => b' ',
            (None, byte) => *byte,
        });
    }
    String::from_utf8_lossy(&plain).into_owned()
}
