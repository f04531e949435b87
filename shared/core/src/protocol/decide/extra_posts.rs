//! Posts beside a turn's own card and answer: the cards of prompts that were sent into its run, its previous card, and
//! the line that mentions the requesters if no answer does.
//!
//! Each is retried until it is posted. None of them can fail a turn: if the chat refuses one for good, or too often
//! while the end is told, it is given up.

use super::{Context, Next, outage, record, wait, words};
use crate::base::failure::Failure;
use crate::base::ids::PostRef;
use crate::base::names::PostKind;
use crate::protocol::effect::{ChatEffect, Effect};
use crate::records::card::{Card, CardState, Post, card_kind};
use crate::records::observations::Aside;
use crate::records::outcome::Outcome;
use crate::records::session::Session;
use crate::records::turn::{Steered, Turn};
use crate::records::usage::Usage;

/// The next such post while the run goes on.
pub(super) fn under_way(session: &Session, context: &Context<'_>) -> Option<Next> {
    let turn = session.turn.as_ref()?;
    let untold = |one: &&Steered| one.sent && !one.shown && !is_over(session, &of(one));
    if let Some(steered) = turn.steered.iter().find(untold) {
        let outcome = Outcome::Joined { turn: turn.id.clone() };
        return Some(steered_card(steered, outcome, context));
    }
    old_card(session)
}

/// The next such post before the end of the turn is told.
pub(super) fn ending(session: &Session, outcome: &Outcome, context: &Context<'_>) -> Option<Next> {
    let turn = session.turn.as_ref()?;
    let outcome = record::of_steered(outcome, &turn.id);
    let joined = matches!(outcome, Outcome::Joined { .. });
    let told = |one: &Steered| (joined && one.shown) || is_over(session, &of(one));
    let untold = |one: &&Steered| !told(one);
    let steered = turn.steered.iter().find(untold)?;
    Some(steered_card(steered, outcome, context))
}

/// The next such post after the last card.
pub(super) fn after_card(session: &Session, outcome: &Outcome) -> Option<Next> {
    old_card(session).or_else(|| call(session, outcome))
}

/// The people to mention at the end of a turn: all requesters except the one who stopped it. Platform ids, each once.
pub(super) fn people(turn: &Turn, outcome: &Outcome) -> Vec<String> {
    let stopped_by = turn
        .cancelled_by
        .as_ref()
        .filter(|_| matches!(outcome, Outcome::Cancelled { .. }))
        .map(|by| &by.id);
    let mut people: Vec<String> = Vec::new();
    let asked = std::iter::once(&turn.by).chain(turn.steered.iter().map(|one| &one.prompt.by));
    for by in asked {
        if !by.id.is_empty() && Some(&by.id) != stopped_by && !people.contains(&by.id) {
            people.push(by.id.clone());
        }
    }
    people
}

/// The post with mentions of these people; the plain post if there are none.
pub(super) fn calling(people: Vec<String>, post: Post) -> Post {
    if people.is_empty() {
        return post;
    }
    Post::Calling { people, post: Box::new(post) }
}

/// Which of these posts the effect makes; `None` if it makes another one.
pub(super) fn kind(session: &Session, of: &Effect) -> Option<Aside> {
    let Effect::Chat(ChatEffect::Post { turn, kind, post, .. }) = of else {
        return None;
    };
    let steered = session.turn.iter().flat_map(|turn| &turn.steered);
    match (kind, post) {
        (PostKind::Call, _) => Some(Aside::Call),
        (_, Post::Moved { .. }) => Some(Aside::OldCard),
        _ => steered.map(self::of).find(|aside| *aside == Aside::Steered(turn.clone())),
    }
}

/// Such a post was made.
pub(super) fn posted(session: &mut Session, aside: Aside, at: PostRef) {
    let ending = is_ending(session);
    let Some(turn) = &mut session.turn else {
        return;
    };
    match &aside {
        Aside::Steered(id) => {
            let Some(steered) = turn.steered.iter_mut().find(|one| one.turn == *id) else {
                return;
            };
            // A first post may already have existed, with another text: only an edit is sure to show this one.
            if steered.card.replace(at).is_none() {
                return;
            }
            steered.shown = true;
            if ending {
                session.observed.chat.asides_over.insert(aside);
            }
        }
        Aside::OldCard => turn.card.old = None,
        Aside::Call => {
            if let Some(told) = turn.stage.told_mut() {
                told.called = true;
            }
        }
        Aside::Ask(_) => {}
    }
}

