//! Folds what happened into the session. The failure table of the design is here, row by row.

use super::{
    Context, Next, aside, choose, mark, operate, outage, provision, results, steer, stray, words,
};
use crate::ask::Ask;
use crate::effect::{AgentEffect, ChatEffect, Effect, Sending};
use crate::event::{Cause, Event};
use crate::failure::Failure;
use crate::ids::{PostKind, PostRef};
use crate::ledger;
use crate::message::Work;
use crate::outcome::Outcome;
use crate::run::{Answer, PromptState, RunEnd};
use crate::sandbox::SandboxState;
use crate::session::{Phase, Seen, Session};
use crate::stage::Stage;

/// Folds in what happened; a step is returned only where that itself ends the delivery.
pub(super) fn apply(session: &mut Session, cause: Cause, context: &Context<'_>) -> Option<Next> {
    match cause {
        Cause::Delivered => {
            delivered(session, context);
            None
        }
        Cause::Done(effect, event) => done(session, &effect, event, context),
        Cause::Both { work, card } => both(session, work, card, context),
    }
}

/// Folds in what came of an effect.
fn done(session: &mut Session, of: &Effect, event: Event, context: &Context<'_>) -> Option<Next> {
    match event {
        Event::Observed(coarse) => {
            outage::provider_answered(session);
            session.seen.sandbox = Some(coarse);
        }
        Event::Counted(sandboxes) => {
            outage::provider_answered(session);
            session.seen.tenant_sandboxes = Some(sandboxes);
        }
        Event::Cloned => {
            outage::provider_answered(session);
            session.seen.cloned = true;
        }
        Event::NotCloned { why } => {
            outage::provider_answered(session);
            provision::not_cloned(session, &why, context);
        }
        Event::Surveyed(offer) => choose::surveyed(session, offer),
        Event::Recalled(entries) => session.seen.digest = Some(ledger::digest(&entries)),
        Event::Woken => {}
        Event::Healthy => {
            outage::provider_answered(session);
            session.seen.healthy = true;
            session.seen.restart_server = false;
        }
        Event::AgentSession { id } => {
            session.agent_session = Some(id);
            session.seen.agent_session = true;
        }
        Event::Attached {
            note,
            missed,
            images,
        } => {
            session.seen.attached = Some(note);
            session.seen.missed = missed;
            session.seen.images = images;
        }
        Event::PromptFound(state) => prompt_found(session, state),
        Event::Prompted => {
            // Who takes a prompt is there, and knows the session.
            session.seen.healthy = true;
            session.seen.agent_session = true;
            session.seen.found = None;
            if let Some(turn) = &mut session.turn
                && turn.stage.is_with_agent()
            {
                turn.stage.taken();
                steer::sent(turn);
            }
        }
        Event::Finished(answer) => finished(session, answer, context),
        Event::StillRunning => return still_running(session, context),
        Event::CancelSeen { by } => {
            if let Some(turn) = &mut session.turn {
                turn.cancelled_by.get_or_insert(by);
            }
        }
        Event::SteerSeen { turn, queued, by } => steer::take(session, &turn, queued, by, context),
        Event::CardMoved(at) => {
            if let Some(turn) = &mut session.turn {
                turn.card = Some(at);
                turn.card_since_ms = Some(context.now_ms);
            }
        }
        Event::Asked { id, about } => {
            let expires_at_ms = context.now_ms + context.delivery.limits.ask_ms;
            if let Some(turn) = &mut session.turn
                && !turn.asks.iter().any(|ask| ask.id == id)
            {
                turn.asks.push(Ask {
                    id,
                    about,
                    expires_at_ms,
                    post: None,
                    settled: false,
                });
            }
        }
        Event::AskClosed { id, settlement } => {
            session.seen.closed_asks.insert(id, settlement);
        }
        Event::Declined { id } => {
            session.seen.closed_asks.insert(id, None);
        }
        Event::Aborted => session.seen.abort_sent = true,
        Event::RunEnded => session.stray = None,
        Event::Changed(changes) => results::changed(session, changes),
        Event::Listed(listed) => results::listed(session, listed, context),
        Event::Unshown { why } => {
            results::unshown(session, &why);
        }
        Event::Posted(at) => posted(session, of, at, context),
        Event::NotSent(failure) => {
            if is_first_sending(of) {
                withdraw(session);
            }
            return failed(session, of, failure, context);
        }
        Event::Failed(failure) => return failed(session, of, failure, context),
    }
    None
}

