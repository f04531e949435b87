//! What a converter remembers by the agent's ids: the latest so many, the others are forgotten.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Entries that are remembered.
const ENTRIES_MAX: usize = 512;
/// Bytes of an id; what has a longer one is not remembered.
const KEY_BYTES_MAX: usize = 200;

/// Characters of a text that is remembered; the rest of a longer one is forgotten.
const TEXT_CHARS_MAX: usize = 1_000;

/// A text as it is remembered.
pub(crate) fn remembered(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).collect()
}

/// Values by id, the latest last.
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