/// Such a post was refused. While the end is told it is retried, within the bound for telling the end.
pub(super) fn refused(
    session: &mut Session,
    aside: Aside,
    failure: &Failure,
    context: &Context<'_>,
) -> Option<Next> {
    let limits = context.delivery.limits;
    if is_ending(session)
        && let Failure::ThreadClosed { seen } = failure
    {
        return wait::at_the_end(session, seen.clone(), context);
    }
    if is_ending(session)
        && let Failure::Outage { after_ms, seen } = failure
        && let Some(hold) = outage::of_chat(session, *after_ms, seen, context)
    {
        return Some(hold);
    }
    if is_ending(session)
        && let (Failure::Wait { after_ms, seen }, Some(turn)) = (failure, &mut session.turn)
    {
        turn.tries.refusals += 1;
        if turn.tries.refusals <= limits.retry.refusals {
            return Some(Next::Hold {
                delay_ms: limits.retry.backoff_asked(turn.tries.refusals, *after_ms),
                why: seen.clone(),
            });
        }
    }
    session.observed.chat.asides_over.insert(aside);
    None
}

fn is_ending(session: &Session) -> bool {
    let turn = session.turn.as_ref();
    turn.is_some_and(|turn| turn.stage.is_ending())
}

pub(super) fn of(steered: &Steered) -> Aside {
    Aside::Steered(steered.turn.clone())
}

pub(super) fn is_over(session: &Session, aside: &Aside) -> bool {
    session.observed.chat.asides_over.contains(aside)
}

fn steered_card(steered: &Steered, outcome: Outcome, context: &Context<'_>) -> Next {
    let state = CardState::Ended { outcome, usage: Usage::default() };
    let (since_ms, now_ms) = (steered.accepted_at_ms, context.now_ms);
    let card = Card::new(&steered.turn, state, since_ms, now_ms, "");
    Next::Do(Effect::Chat(ChatEffect::Post {
        turn: steered.turn.clone(),
        kind: PostKind::Card,
        at: steered.card.clone(),
        post: Post::Card(card),
    }))
}

/// The previous card points to the present one.
fn old_card(session: &Session) -> Option<Next> {
    if is_over(session, &Aside::OldCard) {
        return None;
    }
    let turn = session.turn.as_ref()?;
    let (old, to) = (turn.card.old.clone()?, turn.card.at.clone()?);
    let effect = Effect::Chat(ChatEffect::Post {
        turn: turn.id.clone(),
        kind: card_kind(turn.card.rolls.saturating_sub(1)),
        at: Some(old),
        post: Post::Moved { to, link: None },
    });
    Some(Next::Do(effect))
}

/// An edit mentions nobody, so an end without an answer gets a line of its own.
fn call(session: &Session, outcome: &Outcome) -> Option<Next> {
    let turn = session.turn.as_ref()?;
    if turn.stage.told().is_some_and(|told| told.called) || is_over(session, &Aside::Call) {
        return None;
    }
    let word = call_word(outcome)?;
    let people = people(turn, outcome);
    if people.is_empty() {
        return None;
    }
    let effect = Effect::Chat(ChatEffect::Post {
        turn: turn.id.clone(),
        kind: PostKind::Call,
        at: None,
        post: calling(people, Post::Notice(word.to_owned())),
    });
    Some(Next::Do(effect))
}

/// The text of the line that mentions the requesters; `None` if the answer mentions them.
pub(super) const fn call_word(outcome: &Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Answered | Outcome::Joined { .. } => None,
        Outcome::Failed { .. } => Some(words::CALL_FAILED),
        Outcome::OverBudget { .. } => Some(words::CALL_OVER_BUDGET),
        Outcome::Cancelled { .. } => Some(words::CALL_CANCELLED),
        Outcome::Lost => Some(words::CALL_LOST),
    }
}
