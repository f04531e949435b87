//! Failures that a retry may cure: retried a bounded number of times, then given up.

use super::{Context, Next, lease, operated, outside, publish, record, unposted, words};
use crate::base::names::PostKind;
use crate::records::message::Work;
use crate::records::outcome::Outcome;
use crate::records::sandbox::Phase;
use crate::records::session::Session;
use crate::records::stage::Stage;

/// A retry may help; the number of retries is bounded.
pub(super) fn wait(
    session: &mut Session,
    after_ms: u64,
    seen: String,
    posting: Option<PostKind>,
    context: &Context<'_>,
) -> Option<Next> {
    let limits = context.delivery.limits;
    if !is_owed(posting.as_ref(), context)
        && posting_is_decoration(session, posting.as_ref(), context)
    {
        return None;
    }
    if session.turn.is_none() && context.delivery.is_given_up() {
        return Some(Next::Done);
    }
    // The thread's messages wait behind a reset.
    let is_reset = matches!(context.delivery.message.work, Work::Reset { .. });
    if is_reset
        && posting.is_none()
        && session.turn.is_none()
        && session.sandbox.phase == Phase::Destroying
        && lease::is_held_too_long(session, context)
    {
        return give_up(session, &words::kept_failing(Some(&seen)), false, context);
    }
    let (attempts, most) = session.turn.as_mut().map_or(
        // Without a turn there is no count on record: the queue's receive count ends it.
        (context.delivery.receive, u32::MAX),
        |turn| {
            turn.trouble = Some(seen.clone());
            match turn.stage {
                // Refusals by the chat have a count of their own: crashes, or an answer that was hard to read again,
                // must not use up the tries for telling the end.
                Stage::Ending { .. } if posting.is_some() => {
                    turn.tries.refusals += 1;
                    return (turn.tries.refusals, limits.retry.refusals);
                }
                Stage::Running(_) => turn.tries.attempts += 1,
                _ => {}
            }
            (turn.tries.attempts + 1, limits.retry.attempts + 1)
        },
    );
    if attempts > most {
        if unposted::goes_on(session, posting.as_ref(), &seen, context) {
            return None;
        }
        let reason = words::kept_failing(Some(&seen));
        return give_up(session, &reason, posting.is_some(), context);
    }
    Some(Next::Hold { delay_ms: limits.retry.backoff_asked(attempts, after_ms), why: seen })
}

/// A notice is owed to the person who asked for a reset and to the thread of a dead letter; that of a sweep is a
/// courtesy.
pub(super) fn is_owed(posting: Option<&PostKind>, context: &Context<'_>) -> bool {
    let swept = matches!(context.delivery.message.work, Work::Sweep);
    matches!(posting, Some(PostKind::Notice)) && !swept
}

/// A card that only shows progress may fail: the next card and the end are posted all the same.
pub(super) fn posting_is_decoration(
    session: &mut Session,
    posting: Option<&PostKind>,
    context: &Context<'_>,
) -> bool {
    match (posting, &session.turn) {
        // The run goes on without a new card for a while; the old one stays.
        (Some(PostKind::Card | PostKind::Rolled(_)), Some(turn))
            if turn.card.at.is_none() && turn.stage.is_running() =>
        {
            session.observed.chat.card_retry_ms =
                Some(context.now_ms + context.delivery.limits.retry.backoff_ms_max);
            true
        }
        (Some(PostKind::Card | PostKind::Rolled(_)), Some(turn)) => {
            turn.card.at.is_some() && !turn.stage.is_ending()
        }
        (Some(PostKind::Notice), None) => {
            session.observed.chat.noticed = true;
            true
        }
        _ => false,
    }
}

/// The thread was found closed while the end of a turn is told.
pub(super) fn at_the_end(
    session: &mut Session,
    seen: String,
    context: &Context<'_>,
) -> Option<Next> {
    let limits = context.delivery.limits;
    let turn = session.turn.as_mut()?;
    turn.tries.refusals += 1;
    if turn.tries.refusals <= limits.retry.closed_tries {
        return Some(Next::Hold { delay_ms: limits.retry.backoff(turn.tries.refusals), why: seen });
    }
    session.observed.chat.closed = Some(seen);
    None
}

/// A retry cannot help: the turn fails for this reason; a half-made sandbox is deleted.
pub(super) fn give_up(
    session: &mut Session,
    reason: &str,
    posting: bool,
    context: &Context<'_>,
) -> Option<Next> {
    match session.turn.as_ref().map(|turn| &turn.stage) {
        // The chat works, but the answer cannot be read again: that is told instead.
        Some(Stage::Ending { outcome: Outcome::Answered, .. })
            if !posting && session.observed.agent.answer.is_none() =>
        {
            record::fail(session, reason);
        }
        // The end could not even be told: the record keeps the outcome, and the worker's log says that it was not told.
        Some(Stage::Ending { .. }) => {
            session.observed.chat.untold = session.turn.as_ref().map(|turn| turn.id.clone());
            record::close_untold(session, reason, context);
        }
        Some(_) => record::fail(session, reason),
        None if matches!(context.delivery.message.work, Work::Publish { .. }) => {
            publish::refused(session, reason, context);
        }
        None => operated::refused(session, reason, context),
    }
    // Another holder of the lease may be starting or stopping the sandbox: leave it alone.
    if record::foreign_lease_ms(session, context).is_some() {
        return None;
    }
    match session.sandbox.phase {
        Phase::Creating => {
            outside::ends_half_made(session);
            session.observed.sandbox.state = None;
            record::enter(session, Phase::Destroying, "it could not be prepared", context);
            record::lease(session, context);
        }
        // Deleting is refused for good: the orphan sweep and the provider's own lifetime remain.
        Phase::Destroying if session.turn.is_none() => {
            record::enter(session, Phase::Error, reason, context);
            session.observed.trouble = Some(reason.to_owned());
        }
        Phase::Pausing if session.turn.is_none() => return Some(Next::Done),
        // A snapshot is not to be deleted: the sweeper sends another sweep.
        Phase::Destroyed | Phase::Error
            if session.turn.is_none() && matches!(context.delivery.message.work, Work::Sweep) =>
        {
            return Some(Next::Done);
        }
        _ => {}
    }
    None
}
