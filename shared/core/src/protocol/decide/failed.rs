//! What a failure means: the failure table of the design, row by row (docs/PROTOCOL.md, "What a failure means").

use super::{
    Context, Next, absence, aside, lease, operate, outage, outside, record, results, stray, untold,
    words,
};
use crate::base::failure::Failure;
use crate::base::ids::{PostKind, ThreadKey};
use crate::protocol::effect::{AgentEffect, ChatEffect, Effect, SandboxEffect, Sending};
use crate::records::message::Work;
use crate::records::outcome::Outcome;
use crate::records::sandbox::Phase;
use crate::records::session::{Missing, Session};
use crate::records::stage::Stage;

/// The failure table: a step is returned only where the failure itself ends the delivery.
pub(super) fn failed(
    session: &mut Session,
    of: &Effect,
    failure: Failure,
    context: &Context<'_>,
) -> Option<Next> {
    absence::failed_to_confirm(session, of);
    if untold::is_about(session, of) {
        untold::failed(session, &failure, context);
        return None;
    }
    if let Some(aside) = aside::kind(session, of) {
        return aside::refused(session, aside, &failure, context);
    }
    if let Effect::EndTools { .. } = of {
        return Some(outside::not_ended(&failure, context));
    }
    if let Effect::Chat(ChatEffect::Tell { thread, .. }) = of {
        return not_told(session, thread, &failure, context);
    }
    if let Effect::Chat(ChatEffect::TellBeside { .. }) = of {
        session.observed.told.insert(session.thread.clone());
        return None;
    }
    if results::could_not_be_read(session, of) {
        return None;
    }
    let ends_run = matches!(of, Effect::Agent(AgentEffect::EndRun(_)));
    if ends_run && stray::not_ended(session, &failure, context) {
        return None;
    }
    let posting = of.posts();
    if results::gives_up_showing(session, posting.as_ref(), &failure, context) {
        return None;
    }
    if let Failure::Wait { .. } | Failure::NonRecoverable { .. } = failure {
        lease::release(session, of, context);
    }
    match failure {
        Failure::Wait { after_ms, seen } => return wait(session, after_ms, seen, posting, context),
        Failure::Outage { after_ms, seen } => {
            return wait_out(session, after_ms, &seen, posting, context);
        }
        // The loop gives its message back before it asks; said here too, so that the table is whole.
        Failure::Newer { seen } => {
            return Some(Next::Hold {
                delay_ms: context.delivery.limits.retry.newer_ms_max,
                why: seen,
            });
        }
        Failure::SessionMissing => {
            // First its end, which notes the run by the session's id.
            let turn = session.turn.as_ref();
            if turn.is_some_and(|turn| turn.stage.is_running()) {
                record::fail(session, words::SESSION_VANISHED);
            }
            session.agent_session = None;
            session.observed.agent_session = false;
        }
        Failure::SandboxDown { seen } => {
            sandbox_down(session, &seen, is_first_sending(of), context);
        }
        Failure::SandboxGone => {
            let by = if ends_run {
                Missing::EndRun
            } else {
                let first_sending = is_first_sending(of);
                Missing::Call { first_sending }
            };
            absence::claimed(session, by, context);
        }
        Failure::ResumeFailed { seen } => return resume_failed(session, seen, context),
        Failure::NonRecoverable { advice } => {
            if posting_is_decoration(session, posting.as_ref(), context) {
                return None;
            }
            return give_up(session, &advice, posting.is_some(), context);
        }
        Failure::ThreadClosed { seen } => return untold::refused(session, of, seen, context),
        Failure::ThreadGone { seen } => thread_gone(session, seen, context),
        // What it was to begin with is not there, or is not for it: the next try goes without.
        Failure::TurnFailed { reason } if is_create(of) && session.sandbox.snapshot.is_some() => {
            session.sandbox.snapshot = None;
            return give_up(session, &reason, false, context);
        }
        // Half made it is of no use to whoever wanted it like that.
        Failure::TurnFailed { reason } if session.sandbox.phase == Phase::Creating => {
            return give_up(session, &reason, posting.is_some(), context);
        }
        Failure::TurnFailed { reason } => {
            // What it lacks, others may not want of it: it is up.
            if session.sandbox.phase == Phase::Resuming && session.observed.healthy {
                record::enter(session, Phase::Active, "ready", context);
            }
            match &mut session.turn {
                Some(turn) if turn.stage.is_running() => turn.aborting = Some(reason),
                _ => record::fail(session, &reason),
            }
        }
    }
    None
}

