//! Waiting for a condition, with a bound.

use std::fmt::Display;
use std::time::{Duration, Instant};

use crate::limits::POLL_MS;

/// Repeats `look` until it succeeds, and returns its result.
///
/// # Panics
/// When it is not found within `within_ms`: the message names `what` and why the last look found nothing.
pub async fn eventually<T, E: Display>(
    within_ms: u64,
    what: &str,
    look: impl AsyncFnMut() -> Result<T, E>,
) -> T {
    match within(within_ms, look).await {
        Ok(found) => found,
        Err(last) => panic!("{what}: not within {} s; last seen: {last}", within_ms / 1_000),
    }
}

/// The same, for callers that continue after the bound.
///
/// # Errors
/// Why the last look found nothing.
pub async fn within<T, E: Display>(
    within_ms: u64,
    mut look: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T, String> {
    let until = Instant::now() + Duration::from_millis(within_ms);
    loop {
        match look().await {
            Ok(found) => return Ok(found),
            Err(why) if Instant::now() >= until => return Err(why.to_string()),
            Err(_) => tokio::time::sleep(Duration::from_millis(POLL_MS)).await,
        }
    }
}

/// The same for code that has no async runtime.
///
/// # Errors
/// Why the last look found nothing.
pub fn within_blocking<T, E: Display>(
    within_ms: u64,
    mut look: impl FnMut() -> Result<T, E>,
) -> Result<T, String> {
    let until = Instant::now() + Duration::from_millis(within_ms);
    loop {
        match look() {
            Ok(found) => return Ok(found),
            Err(why) if Instant::now() >= until => return Err(why.to_string()),
            Err(_) => std::thread::sleep(Duration::from_millis(POLL_MS)),
        }
    }
}