/// The work first: what the chat's refusal of a card means depends on how far the turn has come.
fn both(
    session: &mut Session,
    work: (Effect, Event),
    card: (Effect, Event),
    context: &Context<'_>,
) -> Option<Next> {
    let of_work = done(session, &work.0, work.1, context);
    let of_card = done(session, &card.0, card.1, context);
    // It showed how the turn went on, even if that has ended meanwhile.
    session.seen.final_card = false;
    match (of_work, of_card) {
        (
            Some(Next::Hold { delay_ms, why }),
            Some(Next::Hold {
                delay_ms: other, ..
            }),
        ) => {
            let delay_ms = delay_ms.max(other);
            Some(Next::Hold { delay_ms, why })
        }
        (of_work, of_card) => of_work.or(of_card),
    }
}

/// What was sent, or may have been, was looked for.
fn prompt_found(session: &mut Session, state: PromptState) {
    let Some(turn) = &mut session.turn else {
        return;
    };
    let was_cut = turn.stage.is_prompting() && turn.resends > 0;
    match state {
        // It was only out of sight: nothing is sent again, and nothing counted.
        PromptState::Taken => turn.resends = turn.resends.saturating_sub(u32::from(was_cut)),
        // Accepted is not yet begun: who follows finds out whether it ever does.
        PromptState::Idle if !was_cut => {}
        PromptState::Idle | PromptState::Absent => {
            session.seen.found = Some(state);
            return;
        }
    }
    if turn.stage.is_with_agent() {
        turn.stage.taken();
        steer::sent(turn);
    }
}

/// Takes the intent to prompt back: the agent has nothing of it, so the turn is where it was before.
fn withdraw(session: &mut Session) {
    let Some(turn) = &mut session.turn else {
        return;
    };
    if !turn.stage.withdrawn() {
        return;
    }
    if std::mem::take(&mut turn.with_digest) {
        session.briefed = None;
    }
    // Another sandbox may have to be given its files anew.
    (session.seen.attached, session.seen.images) = (None, Vec::new());
}

fn delivered(session: &mut Session, context: &Context<'_>) {
    session.seen = Seen {
        in_ledger: session.seen.in_ledger,
        ..Seen::default()
    };
    if matches!(session.phase, Phase::Creating | Phase::Resuming) {
        session.phase_since_ms = context.now_ms;
    }
    // A turn that is met again outside its run has cost a delivery: a worker crashed or something kept failing.
    let ours = session
        .turn
        .as_ref()
        .is_some_and(|turn| turn.id == context.delivery.message.id);
    // A sign of life: what has none for longer than a slice is found by the sweeper.
    if ours {
        mark::arm(session, context);
    }
    if let Some(turn) = &mut session.turn
        && ours
        && let crashed = std::mem::replace(&mut turn.in_hand, true)
        && (!turn.stage.is_running() || crashed)
        && turn.outage_since_ms.is_none()
        && turn.chat_outage_since_ms.is_none()
    {
        turn.attempts += 1;
        if turn.attempts > context.delivery.limits.attempts && !turn.stage.is_ending() {
            let reason = words::kept_failing(turn.trouble.as_deref());
            mark::fail(session, &reason);
        }
    }
}

fn finished(session: &mut Session, answer: Answer, context: &Context<'_>) {
    mark::see_cancel(session, context);
    let Some(turn) = &session.turn else { return };
    let outcome = match (&turn.aborting, &turn.cancelled_by, &answer.end) {
        (Some(reason), _, _) => Outcome::Failed {
            reason: reason.clone(),
        },
        (None, Some(by), RunEnd::Aborted | RunEnd::Rejected | RunEnd::Error { .. }) => {
            Outcome::Cancelled {
                by: by.name.clone(),
            }
        }
        (None, None, RunEnd::Aborted) => Outcome::Failed {
            reason: words::ABORTED_ELSEWHERE.to_owned(),
        },
        (None, _, RunEnd::Error { reason }) => Outcome::Failed {
            reason: words::model_failed(reason),
        },
        (None, _, RunEnd::Completed | RunEnd::Rejected) => Outcome::Answered,
    };
    session.seen.answer = Some(answer);
    mark::end_with(session, outcome);
}

