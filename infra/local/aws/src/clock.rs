//! The clock of queues, schedules and the index lag.
//!
//! The system's time plus an offset that a test may advance. Function processes live in real time: neither their
//! `Timeout` nor the system time that they read moves with it. Their idle time does.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

/// A clock that can be advanced at run time; clones share the offset.
#[derive(Clone, Debug)]
pub struct Clock(Arc<ClockState>);

#[derive(Debug)]
struct ClockState {
    offset_ms: AtomicI64,
    moved: watch::Sender<()>,
}

impl Clock {
    /// The system's time, until [`Clock::advance_ms`] is called.
    pub fn system() -> Self {
        Self(Arc::new(ClockState { offset_ms: AtomicI64::new(0), moved: watch::Sender::new(()) }))
    }

    /// Milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> i64 {
        system_ms() + self.offset_ms()
    }

    /// How far this clock is ahead of the system's, in milliseconds.
    pub fn offset_ms(&self) -> i64 {
        self.0.offset_ms.load(Ordering::SeqCst)
    }

    /// Advances the clock and wakes everything that waits for a time.
    pub fn advance_ms(&self, by_ms: u32) {
        self.0.offset_ms.fetch_add(i64::from(by_ms), Ordering::SeqCst);
        self.0.moved.send_replace(());
    }

    /// Returns once [`Clock::now_ms`] is at least `at_ms`.
    pub async fn sleep_until_ms(&self, at_ms: i64) {
        let mut moved = self.0.moved.subscribe();
        loop {
            let left_ms = at_ms - self.now_ms();
            let Ok(left_ms) = u64::try_from(left_ms) else {
                return;
            };
            if left_ms == 0 {
                return;
            }
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(left_ms)) => {}
                _ = moved.changed() => {}
            }
        }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

/// The system's time in milliseconds since the Unix epoch, without the offset.
pub(crate) fn system_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