/// Another thread could not be told what became of its sandbox: that is waited for, and given up in the end, because the
/// sandbox is gone whether anybody hears of it or not. A sweep holds its sandbox's group up no longer than a few deliveries.
fn not_told(
    session: &mut Session,
    thread: &ThreadKey,
    failure: &Failure,
    context: &Context<'_>,
) -> Option<Next> {
    let limits = context.delivery.limits;
    let message = context.delivery.message;
    let is_waited_for = match message.work {
        Work::Sweep => context.delivery.receive <= limits.retry.attempts,
        _ => context.now_ms < message.accepted_at_ms + limits.retry.telling_ms,
    };
    match failure {
        Failure::Wait { after_ms, seen } | Failure::Outage { after_ms, seen } if is_waited_for => {
            let delay_ms = limits.retry.outage_backoff(context.delivery.receive);
            Some(Next::Hold { delay_ms: delay_ms.max(*after_ms), why: seen.clone() })
        }
        _ => {
            session.observed.told.insert(thread.clone());
            None
        }
    }
}

/// It may work on a repeat: a bounded number of them.
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
    let (attempts, most) = session.turn.as_mut().map_or(
        // What has no turn has no count on record: the queue's own ends it.
        (context.delivery.receive, u32::MAX),
        |turn| {
            turn.trouble = Some(seen.clone());
            match turn.stage {
                // The chat's refusals have a count of their own: crashes, or an answer that was hard to read again, must
                // not use up what the telling of the end may take.
                Stage::Ending { .. } if posting.is_some() => {
                    turn.refusals += 1;
                    return (turn.refusals, limits.retry.refusals);
                }
                Stage::Running(_) => turn.attempts += 1,
                _ => {}
            }
            (turn.attempts + 1, limits.retry.attempts + 1)
        },
    );
    if attempts > most {
        let reason = words::kept_failing(Some(&seen));
        return give_up(session, &reason, posting.is_some(), context);
    }
    Some(Next::Hold { delay_ms: limits.retry.backoff_asked(attempts, after_ms), why: seen })
}

/// Something that Bobbin stands on is away: it is waited for by time.
fn wait_out(
    session: &mut Session,
    after_ms: u64,
    seen: &str,
    posting: Option<PostKind>,
    context: &Context<'_>,
) -> Option<Next> {
    let waited = if posting.is_none() {
        outage::of_provider(session, after_ms, seen, context)
    } else if !is_owed(posting.as_ref(), context)
        && posting_is_decoration(session, posting.as_ref(), context)
    {
        return None;
    } else {
        outage::of_chat(session, after_ms, seen, context).ok_or_else(|| seen.to_owned())
    };
    match waited {
        Ok(hold) => Some(hold),
        Err(words) => give_up(session, &words, posting.is_some(), context),
    }
}

/// Who asked for a reset is owed its word, and so is a dead letter's thread; that of a sweep is a courtesy.
pub(super) fn is_owed(posting: Option<&PostKind>, context: &Context<'_>) -> bool {
    let swept = matches!(context.delivery.message.work, Work::Sweep);
    matches!(posting, Some(PostKind::Notice)) && !swept
}

/// The server came up and never became healthy: it is ended and started anew, a bounded number of times.
fn resume_failed(session: &mut Session, seen: String, context: &Context<'_>) -> Option<Next> {
    let limits = context.delivery.limits;
    session.observed.healthy = false;
    session.observed.restart_server = true;
    let spent = session.turn.as_mut().is_none_or(|turn| {
        turn.server_restarts += 1;
        turn.trouble = Some(seen.clone());
        turn.server_restarts > limits.turn.server_restarts
    });
    if spent {
        return give_up(session, &words::server_unhealthy(&seen), false, context);
    }
    None
}

