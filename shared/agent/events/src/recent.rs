//! A converter's memory by the agent's ids: a bounded number of the latest entries.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Most entries.
const ENTRIES_MAX: usize = 512;
/// Longest id in bytes; an entry with a longer one is not remembered.
const KEY_BYTES_MAX: usize = 200;

/// Longest remembered text in characters; the rest is dropped.
const TEXT_CHARS_MAX: usize = 1_000;

/// A text cut to the remembered length.
pub(crate) fn remembered(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).collect()
}

/// Values by id, latest last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Recent<V>(VecDeque<(String, V)>);

impl<V> Default for Recent<V> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<V> Recent<V> {
    fn position(&self, key: &str) -> Option<usize> {
        self.0.iter().rposition(|(one, _)| one == key)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&V> {
        self.position(key).map(|at| &self.0[at].1)
    }

    pub(crate) fn set(&mut self, key: &str, value: V) {
        self.remove(key);
        if key.len() > KEY_BYTES_MAX {
            return;
        }
        if self.0.len() == ENTRIES_MAX {
            self.0.pop_front();
        }
        self.0.push_back((key.to_owned(), value));
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<V> {
        let at = self.position(key)?;
        self.0.remove(at).map(|(_, value)| value)
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
