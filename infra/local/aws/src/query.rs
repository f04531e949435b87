//! Query strings and percent encoding.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;

/// A decoded query string.
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        Self(form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    /// First value of a name.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Each name once; its values are joined by commas.
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

/// Decodes the percent encoding of a path segment.
pub(crate) fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
