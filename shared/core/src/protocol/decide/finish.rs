//! Finishes a turn: posts the parts of the answer, each once, then its results, then the card, then writes the record.

use super::{
    Context, Next, answer, budget, extra_posts, provision, publish, record, results, set_up,
    stray_run, unposted, words,
};
use crate::base::ids::Ms;
use crate::base::names::PostKind;
use crate::protocol::effect::{AgentEffect, ChatEffect, Effect, Follow, KeptCard};
use crate::records::card::{Card, CardState, Post};
use crate::records::outcome::Outcome;
use crate::records::parked::Seen;
use crate::records::session::Session;
use crate::records::stage::Stage;

/// The missing step until the turn is closed; `None` once it is.
pub(super) fn step(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    let Some(Stage::Ending { outcome, .. }) = session.turn.as_ref().map(|turn| turn.stage.clone())
    else {
        return None;
    };
    if let Some(next) = stray_run::end(session) {
        return Some(next);
    }
    let id = session.turn.as_ref()?.id.clone();
    if !session.observed.chat.final_card {
        // What an earlier delivery kept of this end is tried again here.
        session.untold.retain(|one| one.turn != id);
    }
    if session.observed.chat.closed.is_some() {
        return unposted::close(session, context);
    }
    if outcome == Outcome::Answered
        && let Some(next) = chunk(session, context)
    {
        return Some(next);
    }
    if let Some(next) = results::step(session, &outcome, context) {
        return Some(next);
    }
    if let Some(next) = extra_posts::ending(session, &outcome, context) {
        return Some(next);
    }
    if !session.observed.chat.final_card {
        return final_card(session, context);
    }
    if let Some(next) = extra_posts::after_card(session, &outcome) {
        return Some(next);
    }
    record::close_turn(session, context);
    session.observed.chat.untold_tried = session.untold.iter().any(|one| one.turn == id);
    None
}

/// The next part of the answer. After a crash the answer is read again from OpenCode, which keeps it.
fn chunk(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    let told = session.turn.as_ref()?.stage.told()?;
    if told.parts.is_some_and(|parts| told.posted.len() >= parts) {
        return None;
    }
    let Some(answer) = session.observed.agent.answer.clone() else {
        if let Some(next) = provision::step(session, context) {
            return Some(next);
        }
        return read_again(session, context);
    };
    let (mut parts, mut file) = answer::parts(&answer, context);
    let turn = session.turn.as_mut()?;
    let told = turn.stage.told_mut()?;
    let index = told.posted.len();
    if let Some(why) = &session.observed.chat.refused_part {
        parts.truncate(index);
        parts.push(words::part_refused(index > 0, why));
        file = None;
    }
    told.parts = Some(parts.len());
    let part = parts.get(index)?.clone();
    let last = index + 1 == parts.len();
    let kind = PostKind::Chunk(u32::try_from(index).unwrap_or(u32::MAX));
    let turn_id = turn.id.clone();
    let card = turn.card.at.clone().filter(|_| index == 0);
    let people = if last { extra_posts::people(turn, &Outcome::Answered) } else { Vec::new() };
    Some(Next::Do(Effect::Chat(ChatEffect::Post {
        turn: turn_id,
        kind,
        at: None,
        post: extra_posts::calling(
            people,
            Post::Chunk { text: part, last, file: file.filter(|_| last), card },
        ),
    })))
}

fn read_again(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    let turn = session.turn.as_ref()?;
    let (Some(prompted), Some(agent_session)) =
        (turn.stage.prompted(), &session.conversation.session)
    else {
        record::fail(session, words::SESSION_VANISHED);
        return None;
    };
    Some(Next::Do(Effect::Agent(AgentEffect::Follow(Follow {
        agent_session: agent_session.clone(),
        message: prompted.ids.message.clone(),
        further: turn.further(),
        turn: turn.id.clone(),
        card: KeptCard {
            at: None,
            kind: turn.card_kind(),
            state: CardState::Working,
            model: turn.model(context.delivery.model).to_owned(),
            budget: None,
            shows_budget: false,
            set_up: None,
        },
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
    if let Some(answer) = &session.observed.agent.answer {
        card.plan.clone_from(&answer.plan);
        card.steps.clone_from(&answer.steps);
        card.earlier = answer.earlier;
    }
    card.publish = publish::offer(session, context);
    card.spending = budget::shown(session);
    card.set_up = set_up::fact(session, context);
    let (turn_id, at, kind) = (turn.id.clone(), turn.card.at.clone(), turn.card_kind());
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
