//! Session timeouts and snapshot expiry, by the clock that a test can advance.

use bobbin_local_sandbox::serve::again_and_again;

use crate::life::{self, SessionEnd};
use crate::limits::TIMER_TICK_MS;
use crate::record::SessionStatus;
use crate::state::SharedEngine;

/// Checks every session at an interval until the provider stops.
pub(crate) async fn run(engine: SharedEngine) {
    let stopping = engine.stopping.clone();
    again_and_again(TIMER_TICK_MS, stopping, || sweep(&engine)).await;
}

/// Ends sessions whose time is over, whatever they are doing.
pub(crate) fn sweep(engine: &SharedEngine) {
    let now = engine.clock.now_ms();
    let due: Vec<String> = {
        let inner = engine.lock();
        let sessions = inner.sandboxes.values().filter_map(|one| one.record.session());
        sessions
            .filter(|one| one.status == SessionStatus::Running && now >= one.ends_at())
            .map(|one| one.id.clone())
            .collect()
    };
    for session in due {
        tracing::info!(session, "a session's time is over");
        // It may just have been ended otherwise.
        let _ = life::end(engine, &session, SessionEnd::Stop);
    }
}
