//! The wall clock of sessions and the life of snapshots, by the clock that a test can move.

use std::time::Duration;

use crate::life::{self, End};
use crate::limits::TIMER_TICK_MS;
use crate::record::Status;
use crate::state::SharedEngine;

/// Looks at every session, again and again, until the provider stops.
pub(crate) async fn run(engine: SharedEngine) {
    let mut tick = tokio::time::interval(Duration::from_millis(TIMER_TICK_MS));
    loop {
        tokio::select! {
            _ = tick.tick() => sweep(&engine),
            () = engine.stopping.cancelled() => return,
        }
    }
}

/// Ends the sessions whose time is over, whatever they are doing.
pub(crate) fn sweep(engine: &SharedEngine) {
    let now = engine.clock.now_ms();
    let due: Vec<String> = {
        let inner = engine.lock();
        let sessions = inner
            .sandboxes
            .values()
            .filter_map(|one| one.record.session());
        sessions
            .filter(|one| one.status == Status::Running && now >= one.ends_at())
            .map(|one| one.id.clone())
            .collect()
    };
    for session in due {
        tracing::info!(session, "a session's time is over");
        // One that somebody else has just ended is no matter.
        let _ = life::end(engine, &session, End::Stop);
    }
}
