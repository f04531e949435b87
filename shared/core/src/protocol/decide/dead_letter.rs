//! Dead letters: messages that the record could not count are told all the same, and a prompt can be run again.

use super::{Context, Next, choose, finish, notice, prompt, record, words};
use crate::base::ids::TurnId;
use crate::records::message::DeadPrompt;
use crate::records::outcome::Outcome;
use crate::records::session::Session;
use crate::records::turn::EndedTurn;

/// Next step of a dead letter's notice.
pub(super) fn next(
    session: &mut Session,
    turn: &TurnId,
    dead: Option<&DeadPrompt>,
    context: &Context<'_>,
) -> Next {
    // The turn that was under way, and the one that is recorded here only to be told.
    for _ in 0..2 {
        if session.turn.is_some()
            && let Some(next) = finish::leftover(session, context)
        {
            return next;
        }
        if record::has_ended(session, turn) {
            return record::at_rest(session, Next::Done, context);
        }
        if let Some(dead) = dead {
            begin(session, turn, dead, context);
        }
    }
    if !session.observed.chat.noticed {
        return notice::once(session, words::DEAD_LETTER, context);
    }
    let outcome = Outcome::Failed { reason: words::DEAD_LETTER.to_owned() };
    let ended = EndedTurn { id: turn.to_owned(), outcome, at_ms: context.now_ms };
    record::remember(session, ended, context);
    Next::Done
}

/// The prompt ends like any failed one: on its card, with its text in the ledger.
fn begin(session: &mut Session, turn: &TurnId, dead: &DeadPrompt, context: &Context<'_>) {
    let waited = context.flags.queued.get(turn);
    let card = waited.and_then(|queued| queued.card.clone());
    let DeadPrompt { accepted_at_ms, prompt: asked } = dead;
    let selection = choose::asked_for(asked, context);
    let turn = prompt::new_turn((turn, *accepted_at_ms), asked, selection, card);
    record::begin(session, turn, context);
    record::fail(session, words::DEAD_PROMPT);
}
