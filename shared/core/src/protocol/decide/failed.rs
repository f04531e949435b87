//! What a failure means: the failure table of the design, row by row (docs/PROTOCOL.md, "What a failure means").

use super::{
    Context, Next, absence, budget, build, extra_posts, forge, lease, outage, outside, record,
    results, server_down, set_up, stray_run, unposted, wait, watch, words,
};
use crate::base::failure::Failure;
use crate::base::ids::ThreadKey;
use crate::base::names::PostKind;
use crate::protocol::effect::{AgentEffect, ChatEffect, Effect, SandboxEffect, Sending};
use crate::records::message::Work;
use crate::records::observations::Missing;
use crate::records::sandbox::Phase;
use crate::records::session::Session;

/// The failure table. Returns a step only if the failure itself ends the delivery.
pub(super) fn failed(
    session: &mut Session,
    of: &Effect,
    failure: Failure,
    context: &Context<'_>,
) -> Option<Next> {
    absence::failed_to_confirm(session, of);
    if unposted::is_about(session, of) {
        unposted::failed(session, &failure, context);
        return None;
    }
    if watch::is_about(of) {
        watch::failed(session, of, &failure, context);
        return None;
    }
    if let Some(aside) = extra_posts::kind(session, of) {
        return extra_posts::refused(session, aside, &failure, context);
    }
    if build::requested(session, of) || build::could_not_be_found(session, of, &failure) {
        return None;
    }
    if set_up::could_not_start_held(session, of, context) {
        return None;
    }
    let is_useless = match failure {
        Failure::TurnFailed { .. } | Failure::NonRecoverable { .. } => Some(true),
        Failure::Wait { .. } => Some(false),
        _ => None,
    };
    if let Some(is_useless) = is_useless.filter(|_| is_create(of))
        && session.sandbox.project.set_up.is_none()
        && build::begin_without(session, is_useless, context)
    {
        return None;
    }
    if let Effect::EndTools = of {
        return Some(outside::not_ended(&failure, context));
    }
    if let Effect::Chat(ChatEffect::Tell { thread, .. }) = of {
        return not_notified(session, thread, &failure, context);
    }
    if let Effect::Chat(ChatEffect::TellBeside { .. }) = of {
        session.observed.chat.told.insert(session.thread.clone());
        return None;
    }
    if results::could_not_be_read(session, of) {
        return None;
    }
    if forge::could_not_be_moved(session, of, &failure, context) {
        return None;
    }
    let ends_run = matches!(of, Effect::Agent(AgentEffect::EndRun(_)));
    if ends_run && stray_run::not_ended(session, &failure, context) {
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
        Failure::Wait { after_ms, seen } => {
            return wait::wait(session, after_ms, seen, posting, context);
        }
        Failure::Outage { after_ms, seen } => {
            return wait_out(session, after_ms, &seen, posting, context);
        }
        // The loop retries such a message before it asks; repeated here so that the table is complete.
        Failure::Newer { seen } => {
            return Some(Next::Hold {
                delay_ms: context.delivery.limits.retry.newer_ms_max,
                why: seen,
            });
        }
        Failure::SessionMissing => {
            // First the end of the turn, which notes the run by the session's id.
            let turn = session.turn.as_ref();
            if turn.is_some_and(|turn| turn.stage.is_running()) {
                record::fail(session, words::SESSION_VANISHED);
            }
            session.conversation.session = None;
            session.observed.agent.session = false;
        }
        Failure::SandboxDown { seen } => {
            server_down::sandbox_down(session, &seen, is_first_sending(of), context);
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
            if wait::posting_is_decoration(session, posting.as_ref(), context) {
                return None;
            }
            if unposted::goes_on(session, posting.as_ref(), &advice, context) {
                return None;
            }
            return wait::give_up(session, &advice, posting.is_some(), context);
        }
        Failure::ThreadClosed { seen } => return unposted::refused(session, of, seen, context),
        Failure::ThreadGone { seen } => thread_gone(session, seen, context),
        // The snapshot does not exist, or is not meant for this sandbox: the next try goes without it.
        Failure::TurnFailed { reason }
            if is_create(of) && session.sandbox.spec.snapshot.is_some() =>
        {
            session.sandbox.spec.snapshot = None;
            return wait::give_up(session, &reason, false, context);
        }
        // A half-made sandbox is of no use to the requester.
        Failure::TurnFailed { reason } if session.sandbox.phase == Phase::Creating => {
            return wait::give_up(session, &reason, posting.is_some(), context);
        }
        Failure::OverBudget { reason } => budget::refused_by_vendor(session, reason),
        Failure::TurnFailed { reason } => {
            // The sandbox is up; other turns may not need what this one lacks.
            if session.sandbox.phase == Phase::Resuming && session.observed.agent.healthy {
                record::enter(session, Phase::Active, "ready", context);
            }
            match &mut session.turn {
                Some(turn) if turn.stage.is_running() => turn.abort(reason),
                _ => record::fail(session, &reason),
            }
        }
    }
    None
}

