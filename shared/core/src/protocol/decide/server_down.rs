//! The agent's server or its sandbox does not answer.

use super::{Context, record, words};
use crate::records::sandbox::Phase;
use crate::records::session::Session;
use crate::records::stage::Stage;

/// The server or its sandbox does not answer: start over from observing the sandbox, a bounded number of times.
pub(super) fn sandbox_down(session: &mut Session, seen: &str, unsent: bool, context: &Context<'_>) {
    let limits = context.delivery.limits;
    if let Some(turn) = &mut session.turn {
        turn.trouble = Some(seen.to_owned());
        let spent = match turn.stage {
            // This counts as a check of the server before sending: a prompt that the agent does not have by then is
            // sent, not sent again.
            Stage::Prompting(_) if unsent => false,
            Stage::Prompting(_) | Stage::Running(_) => {
                turn.stage.doubted();
                turn.stage.prompted_mut().is_some_and(|prompted| {
                    prompted.resends += 1;
                    prompted.resends > limits.turn.resends
                })
            }
            Stage::Received { .. } if session.sandbox.phase == Phase::Active => {
                turn.tries.server_restarts > limits.turn.server_restarts
            }
            Stage::Received { .. } => {
                turn.tries.server_restarts += 1;
                turn.tries.server_restarts > limits.turn.server_restarts
            }
            Stage::Ending { .. } => {
                turn.tries.attempts += 1;
                turn.tries.attempts > limits.retry.attempts
            }
        };
        if spent {
            record::fail(session, &words::server_went_away(seen));
        }
    } else {
        session.observed.agent.downs += 1;
        session.observed.trouble = Some(seen.to_owned());
    }
    session.observed.agent.healthy = false;
    // A run that goes on is told to end once more.
    session.observed.agent.abort_sent = false;
    session.observed.agent.session = false;
    session.observed.agent.seen.doubt = None;
    session.observed.agent.found = None;
    session.observed.sandbox.state = None;
    session.observed.sandbox.start_asked = false;
    // What ran beside the server may have gone too.
    session.observed.sandbox.project.is_started = false;
    if session.sandbox.phase == Phase::Active {
        record::enter(session, Phase::Resuming, "the server does not answer", context);
        record::lease_to_bring_up(session, context);
    }
}
