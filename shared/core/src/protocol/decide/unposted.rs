//! Posts that a thread cannot be sent because it cannot be written in. The end of a turn is tried a few times; then the
//! requester is told outside of the thread, and the posts are kept on the record until a later delivery can send them.
//!
//! Promised: a thread that is closed for a while costs nobody an answer, and leaves no card that looks alive. What is
//! kept is bounded in bytes and in time.

use super::{Context, Next, answer, extra_posts, record, wait, words};
use crate::base::failure::Failure;
use crate::base::ids::{Ms, PostRef};
use crate::base::names::PostKind;
use crate::protocol::effect::{ChatEffect, Effect};
use crate::records::artifacts::Artifact;
use crate::records::card::{Post, card_kind};
use crate::records::observations::Aside;
use crate::records::outcome::Outcome;
use crate::records::session::Session;
use crate::records::stage::Stage;
use crate::records::turn::Turn;
use crate::records::unposted::{Said, UnpostedPost};
use crate::records::usage::Usage;

/// The chat refused this post because the thread is closed.
pub(super) fn refused(
    session: &mut Session,
    of: &Effect,
    seen: String,
    context: &Context<'_>,
) -> Option<Next> {
    let posting = of.posts();
    match &mut session.turn {
        Some(turn) if turn.stage.is_ending() => return wait::at_the_end(session, seen, context),
        Some(turn) => {
            if let Some(PostKind::Ask(id)) = &posting
                && let Some(ask) = turn.asks.iter_mut().find(|ask| ask.id == *id)
            {
                // The ask is settled, and an edit is not worth the run.
                if session.observed.agent.closed_asks.contains_key(id) {
                    ask.settled = true;
                    return None;
                }
                // The ask stays open until it expires, which counts as no. The run is not to blame, and is followed.
                turn.trouble = Some(seen);
                let ask = Aside::Ask(id.clone());
                session.observed.chat.asides_over.insert(ask);
                return None;
            }
        }
        None if wait::is_owed(posting.as_ref(), context)
            && context.delivery.receive > context.delivery.limits.retry.closed_tries =>
        {
            keep_word(session, of, context);
            return None;
        }
        None => {}
    }
    wait::wait(session, 0, seen, posting, context)
}

/// The chat refused a post of the end for good, or too often. A note takes the place of a part of the answer and ends
/// it; if the note is refused too, the thread counts as closed. The last card is kept, with the one that it should have
/// replaced, and the end goes on without it. `false`: it was another post.
pub(super) fn goes_on(
    session: &mut Session,
    posting: Option<&PostKind>,
    seen: &str,
    context: &Context<'_>,
) -> bool {
    let Some(turn) = &session.turn else {
        return false;
    };
    let Stage::Ending { outcome, .. } = &turn.stage else {
        return false;
    };
    let chat = &mut session.observed.chat;
    match posting {
        Some(PostKind::Chunk(_)) if *outcome == Outcome::Answered => {
            if chat.refused_part.is_some() {
                (chat.untold, chat.closed) = (None, Some(seen.to_owned()));
            } else {
                // The operator hears of the lost part when the turn is closed.
                (chat.untold, chat.refused_part) = (Some(turn.id.clone()), Some(seen.to_owned()));
            }
        }
        Some(PostKind::Card | PostKind::Rolled(_)) => {
            // Without a new card nothing will lead from the old one to it.
            let old = turn.card.at.is_none().then(|| old_card(turn, context)).flatten();
            let card = last_card(turn, context);
            chat.final_card = true;
            session.untold.extend(old.into_iter().chain(card));
            bound(session, context);
        }
        _ => return false,
    }
    true
}

/// The turn's own card as it is kept.
fn last_card(turn: &Turn, context: &Context<'_>) -> Option<UnpostedPost> {
    let Stage::Ending { outcome, usage, .. } = &turn.stage else {
        return None;
    };
    let model = turn.model(context.delivery.model);
    let said = card(&turn.card.at, outcome, *usage, model, turn.accepted_at_ms);
    Some(untold(&turn.id, turn.card_kind(), said, context))
}

