//! What who runs the stack wants of a thread's sandbox: pause it, bring it back, delete it.
//!
//! It travels through the thread's own group like everything else, so when it comes to the head no turn runs: it cannot hit
//! one. Who does not want to wait for a running turn ends that first, as anybody would, by a cancel flag. What came of it
//! goes on record. A sandbox that is not there is never made: that is for a prompt.

use super::{Context, Next, lease, provision, record, teardown, tell, words};
use crate::message::{Operation, Work};
use crate::outcome::Outcome;
use crate::sandbox::{OPERATED_MAX, Operated, Phase, SandboxState};
use crate::session::Session;

/// What it needs next.
pub(super) fn next(session: &mut Session, want: Operation, context: &Context<'_>) -> Next {
    if session.turn.is_some()
        && let Some(next) = tell::leftover(session, context)
    {
        return next;
    }
    if known(session, context).is_some() {
        return over(session, want, context);
    }
    if let Some(delay_ms) = record::foreign_lease_ms(session, context) {
        return Next::Hold {
            delay_ms,
            why: "another delivery may still be stopping the sandbox".to_owned(),
        };
    }
    // What is half done then is for the sweeper to finish.
    if context.delivery.receive > context.delivery.limits.attempts + 1 {
        return end(session, want, Some("it kept failing"), context);
    }
    match want {
        Operation::Pause => pause(session, context),
        Operation::Resume => resume(session, context),
        Operation::Destroy => destroy(session, context),
        Operation::Forget => forget(session, context),
    }
}

fn pause(session: &mut Session, context: &Context<'_>) -> Next {
    let want = Operation::Pause;
    match session.sandbox.phase {
        Phase::Active | Phase::Resuming => {
            record::enter(session, Phase::Pausing, "paused by the operator", context);
            record::lease(session, context);
        }
        Phase::Pausing => {}
        Phase::Paused => return end(session, want, None, context),
        Phase::Creating => return end(session, want, Some("it is still being made"), context),
        Phase::Destroying => return end(session, want, Some("it is being deleted"), context),
        Phase::Destroyed | Phase::Error => return end(session, want, Some(NONE), context),
    }
    let next = teardown::pause(session, context);
    match session.sandbox.phase {
        Phase::Pausing => next,
        Phase::Paused => end(session, want, None, context),
        _ => end(session, want, Some("it does not exist any more"), context),
    }
}

fn destroy(session: &mut Session, context: &Context<'_>) -> Next {
    let want = Operation::Destroy;
    match session.sandbox.phase {
        Phase::Destroyed | Phase::Error => return end(session, want, Some(NONE), context),
        Phase::Destroying => {}
        Phase::Creating | Phase::Active | Phase::Pausing | Phase::Paused | Phase::Resuming => {
            teardown::begin_destroying(session, "deleted by the operator", context);
        }
    }
    match lease::delete(session, context) {
        Some(next) => next,
        None => end(session, want, None, context),
    }
}

fn resume(session: &mut Session, context: &Context<'_>) -> Next {
    let want = Operation::Resume;
    let limits = context.delivery.limits;
    match (session.sandbox.phase, &session.observed.sandbox) {
        (Phase::Active, _) if session.observed.healthy => {
            // Who wants it to run wants to use it: its idle time begins now.
            session.sandbox.last_activity_ms = context.now_ms;
            record::arm(session, context);
            return end(session, want, None, context);
        }
        (Phase::Destroyed | Phase::Error, _) => return end(session, want, Some(NONE), context),
        (Phase::Creating, _) => {
            return end(session, want, Some("it is still being made"), context);
        }
        (Phase::Destroying, _) => return end(session, want, Some("it is being deleted"), context),
        (_, Some(SandboxState::Gone)) => {
            record::gone(session, "the sandbox vanished", context);
            return end(session, want, Some("it does not exist any more"), context);
        }
        (_, Some(SandboxState::Broken { reason, .. })) => {
            let trouble = words::broken(reason);
            return end(session, want, Some(&trouble), context);
        }
        _ => {}
    }
    if session.observed.downs > limits.server_restarts + 1 {
        let seen = session.observed.trouble.take().unwrap_or_default();
        let trouble = format!("its server does not answer: {seen}");
        return end(session, want, Some(&trouble), context);
    }
    match provision::step(session, context) {
        Some(next) => next,
        // Every way on but being ready is a turn's; without one it is that the sandbox took too long.
        None if session.sandbox.phase == Phase::Active => resume(session, context),
        None => {
            let trouble = words::not_ready(limits.start_ms);
            end(session, want, Some(&trouble), context)
        }
    }
}

