//! Stray runs, which no turn follows any more: a turn that ended before its run did may have left one.
//!
//! Promised: no run goes on that no turn owns. The intent to end it is recorded with the end of its turn. It is ended
//! before that end is told; if it cannot be reached then, it is ended by sweeps, and before the agent is given anything
//! else.

use super::{Context, Next, record};
use crate::base::failure::Failure;
use crate::protocol::effect::{AgentEffect, Effect};
use crate::records::session::Session;

/// Ends it; tried once per delivery if that fails.
pub(super) fn end(session: &Session) -> Option<Next> {
    let run = session.stray.clone().filter(|_| !session.observed.agent.run_left)?;
    Some(Next::Do(Effect::Agent(AgentEffect::EndRun(run))))
}

/// It could not be ended. `true` if nothing else has to be done; `false` if the failure table applies, as for a turn
/// that waits for the end of the run.
pub(super) fn not_ended(session: &mut Session, failure: &Failure, context: &Context<'_>) -> bool {
    match failure {
        Failure::SessionMissing => {
            session.stray = None;
            return true;
        }
        // Only a claim: the run goes with its sandbox, once that is believed to be gone.
        Failure::SandboxGone => return false,
        _ => {}
    }
    let waits = session.turn.as_mut().filter(|turn| turn.stage.is_received());
    let Some(turn) = waits else {
        session.observed.agent.run_left = true;
        // A thread may try this often; that must not delay the sandbox's own sweep.
        record::arm_thread(session, context);
        return true;
    };
    if matches!(failure, Failure::SandboxDown { .. }) {
        turn.tries.server_restarts += 1;
    }
    false
}
