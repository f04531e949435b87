//! The end of a turn, told: the parts of the answer, each once, then what it left behind, then the card, then the record.

use std::borrow::Cow;

use super::{Context, Next, aside, provision, record, results, stray, untold, words};
use crate::base::ids::{Ms, PostKind};
use crate::protocol::effect::{AgentEffect, ChatEffect, Effect, Follow};
use crate::records::card::{Card, CardState, Post};
use crate::records::outcome::Outcome;
use crate::records::parked::Seen;
use crate::records::run::{Answer, RunEnd};
use crate::records::session::Session;
use crate::records::stage::Stage;
use crate::text::gist;

/// Characters (UTF-16 units) of an answer that stand in the message beside its file.
const FILE_GIST_UNITS_MAX: usize = 1_200;

/// The step that is missing until the turn is closed; none once it is.
pub(super) fn step(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    let Some(Stage::Ending { outcome, .. }) = session.turn.as_ref().map(|turn| turn.stage.clone())
    else {
        return None;
    };
    if let Some(next) = stray::end(session) {
        return Some(next);
    }
    if session.observed.closed.is_some() {
        return untold::close(session, context);
    }
    if outcome == Outcome::Answered
        && let Some(next) = chunk(session, context)
    {
        return Some(next);
    }
    if let Some(next) = results::step(session, &outcome, context) {
        return Some(next);
    }
    if let Some(next) = aside::ending(session, &outcome, context) {
        return Some(next);
    }
    if !session.observed.final_card {
        return final_card(session, context);
    }
    if let Some(next) = aside::told(session, &outcome) {
        return Some(next);
    }
    record::close_turn(session, context);
    None
}

/// The next part of the answer. After a crash the answer is read again from OpenCode, where it lies.
fn chunk(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    let turn = session.turn.as_ref()?;
    if turn.parts.is_some_and(|parts| turn.posted.len() >= parts) {
        return None;
    }
    let Some(answer) = session.observed.answer.clone() else {
        if let Some(next) = provision::step(session, context) {
            return Some(next);
        }
        return read_again(session, context);
    };
    let (parts, file) = parts(&answer, context);
    let turn = session.turn.as_mut()?;
    turn.parts = Some(parts.len());
    let index = turn.posted.len();
    let part = parts.get(index)?.clone();
    let last = index + 1 == parts.len();
    let kind = PostKind::Chunk(u32::try_from(index).unwrap_or(u32::MAX));
    let turn_id = turn.id.clone();
    let card = turn.card.clone().filter(|_| index == 0);
    let people = if last { aside::people(turn, &Outcome::Answered) } else { Vec::new() };
    Some(Next::Do(Effect::Chat(ChatEffect::Post {
        turn: turn_id,
        kind,
        at: None,
        post: aside::calling(
            people,
            Post::Chunk { text: part, last, file: file.filter(|_| last), card },
        ),
    })))
}

/// The parts of an answer, and the whole of it as a file where it is too long for messages.
pub(super) fn parts(answer: &Answer, context: &Context<'_>) -> (Vec<String>, Option<String>) {
    let limits = context.delivery.limits;
    let text = match (answer.text.trim(), &answer.end) {
        ("", RunEnd::Rejected) => Cow::Borrowed(words::DECLINED),
        ("", RunEnd::Cut) => Cow::Borrowed(words::CUT_OFF),
        ("", _) => Cow::Borrowed(words::NO_TEXT),
        (text, RunEnd::Cut) => Cow::Owned(format!("{text}\n\n{}", words::CUT_OFF)),
        (text, RunEnd::Unexplained) => Cow::Owned(format!("{text}\n\n{}", words::MAYBE_INCOMPLETE)),
        (text, _) => Cow::Borrowed(text),
    };
    let text = text.as_ref();
    if text.chars().count() <= limits.chat.answer_chars {
        return ((context.delivery.split)(text), None);
    }
    // One message beside the file: it is read before anybody opens that.
    let gist = gist(text, FILE_GIST_UNITS_MAX);
    let mut parts = (context.delivery.split)(&gist);
    parts.truncate(1);
    (parts, Some(text.to_owned()))
}

fn read_again(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    let turn = session.turn.as_ref()?;
    let (Some(prompted), Some(agent_session)) = (turn.stage.prompted(), &session.agent_session)
    else {
        record::fail(session, words::SESSION_VANISHED);
        return None;
    };
    Some(Next::Do(Effect::Agent(AgentEffect::Follow(Follow {
        generation: session.sandbox.generation,
        agent_session: agent_session.clone(),
        message: prompted.ids.message.clone(),
        further: turn.further(),
        turn: turn.id.clone(),
        card: None,
        card_kind: turn.card_kind(),
        card_state: CardState::Working,
        model: turn.model(context.delivery.model).to_owned(),
        since_ms: turn.accepted_at_ms,
        asks: turn.asks.clone(),
        cancel_known: true,
        steers: None,
        until_ms: context.now_ms + context.delivery.limits.turn.health_active_ms,
        ends_ms: Ms::MAX,
        gives_way: false,
        seen: Seen::default(),
        seen_at_ms: None,
        messages_max: context.delivery.limits.turn.turn_messages,
    }))))
}

fn final_card(session: &Session, context: &Context<'_>) -> Option<Next> {
    let turn = session.turn.as_ref()?;
    let Stage::Ending { outcome, usage, .. } = turn.stage.clone() else {
        return None;
    };
    let state = CardState::Ended { outcome, usage };
    let (since_ms, model) = (turn.accepted_at_ms, turn.model(context.delivery.model));
    let mut card = Card::new(&turn.id, state, since_ms, context.now_ms, model);
    if let Some(answer) = &session.observed.answer {
        card.plan.clone_from(&answer.plan);
        card.steps.clone_from(&answer.steps);
        card.earlier = answer.earlier;
    }
    let (turn_id, at, kind) = (turn.id.clone(), turn.card.clone(), turn.card_kind());
    Some(Next::Do(Effect::Chat(ChatEffect::Post {
        turn: turn_id,
        kind,
        at,
        post: Post::Card(card),
    })))
}

/// A turn whose message is gone from the queue: it is told as failed, then closed.
pub(super) fn leftover(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    if !session.turn.as_ref().is_some_and(|turn| turn.stage.is_ending()) {
        record::fail(session, words::LOST_ITS_PLACE);
    }
    step(session, context)
}