fn still_running(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    let limits = context.delivery.limits;
    let aborted = session.seen.abort_sent;
    let turn = session.turn.as_mut()?;
    if aborted {
        // Told to end and still busy after its bound: the thread does not wait for it.
        let outcome = match (&turn.aborting, &turn.cancelled_by) {
            (Some(reason), _) => Outcome::Failed {
                reason: reason.clone(),
            },
            (None, by) => Outcome::Cancelled {
                by: by.clone().unwrap_or_default().name,
            },
        };
        mark::end_with(session, outcome);
        return None;
    }
    let prompted = turn.stage.prompted();
    if prompted.is_some_and(|prompted| context.now_ms >= prompted.at_ms + limits.turn_ms) {
        turn.aborting = Some(words::ran_too_long(limits.turn_ms));
        return None;
    }
    if context.now_ms >= context.delivery.slice_until_ms {
        turn.slices += 1;
        // Who has followed it for a whole slice can follow it: only failures in a row count.
        turn.attempts = 0;
        return Some(Next::Hold {
            delay_ms: 0,
            why: format!("slice {} of the run is over", turn.slices),
        });
    }
    None
}

fn posted(session: &mut Session, of: &Effect, at: PostRef, context: &Context<'_>) {
    outage::chat_answered(session);
    if let Some(aside) = aside::kind(session, of) {
        return aside::posted(session, aside, at);
    }
    let ending = session
        .turn
        .as_ref()
        .is_some_and(|turn| turn.stage.is_ending());
    match (posting(of), &mut session.turn) {
        (Some(PostKind::Card | PostKind::Rolled(_)), Some(turn)) => {
            // A first post may be one that already stood, with the words of a worker that died before it was recorded:
            // only an edit is sure to show the end.
            let edited = turn.card.replace(at).is_some();
            if !edited {
                turn.card_since_ms = Some(context.now_ms);
            }
            session.seen.final_card = ending && edited;
        }
        (Some(PostKind::Chunk(_)), Some(turn)) => turn.posted.push(at),
        (Some(PostKind::Artifact(_)), _) => results::dealt_with(session),
        (Some(PostKind::Unshown), Some(turn)) => turn.unshown.clear(),
        (Some(PostKind::Ask(id)), Some(turn)) => {
            let closed = session.seen.closed_asks.contains_key(&id);
            if let Some(ask) = turn.asks.iter_mut().find(|ask| ask.id == id) {
                let edited = ask.post.replace(at).is_some();
                ask.settled = closed && edited;
                if ask.settled {
                    ask.about.shrink();
                }
            }
        }
        (Some(PostKind::Notice), _) => session.seen.noticed = true,
        _ => {}
    }
}

/// What this effect posts, if it is a post.
fn posting(of: &Effect) -> Option<PostKind> {
    match of {
        Effect::Chat(ChatEffect::Post { kind, .. }) => Some(kind.clone()),
        Effect::Chat(ChatEffect::PostArtifact { index, .. }) => Some(PostKind::Artifact(*index)),
        _ => None,
    }
}

/// Whether this sends a prompt for the first time: where it fails, nobody knows whether it arrived.
fn is_first_sending(of: &Effect) -> bool {
    matches!(
        of,
        Effect::Agent(AgentEffect::SendPrompt {
            sending: Sending::First { .. },
            ..
        })
    )
}