/// The card that a new one should have replaced, as it is kept.
fn old_card(turn: &Turn, context: &Context<'_>) -> Option<UnpostedPost> {
    let Stage::Ending { outcome, usage, .. } = &turn.stage else {
        return None;
    };
    turn.card.old.as_ref()?;
    let kind = card_kind(turn.card.rolls.saturating_sub(1));
    let model = turn.model(context.delivery.model);
    let said = card(&turn.card.old, outcome, *usage, model, turn.accepted_at_ms);
    Some(untold(&turn.id, kind, said, context))
}

/// Tells the requester outside of the thread, then closes the turn and keeps its untold posts.
pub(super) fn close(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    let seen = session.observed.chat.closed.clone()?;
    let turn = session.turn.as_ref()?;
    let people = extra_posts::people(turn, &Outcome::Answered);
    if !people.is_empty() && !session.observed.chat.told.contains(&session.thread) {
        return Some(Next::Do(Effect::Chat(ChatEffect::TellBeside {
            turn: turn.id.clone(),
            people,
            word: words::notified_outside(&seen),
        })));
    }
    keep(session, context);
    record::close_turn(session, context);
    session.observed.chat.untold_tried = true;
    None
}

fn keep(session: &mut Session, context: &Context<'_>) {
    let Some(turn) = &session.turn else { return };
    let Stage::Ending { outcome, told, .. } = &turn.stage else {
        return;
    };
    let mut kept = Vec::new();
    if *outcome == Outcome::Answered {
        kept.extend(answer(session, turn, context));
    }
    let of_steered = record::of_steered(outcome, &turn.id);
    let is_joined = matches!(of_steered, Outcome::Joined { .. });
    for one in &turn.steered {
        let is_shown = is_joined && one.shown;
        if !is_shown && !extra_posts::is_over(session, &extra_posts::of(one)) {
            let said = card(&one.card, &of_steered, Usage::default(), "", one.accepted_at_ms);
            kept.push(untold(&one.turn, PostKind::Card, said, context));
        }
    }
    // If the end went on without a new card, both cards are kept already.
    let is_shown_or_kept = session.observed.chat.final_card;
    if !is_shown_or_kept || turn.card.at.is_some() {
        kept.extend(old_card(turn, context));
    }
    if !is_shown_or_kept {
        kept.extend(last_card(turn, context));
    }
    if let Some(word) = extra_posts::call_word(outcome).filter(|_| !told.called) {
        let text = word.to_owned();
        let word = untold(&turn.id, PostKind::Call, Said::Word { text }, context);
        let people = extra_posts::people(turn, outcome);
        if !people.is_empty() {
            kept.push(UnpostedPost { people, ..word });
        }
    }
    // The next answered turn shows these files.
    let unshown = told.artifacts.iter().flatten().skip(told.artifacts_done);
    let unshown: Vec<String> = unshown.map(Artifact::key).collect();
    session.shown.retain(|key| !unshown.contains(key));
    session.untold.extend(kept);
    bound(session, context);
}

/// The parts of an answer that are not in the thread yet, as far as there is room for them.
fn answer(session: &Session, turn: &Turn, context: &Context<'_>) -> Vec<UnpostedPost> {
    let Some(answer) = &session.observed.agent.answer else {
        return Vec::new();
    };
    let (parts, file) = answer::parts(answer, context);
    let missing =
        parts.iter().enumerate().skip(turn.stage.told().map_or(0, |told| told.posted.len()));
    // Half of the room, so that two answers in a row can be kept.
    let most = context.delivery.limits.record.untold_bytes / 2;
    let mut bytes = 0;
    let fits = |(_, text): &(usize, &String)| {
        bytes += text.len();
        bytes <= most
    };
    let mut kept: Vec<(usize, String)> =
        missing.take_while(fits).map(|(at, text)| (at, text.clone())).collect();
    let is_cut = file.is_some() || kept.last().is_some_and(|(at, _)| at + 1 < parts.len());
    if is_cut && let Some((_, text)) = kept.last_mut() {
        *text = format!("{text}\n\n{}", words::REST_NOT_KEPT);
    }
    let count = kept.len();
    let one = |(nth, (at, text)): (usize, (usize, String))| {
        let last = nth + 1 == count;
        let kind = PostKind::Chunk(u32::try_from(at).unwrap_or(u32::MAX));
        let people = if last { extra_posts::people(turn, &Outcome::Answered) } else { Vec::new() };
        UnpostedPost { people, ..untold(&turn.id, kind, Said::Part { text, last }, context) }
    };
    kept.into_iter().enumerate().map(one).collect()
}

