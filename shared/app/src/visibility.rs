//! How long a worker's message stays invisible to others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bobbin_core::base::ids::Ms;

/// Until when the message in hand stays invisible, as of its last heartbeat.
#[derive(Debug, Clone, Default)]
pub struct Visibility(Arc<AtomicU64>);

impl Visibility {
    /// Records that the message is invisible until then.
    pub fn set(&self, until_ms: Ms) {
        self.0.store(until_ms, Ordering::Relaxed);
    }

    /// Until when the message in hand is invisible to others.
    #[must_use]
    pub fn get(&self) -> Ms {
        self.0.load(Ordering::Relaxed)
    }
}