/// Another thread could not be told what happened to its sandbox. That is retried and given up in the end, because the
/// sandbox is gone whether anybody hears of it or not. A sweep blocks its sandbox's group for a few deliveries at most.
fn not_notified(
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
            session.observed.chat.told.insert(thread.clone());
            None
        }
    }
}

/// A service that Bobbin depends on is unavailable: waited for by time.
fn wait_out(
    session: &mut Session,
    after_ms: u64,
    seen: &str,
    posting: Option<PostKind>,
    context: &Context<'_>,
) -> Option<Next> {
    let waited = if posting.is_none() {
        outage::of_provider(session, after_ms, seen, context)
    } else if !wait::is_owed(posting.as_ref(), context)
        && wait::posting_is_decoration(session, posting.as_ref(), context)
    {
        return None;
    } else {
        outage::of_chat(session, after_ms, seen, context).ok_or_else(|| seen.to_owned())
    };
    match waited {
        Ok(hold) => Some(hold),
        Err(words) => wait::give_up(session, &words, posting.is_some(), context),
    }
}

/// The server came up but never became healthy: it is stopped and started again, a bounded number of times.
fn resume_failed(session: &mut Session, seen: String, context: &Context<'_>) -> Option<Next> {
    let limits = context.delivery.limits;
    session.observed.agent.healthy = false;
    session.observed.agent.restart_server = true;
    let spent = session.turn.as_mut().is_none_or(|turn| {
        turn.tries.server_restarts += 1;
        turn.trouble = Some(seen.clone());
        turn.tries.server_restarts > limits.turn.server_restarts
    });
    if spent {
        return wait::give_up(session, &words::server_unhealthy(&seen), false, context);
    }
    None
}

/// Nothing can be posted in the thread any more.
fn thread_gone(session: &mut Session, seen: String, context: &Context<'_>) {
    // An agent that works for nobody is stopped first; its end cannot be told either.
    if let Some(turn) = &mut session.turn
        && turn.stage.is_running()
        && turn.aborting().is_none()
        && !session.observed.agent.abort_sent
    {
        turn.abort(seen);
        session.observed.chat.card_retry_ms =
            Some(context.now_ms + context.delivery.limits.sandbox.stop_ms);
        return;
    }
    record::close_untold(session, &seen, context);
    session.observed.chat.noticed = true;
}

const fn is_create(of: &Effect) -> bool {
    matches!(of, Effect::Sandbox(SandboxEffect::Create { .. }))
}

/// Whether this sends a prompt for the first time: after a failure, nobody knows whether it arrived.
pub(super) fn is_first_sending(of: &Effect) -> bool {
    matches!(of, Effect::Agent(AgentEffect::SendPrompt { sending: Sending::First { .. }, .. }))
}
