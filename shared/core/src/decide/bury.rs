//! A dead letter: what could not be counted by the record is told all the same.

use super::{Context, Next, mark, prompt, take_down, words};
use crate::session::{EndedTurn, Outcome, Session};

/// What the burial of a message needs next.
pub(super) fn next(session: &mut Session, turn: &str, context: &Context<'_>) -> Next {
    if session.turn.is_some()
        && let Some(next) = prompt::leftover(session, context)
    {
        return next;
    }
    if mark::has_ended(session, turn) {
        return Next::Done;
    }
    if !session.seen.noticed {
        return take_down::notice(session, words::BURIED, context);
    }
    let outcome = Outcome::Failed {
        reason: words::BURIED.to_owned(),
    };
    let ended = EndedTurn {
        id: turn.to_owned(),
        outcome,
        at_ms: context.now_ms,
    };
    mark::remember(session, ended, context);
    Next::Done
}
