//! How long each test took, so that a slow one is noticed: the longest are printed after the last test.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many are printed, unless `BOBBIN_DURATIONS` says another number.
const SHOWN: usize = 10;

static TAKEN: Mutex<Vec<(String, Duration)>> = Mutex::new(Vec::new());

/// Runs a test, also one that panics, and keeps how long it took.
pub fn measured<T>(name: &str, test: impl FnOnce() -> T) -> T {
    let _measured = Measured { name: name.to_owned(), began: Instant::now() };
    test()
}

struct Measured {
    name: String,
    began: Instant,
}

impl Drop for Measured {
    fn drop(&mut self) {
        let took = (std::mem::take(&mut self.name), self.began.elapsed());
        TAKEN.lock().unwrap_or_else(PoisonError::into_inner).push(took);
    }
}

/// The longest, as lines of seconds and name.
#[must_use]
pub fn longest() -> String {
    let shown = std::env::var("BOBBIN_DURATIONS").ok();
    let shown = shown.and_then(|number| number.parse().ok()).unwrap_or(SHOWN);
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    taken.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
    let lines = taken
        .iter()
        .take(shown)
        .map(|(name, took)| format!("{:8.2} s  {name}\n", took.as_secs_f64()));
    lines.collect()
}
