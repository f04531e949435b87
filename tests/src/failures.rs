//! Repeats the failures at the end, because often only the end of a long output is read.

use std::sync::{Mutex, PoisonError};

use crate::limits::{FAILURE_CHARS_MAX, FAILURES_MAX};

static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps the beginning of a failure for the end; only the first failures are kept.
pub fn note(words: &str) {
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if told.len() < FAILURES_MAX {
        told.push(words.chars().take(FAILURE_CHARS_MAX).collect());
    }
}

/// Everything that was kept, in the order in which it happened.
#[must_use]
pub fn told() -> Vec<String> {
    TOLD.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