/// The failure table.
fn failed(
    session: &mut Session,
    of: &Effect,
    failure: Failure,
    context: &Context<'_>,
) -> Option<Next> {
    let limits = context.delivery.limits;
    if let Some(aside) = aside::kind(session, of) {
        return aside::refused(session, aside, &failure, context);
    }
    if results::could_not_be_read(session, of) {
        return None;
    }
    let ends_run = matches!(of, Effect::Agent(AgentEffect::EndRun(_)));
    if ends_run && stray::not_ended(session, &failure, context) {
        return None;
    }
    let posting = posting(of);
    if results::gives_up_showing(session, posting.as_ref(), &failure, context) {
        return None;
    }
    match failure {
        Failure::Wait { after_ms, seen } => {
            // Who asked for a reset is owed its word, and so is a dead letter's thread; that of a sweep is a courtesy.
            let owed = matches!(posting, Some(PostKind::Notice))
                && !matches!(context.delivery.message.work, Work::Sweep);
            if !owed && posting_is_decoration(session, posting.as_ref(), context) {
                return None;
            }
            let (attempts, most) = session.turn.as_mut().map_or(
                // What has no turn has no count on record: the queue's own ends it.
                (context.delivery.receive, u32::MAX),
                |turn| {
                    turn.trouble = Some(seen.clone());
                    match turn.stage {
                        // The chat's refusals have a count of their own: crashes, or an answer that was hard to read
                        // again, must not use up what the telling of the end may take.
                        Stage::Ending { .. } if posting.is_some() => {
                            turn.refusals += 1;
                            return (turn.refusals, limits.refusals);
                        }
                        Stage::Running(_) => turn.attempts += 1,
                        _ => {}
                    }
                    (turn.attempts + 1, limits.attempts + 1)
                },
            );
            if attempts > most {
                return give_up(
                    session,
                    &words::kept_failing(Some(&seen)),
                    posting.is_some(),
                    context,
                );
            }
            let delay_ms = limits
                .backoff(attempts)
                .max(after_ms)
                .min(limits.backoff_ms_max.max(after_ms.min(900_000)));
            return Some(Next::Hold {
                delay_ms,
                why: seen,
            });
        }
        Failure::Outage { after_ms, seen } => {
            let owed = matches!(posting, Some(PostKind::Notice))
                && !matches!(context.delivery.message.work, Work::Sweep);
            let waited = match posting {
                Some(_) if !owed && posting_is_decoration(session, posting.as_ref(), context) => {
                    return None;
                }
                Some(_) => {
                    outage::of_chat(session, after_ms, &seen, context).ok_or_else(|| seen.clone())
                }
                None => outage::of_provider(session, after_ms, &seen, context),
            };
            return match waited {
                Ok(hold) => Some(hold),
                Err(words) => give_up(session, &words, posting.is_some(), context),
            };
        }
        // The loop gives its message back before it asks; said here too, so that the table is whole.
        Failure::Newer { seen } => {
            return Some(Next::Hold {
                delay_ms: limits.newer_ms_max,
                why: seen,
            });
        }
        Failure::SessionMissing => {
            // First its end, which notes the run by the session's id.
            if session
                .turn
                .as_ref()
                .is_some_and(|turn| turn.stage.is_running())
            {
                mark::fail(session, words::SESSION_VANISHED);
            }
            session.agent_session = None;
            session.seen.agent_session = false;
        }
        Failure::SandboxDown { seen } => {
            sandbox_down(session, &seen, is_first_sending(of), context)
        }
        Failure::SandboxGone => session.seen.sandbox = Some(SandboxState::Gone),
        Failure::ResumeFailed { seen } => {
            session.seen.healthy = false;
            session.seen.restart_server = true;
            let spent = session.turn.as_mut().is_none_or(|turn| {
                turn.server_restarts += 1;
                turn.trouble = Some(seen.clone());
                turn.server_restarts > limits.server_restarts
            });
            if spent {
                return give_up(session, &words::server_unhealthy(&seen), false, context);
            }
        }
        Failure::NonRecoverable { advice } => {
            if posting_is_decoration(session, posting.as_ref(), context) {
                return None;
            }
            return give_up(session, &advice, posting.is_some(), context);
        }
        Failure::ThreadGone { seen } => {
            // An agent that works for nobody is stopped first; its end cannot be told either.
            if let Some(turn) = &mut session.turn
                && turn.stage.is_running()
                && turn.aborting.is_none()
                && !session.seen.abort_sent
            {
                turn.aborting = Some(seen);
                session.seen.card_retry_ms = Some(context.now_ms + limits.stop_ms);
                return None;
            }
            mark::close_untold(session, &seen, context);
            session.seen.noticed = true;
        }
        Failure::TurnFailed { reason } => match &mut session.turn {
            Some(turn) if turn.stage.is_running() => turn.aborting = Some(reason),
            _ => mark::fail(session, &reason),
        },
    }
    None
}

