//! Runs that no turn follows any more: what a turn that ended otherwise than by its run's end may have left at work.
//!
//! Promised: no run goes on that no turn owns. The intent to end it goes on record with the end of its turn; it is ended
//! before that is told, and where it cannot be reached then, by sweeps, and before the agent is given anything else.

use super::{Context, Next, record};
use crate::base::failure::Failure;
use crate::protocol::effect::{AgentEffect, Effect};
use crate::records::session::Session;

/// Ends it, once in a delivery as long as that does not work.
pub(super) fn end(session: &Session) -> Option<Next> {
    let run = session.stray.clone().filter(|_| !session.observed.agent.run_left)?;
    Some(Next::Do(Effect::Agent(AgentEffect::EndRun(run))))
}

/// It could not be ended. Whether that was all: a turn that waits for it goes by the table of failures instead.
pub(super) fn not_ended(session: &mut Session, failure: &Failure, context: &Context<'_>) -> bool {
    match failure {
        Failure::SessionMissing => {
            session.stray = None;
            return true;
        }
        // Only a claim: it goes with its sandbox, once that is believed to be gone.
        Failure::SandboxGone => return false,
        _ => {}
    }
    let waits = session.turn.as_mut().filter(|turn| turn.stage.is_received());
    let Some(turn) = waits else {
        session.observed.agent.run_left = true;
        record::arm(session, context);
        return true;
    };
    if matches!(failure, Failure::SandboxDown { .. }) {
        turn.tries.server_restarts += 1;
    }
    false
}