fn card(
    at: &Option<PostRef>,
    outcome: &Outcome,
    usage: Usage,
    model: &str,
    accepted_at_ms: Ms,
) -> Said {
    Said::Card {
        at: at.clone(),
        outcome: outcome.clone(),
        usage,
        model: model.to_owned(),
        accepted_at_ms,
    }
}

fn untold(turn: &str, kind: PostKind, said: Said, context: &Context<'_>) -> UnpostedPost {
    UnpostedPost { turn: turn.into(), kind, since_ms: context.now_ms, people: Vec::new(), said }
}

/// Keeps a notice that is owed to somebody.
fn keep_word(session: &mut Session, of: &Effect, context: &Context<'_>) {
    if let Effect::Chat(ChatEffect::Post { turn, kind, post, .. }) = of
        && let Post::Notice(text) = post.bare()
    {
        let text = text.clone();
        let word = untold(turn, kind.clone(), Said::Word { text }, context);
        session.untold.push(word);
        bound(session, context);
        record::arm_thread(session, context);
    }
    session.observed.chat.noticed = true;
    session.observed.chat.untold_tried = true;
}

/// Drops the oldest posts until the rest fits.
fn bound(session: &mut Session, context: &Context<'_>) {
    let most = context.delivery.limits.record.untold_bytes;
    while session.untold.iter().map(UnpostedPost::bytes).sum::<usize>() > most {
        let dropped = session.untold.remove(0);
        session.observed.chat.untold = Some(dropped.turn);
    }
}

/// The next kept post. Tried while no turn is under way, so that later posts come after it.
pub(super) fn next(session: &Session) -> Option<Next> {
    if session.turn.is_some() || session.observed.chat.untold_tried {
        return None;
    }
    let one = session.untold.first()?;
    Some(Next::Do(Effect::Chat(ChatEffect::Post {
        turn: one.turn.clone(),
        kind: one.kind.clone(),
        at: one.at().cloned(),
        post: one.post(),
    })))
}

/// Whether the effect posts the first kept entry.
pub(super) fn is_about(session: &Session, of: &Effect) -> bool {
    let Effect::Chat(ChatEffect::Post { turn, kind, .. }) = of else {
        return false;
    };
    let first = session.untold.first();
    session.turn.is_none() && first.is_some_and(|one| one.turn == *turn && one.kind == *kind)
}

/// The kept post was made.
pub(super) fn told(session: &mut Session, at: PostRef, context: &Context<'_>) {
    match session.untold.first_mut().map(|one| &mut one.said) {
        // A first post may already have existed, with another text: only an edit is sure to show this one.
        Some(Said::Card { at: stands, .. }) if stands.is_none() => *stands = Some(at),
        Some(_) => {
            session.untold.remove(0);
            record::arm_thread(session, context);
        }
        None => {}
    }
}

/// The kept post was refused again. A temporary failure is retried within its time; any other is given up.
pub(super) fn failed(session: &mut Session, failure: &Failure, context: &Context<'_>) {
    let limits = context.delivery.limits;
    let Some(first) = session.untold.first() else {
        return;
    };
    let passes = matches!(
        failure,
        Failure::ThreadClosed { .. } | Failure::Wait { .. } | Failure::Outage { .. }
    );
    if passes && context.now_ms < first.since_ms + limits.retry.telling_ms {
        session.observed.chat.untold_tried = true;
    } else if matches!(failure, Failure::ThreadGone { .. }) {
        session.untold.clear();
    } else {
        let dropped = session.untold.remove(0);
        session.observed.chat.untold = Some(dropped.turn);
    }
    record::arm_thread(session, context);
}