/// Nobody can be told anything there any more.
fn thread_gone(session: &mut Session, seen: String, context: &Context<'_>) {
    // An agent that works for nobody is stopped first; its end cannot be told either.
    if let Some(turn) = &mut session.turn
        && turn.stage.is_running()
        && turn.aborting.is_none()
        && !session.observed.abort_sent
    {
        turn.aborting = Some(seen);
        session.observed.card_retry_ms =
            Some(context.now_ms + context.delivery.limits.sandbox.stop_ms);
        return;
    }
    record::close_untold(session, &seen, context);
    session.observed.noticed = true;
}

/// A card that only shows progress may fail: the next one, and the end, are posted all the same.
pub(super) fn posting_is_decoration(
    session: &mut Session,
    posting: Option<&PostKind>,
    context: &Context<'_>,
) -> bool {
    match (posting, &session.turn) {
        // The run goes on without a new card for a while; the old one stands.
        (Some(PostKind::Card | PostKind::Rolled(_)), Some(turn))
            if turn.card.is_none() && turn.stage.is_running() =>
        {
            session.observed.card_retry_ms =
                Some(context.now_ms + context.delivery.limits.retry.backoff_ms_max);
            true
        }
        (Some(PostKind::Card | PostKind::Rolled(_)), Some(turn)) => {
            turn.card.is_some() && !turn.stage.is_ending()
        }
        (Some(PostKind::Notice), None) => {
            session.observed.noticed = true;
            true
        }
        _ => false,
    }
}

/// The server or its sandbox does not answer: look again from the sandbox up, a bounded number of times.
pub(super) fn sandbox_down(session: &mut Session, seen: &str, unsent: bool, context: &Context<'_>) {
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
                turn.resends > limits.turn.resends
            }
            Stage::Received { .. } if session.sandbox.phase == Phase::Active => {
                turn.server_restarts > limits.turn.server_restarts
            }
            Stage::Received { .. } => {
                turn.server_restarts += 1;
                turn.server_restarts > limits.turn.server_restarts
            }
            Stage::Ending { .. } => {
                turn.attempts += 1;
                turn.attempts > limits.retry.attempts
            }
        };
        if spent {
            record::fail(session, &words::server_went_away(seen));
        }
    } else {
        session.observed.downs += 1;
        session.observed.trouble = Some(seen.to_owned());
    }
    session.observed.healthy = false;
    session.observed.agent_session = false;
    session.observed.seen.doubt = None;
    session.observed.found = None;
    session.observed.sandbox = None;
    session.observed.start_asked = false;
    if session.sandbox.phase == Phase::Active {
        record::enter(session, Phase::Resuming, "the server does not answer", context);
        record::lease_to_bring_up(session, context);
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
        Some(Stage::Ending { outcome: Outcome::Answered, .. })
            if !posting && session.observed.answer.is_none() =>
        {
            record::fail(session, reason);
        }
        // It could not even be told: the record says how it ended, and the log of the worker that it was not told.
        Some(Stage::Ending { .. }) => {
            session.observed.untold = session.turn.as_ref().map(|turn| turn.id.clone());
            record::close_untold(session, reason, context);
        }
        Some(_) => record::fail(session, reason),
        None => operate::refused(session, reason, context),
    }
    // Somebody else may be bringing it up, or down: that is theirs.
    if record::foreign_lease_ms(session, context).is_some() {
        return None;
    }
    match session.sandbox.phase {
        Phase::Creating => {
            outside::ends_half_made(session);
            session.observed.sandbox = None;
            record::enter(session, Phase::Destroying, "it could not be made ready", context);
            record::lease(session, context);
        }
        // Deleting is refused for good: the orphan hunt and the provider's own lifetime remain.
        Phase::Destroying if session.turn.is_none() => {
            record::enter(session, Phase::Error, reason, context);
            session.observed.trouble = Some(reason.to_owned());
        }
        Phase::Pausing if session.turn.is_none() => return Some(Next::Done),
        _ => {}
    }
    None
}

const fn is_create(of: &Effect) -> bool {
    matches!(of, Effect::Sandbox(SandboxEffect::Create { .. }))
}

/// Whether this sends a prompt for the first time: where it fails, nobody knows whether it arrived.
pub(super) fn is_first_sending(of: &Effect) -> bool {
    matches!(of, Effect::Agent(AgentEffect::SendPrompt { sending: Sending::First { .. }, .. }))
}
