//! The clock of the idle timers. A test can advance it; it never goes back.
//!
//! Transitions take real time and do not follow it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// System time plus the sum of [`Clock::advance`].
#[derive(Default)]
pub struct Clock {
    offset_ms: AtomicI64,
}

impl Clock {
    /// Now for the idle timers, in milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        system_ms().saturating_add(self.offset_ms.load(Ordering::Relaxed))
    }

    /// Advances the clock permanently.
    pub fn advance(&self, ms: u64) {
        let step = i64::try_from(ms).unwrap_or(i64::MAX / 4).min(i64::MAX / 4);
        self.offset_ms.fetch_add(step, Ordering::Relaxed);
    }
}

/// System time in milliseconds since 1970.
pub fn system_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// RFC 3339 with milliseconds and `Z`.
pub fn iso(ms: i64) -> String {
    chrono::DateTime::from_timestamp_millis(ms)
        .unwrap_or_default()
        .to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}
