//! The clock of the functions.

use std::time::{SystemTime, UNIX_EPOCH};

use bobbin_core::base::ids::Ms;

/// Unix milliseconds of the machine's clock.
#[must_use]
pub fn now_ms() -> Ms {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
