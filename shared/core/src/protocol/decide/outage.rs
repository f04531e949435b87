//! Outages of chat and provider are waited for by time, not by count: they use up no thread's tries, and cost nobody
//! the answer.

use super::{Context, Next, words};
use crate::base::ids::Ms;
use crate::records::message::Work;
use crate::records::publication::WaitedMessage;
use crate::records::session::Session;
use crate::records::stage::Stage;

/// The chat does not answer, or rejects the key. `None` once that has lasted longer than the end of a turn may take to
/// be told.
pub(super) fn of_chat(
    session: &mut Session,
    after_ms: u64,
    seen: &str,
    context: &Context<'_>,
) -> Option<Next> {
    if let Some(turn) = &mut session.turn {
        let since_ms = *turn.outages.chat_since_ms.get_or_insert(context.now_ms);
        turn.trouble = Some(seen.to_owned());
        if context.now_ms >= since_ms + context.delivery.limits.retry.telling_ms {
            return None;
        }
        return Some(hold_since(since_ms, after_ms, seen, context));
    }
    waits(session, context);
    Some(hold(after_ms, seen, context))
}

/// The chat answers: its outage is over.
pub(super) fn chat_answered(session: &mut Session) {
    if let Some(turn) = &mut session.turn
        && turn.outages.chat_since_ms.take().is_some()
    {
        turn.trouble = None;
    }
}

/// The provider answers nobody. A turn whose prompt the agent has waits as long as the run may take, and an answer as
/// long as telling it may take. Work that no person asked for does not wait.
///
/// # Errors
/// The reason with which the turn or the operation is given up after that.
pub(super) fn of_provider(
    session: &mut Session,
    after_ms: u64,
    seen: &str,
    context: &Context<'_>,
) -> Result<Next, String> {
    let limits = context.delivery.limits;
    let message = context.delivery.message;
    if context.delivery.is_given_up() {
        return Ok(Next::Done);
    }
    if message.work.is_by_itself() {
        return Ok(hold(after_ms, seen, context));
    }
    if session.turn.is_none() {
        // A push may have waited behind a long turn.
        let since_ms = waits(session, context).map_or(message.accepted_at_ms, |waited| {
            *waited.out_since_ms.get_or_insert(context.now_ms)
        });
        if context.now_ms >= since_ms + limits.retry.outage_ms {
            return Err(words::outage(seen, limits.retry.outage_ms, false));
        }
    }
    if let Some(turn) = &mut session.turn {
        let since_ms = *turn.outages.provider_since_ms.get_or_insert(context.now_ms);
        turn.trouble = Some(seen.to_owned());
        let (bound_ms, begun) = match turn.stage {
            Stage::Received { .. } => (limits.retry.outage_ms, false),
            Stage::Prompting(_) | Stage::Running(_) => (limits.turn.turn_ms, true),
            Stage::Ending { .. } => (limits.retry.telling_ms, true),
        };
        if context.now_ms >= since_ms + bound_ms {
            turn.outages.provider_since_ms = None;
            return Err(words::outage(seen, bound_ms, begun));
        }
        return Ok(hold_since(since_ms, after_ms, seen, context));
    }
    Ok(hold(after_ms, seen, context))
}

/// The provider answers: its outage is over.
pub(super) fn provider_answered(session: &mut Session) {
    if let Some(turn) = &mut session.turn
        && turn.outages.provider_since_ms.take().is_some()
    {
        turn.trouble = None;
    }
}

/// The tries of a message about a pull request are on record: this delivery is none. `None`: it is another message.
fn waits<'a>(session: &'a mut Session, context: &Context<'_>) -> Option<&'a mut WaitedMessage> {
    let (message, receive) = (context.delivery.message, context.delivery.receive);
    if !matches!(message.work, Work::Publish { .. }) {
        return None;
    }
    Some(session.published.waits(&message.id, receive))
}

/// The delay grows with the outage, not with the deliveries: most deliveries of a turn may have been polls of its run.
fn hold_since(since_ms: Ms, after_ms: u64, seen: &str, context: &Context<'_>) -> Next {
    let limits = context.delivery.limits;
    let delay_ms = limits.retry.outage_delay(context.now_ms.saturating_sub(since_ms));
    Next::Hold {
        delay_ms: delay_ms.max(after_ms).min(limits.retry.outage_backoff_ms_max),
        why: seen.to_owned(),
    }
}

/// A message without a turn is never polled: each of its deliveries is a try.
fn hold(after_ms: u64, seen: &str, context: &Context<'_>) -> Next {
    let limits = context.delivery.limits;
    let delay_ms = limits.retry.outage_backoff(context.delivery.receive);
    Next::Hold {
        delay_ms: delay_ms.max(after_ms).min(limits.retry.outage_backoff_ms_max),
        why: seen.to_owned(),
    }
}