/// What a repeat of a message needs stays: the ids of what has ended, and the generation, which never comes back.
fn forget(session: &mut Session, context: &Context<'_>) -> Next {
    let want = Operation::Forget;
    if !matches!(session.sandbox.phase, Phase::Destroyed) {
        let trouble = "it still has a sandbox with people's files: destroy that first";
        return end(session, want, Some(trouble), context);
    }
    for ended in &mut session.ended {
        match &mut ended.outcome {
            Outcome::Cancelled { by } => by.clear(),
            Outcome::Failed { reason } => reason.clear(),
            Outcome::Answered | Outcome::Joined { .. } | Outcome::Lost => {}
        }
    }
    session.sandbox.timeline.clear();
    session.shown.clear();
    (
        session.sandbox.repo,
        session.checked_options,
        session.briefed,
    ) = (None, None, None);
    session.fresh_since_ms = context.now_ms;
    for operated in &mut session.sandbox.operated {
        operated.trouble = operated.trouble.take().map(|_| String::new());
    }
    end(session, want, None, context)
}

/// What an operation would meet, as the record stands now; the group's head decides again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlook {
    /// It can be asked for.
    Open,
    /// A turn is under way: it waits for that one's end, or somebody ends it first.
    Busy,
    /// There is nothing for it to do; why.
    Pointless(&'static str),
}

/// What it would meet.
#[must_use]
pub fn outlook(session: &Session, want: Operation) -> Outlook {
    if session.turn.is_some() {
        return Outlook::Busy;
    }
    match (want, session.sandbox.phase) {
        (Operation::Forget, Phase::Destroyed) => Outlook::Open,
        (Operation::Forget, _) => {
            Outlook::Pointless("it still has a sandbox with people's files: destroy that first")
        }
        (_, Phase::Destroyed | Phase::Error) => Outlook::Pointless(NONE),
        (Operation::Pause, Phase::Paused) => Outlook::Pointless("it is paused already"),
        _ => Outlook::Open,
    }
}

/// Why there is nothing to be done.
const NONE: &str = "the thread has no sandbox";

/// A repeat cannot help: the record says so.
pub(super) fn refused(session: &mut Session, reason: &str, context: &Context<'_>) {
    if let Work::Operate { want } = context.delivery.message.work
        && known(session, context).is_none()
    {
        remember(session, want, Some(reason), context);
    }
}

fn end(
    session: &mut Session,
    want: Operation,
    trouble: Option<&str>,
    context: &Context<'_>,
) -> Next {
    remember(session, want, trouble, context);
    over(session, want, context)
}

/// What is left to do once it is on record: people are told that their files are gone.
fn over(session: &mut Session, want: Operation, context: &Context<'_>) -> Next {
    let deleted = known(session, context).is_some_and(|known| known.trouble.is_none());
    if want == Operation::Destroy && deleted {
        session.observed.trouble = None;
        return teardown::notice(session, words::DESTROYED, context);
    }
    record::at_rest(session, Next::Done, context)
}

fn known<'a>(session: &'a Session, context: &Context<'_>) -> Option<&'a Operated> {
    let id = &context.delivery.message.id;
    session.sandbox.operated.iter().find(|one| one.id == *id)
}

fn remember(session: &mut Session, want: Operation, trouble: Option<&str>, context: &Context<'_>) {
    session.sandbox.operated.push(Operated {
        id: context.delivery.message.id.clone(),
        want,
        at_ms: context.now_ms,
        trouble: trouble.map(str::to_owned),
    });
    let surplus = session.sandbox.operated.len().saturating_sub(OPERATED_MAX);
    session.sandbox.operated.drain(..surplus);
}