/// A card that only shows progress may fail: the next one, and the end, are posted all the same.
fn posting_is_decoration(
    session: &mut Session,
    posting: Option<&PostKind>,
    context: &Context<'_>,
) -> bool {
    match (posting, &session.turn) {
        // The run goes on without a new card for a while; the old one stands.
        (Some(PostKind::Card | PostKind::Rolled(_)), Some(turn))
            if turn.card.is_none() && turn.stage.is_running() =>
        {
            session.seen.card_retry_ms =
                Some(context.now_ms + context.delivery.limits.backoff_ms_max);
            true
        }
        (Some(PostKind::Card | PostKind::Rolled(_)), Some(turn)) => {
            turn.card.is_some() && !turn.stage.is_ending()
        }
        (Some(PostKind::Notice), None) => {
            session.seen.noticed = true;
            true
        }
        _ => false,
    }
}

/// The server or its sandbox does not answer: look again from the sandbox up, a bounded number of times.
fn sandbox_down(session: &mut Session, seen: &str, unsent: bool, context: &Context<'_>) {
    let limits = context.delivery.limits;
    if let Some(turn) = &mut session.turn {
        turn.trouble = Some(seen.to_owned());
        let spent = match turn.stage {
            // As good as a look at the server before it was sent: what the agent does not have by then is sent, not sent
            // again.
            Stage::Prompting(_) if unsent => false,
            Stage::Prompting(_) | Stage::Running(_) => {
                turn.stage.doubted();
                turn.resends += 1;
                turn.resends > limits.resends
            }
            Stage::Received { .. } if session.phase == Phase::Active => {
                turn.server_restarts > limits.server_restarts
            }
            Stage::Received { .. } => {
                turn.server_restarts += 1;
                turn.server_restarts > limits.server_restarts
            }
            Stage::Ending { .. } => {
                turn.attempts += 1;
                turn.attempts > limits.attempts
            }
        };
        if spent {
            mark::fail(session, &words::server_went_away(seen));
        }
    } else {
        session.seen.downs += 1;
        session.seen.trouble = Some(seen.to_owned());
    }
    session.seen.healthy = false;
    session.seen.agent_session = false;
    session.seen.found = None;
    session.seen.sandbox = None;
    session.seen.start_asked = false;
    if session.phase == Phase::Active {
        mark::enter(
            session,
            Phase::Resuming,
            "the server does not answer",
            context,
        );
    }
}

/// A repeat cannot help: the turn fails with these words; what was half made is taken down.
fn give_up(
    session: &mut Session,
    reason: &str,
    posting: bool,
    context: &Context<'_>,
) -> Option<Next> {
    match session.turn.as_ref().map(|turn| &turn.stage) {
        // The chat works, but the answer cannot be read again: that is told instead.
        Some(Stage::Ending {
            outcome: Outcome::Answered,
            ..
        }) if !posting && session.seen.answer.is_none() => {
            mark::fail(session, reason);
        }
        // It could not even be told: the record says how it ended, and the log of the worker that it was not told.
        Some(Stage::Ending { .. }) => {
            session.seen.untold = session.turn.as_ref().map(|turn| turn.id.clone());
            mark::close_untold(session, reason, context);
        }
        Some(_) => mark::fail(session, reason),
        None => operate::refused(session, reason, context),
    }
    match session.phase {
        Phase::Creating => {
            session.seen.sandbox = None;
            mark::enter(
                session,
                Phase::Destroying,
                "it could not be made ready",
                context,
            );
            mark::lease(session, context);
        }
        // Deleting is refused for good: the orphan hunt and the provider's own lifetime remain.
        Phase::Destroying if session.turn.is_none() => {
            mark::enter(session, Phase::Error, reason, context);
            session.seen.trouble = Some(reason.to_owned());
        }
        Phase::Pausing if session.turn.is_none() => return Some(Next::Done),
        _ => {}
    }
    None
}
