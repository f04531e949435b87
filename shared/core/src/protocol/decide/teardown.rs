//! Pauses idle sandboxes, and destroys expired or reset ones. Only here is anything stopped or deleted.

use super::{
    Context, Next, build, finish, lease, notice, outside, record, share, stray_run, watch, words,
};
use crate::base::person::{Membership, Person};
use crate::protocol::effect::{Effect, SandboxEffect};
use crate::records::outcome::Outcome;
use crate::records::sandbox::{Phase, SandboxState};
use crate::records::session::Session;
use crate::records::turn::EndedTurn;

/// Next step of a sweep: it looks at the record, not at why it was sent.
pub(super) fn sweep(session: &mut Session, context: &Context<'_>) -> Next {
    let next = sweep_step(session, context);
    record::at_rest(session, next, context)
}

/// Checks whether the sandbox still exists, or was deleted behind our back while nothing ran.
pub(super) fn reconcile(session: &mut Session, context: &Context<'_>) -> Next {
    let is_lost = session.sandbox.phase == Phase::Destroyed
        && session.sandbox.history.vanished.map(|one| one.generation)
            == Some(session.sandbox.generation);
    let idle = (is_lost || matches!(session.sandbox.phase, Phase::Active | Phase::Paused))
        && session.turn.is_none()
        && record::is_idle(session, context);
    match &session.observed.sandbox.state {
        _ if !idle => {}
        None => {
            return Next::Do(Effect::Sandbox(SandboxEffect::Observe { after_ms: 0, watch: None }));
        }
        Some(SandboxState::Running) if is_lost => take_back(session, Phase::Active, context),
        Some(SandboxState::Stopped) if is_lost => take_back(session, Phase::Paused, context),
        Some(SandboxState::Gone) if !is_lost => record::vanished(session, context),
        Some(_) => {}
    }
    Next::Done
}

/// A sandbox given up as vanished exists: its idle time begins now.
fn take_back(session: &mut Session, phase: Phase, context: &Context<'_>) {
    session.sandbox.history.vanished = None;
    session.sandbox.last_activity_ms = context.now_ms;
    record::enter(session, phase, "it exists after all", context);
}

fn sweep_step(session: &mut Session, context: &Context<'_>) -> Next {
    let limits = context.delivery.limits;
    if session.turn.is_some()
        && let Some(next) = finish::leftover(session, context)
    {
        return next;
    }
    if let Some(next) = watch::swept(session, context) {
        return next;
    }
    // The sweeper sends another sweep, and an operation on the sandbox would wait behind this one.
    if record::foreign_lease_ms(session, context).is_some() {
        return Next::Done;
    }
    if session.sandbox.phase == Phase::Active && session.stray.is_some() {
        // An unreachable sandbox is left to the sandbox's own sweep.
        return stray_run::end(session).unwrap_or(Next::Done);
    }
    // A sandbox that a turn works in, or waits for, is left to that turn.
    if !record::is_idle(session, context) {
        record::arm(session, context);
        return Next::Done;
    }
    let due = session.sandbox.due_at_ms.is_none_or(|due| context.now_ms >= due);
    let is_idle = context.now_ms >= session.sandbox.last_activity_ms + limits.sandbox.idle_pause_ms;
    let is_old = context.now_ms
        >= session.sandbox.phase_since_ms + record::paused_ttl_ms(session, &limits.sandbox);
    let would_end = match session.sandbox.phase {
        Phase::Active => is_idle,
        Phase::Resuming => due,
        Phase::Paused => is_old,
        _ => false,
    };
    if would_end && let Some(next) = outside::in_use_by_its_agent(session, context) {
        return next;
    }
    if let Some(next) = build::expire(session, context) {
        return next;
    }
    match session.sandbox.phase {
        Phase::Active | Phase::Resuming | Phase::Paused
            if session.sandbox.is_builder() && (is_idle || due) =>
        {
            begin_destroying(session, "its build has ended", context);
            destroy(session, None, context)
        }
        Phase::Active if is_idle => {
            record::enter(session, Phase::Pausing, "idle", context);
            record::lease(session, context);
            pause(session, context)
        }
        Phase::Resuming if due => {
            record::enter(session, Phase::Pausing, "nobody is waiting for it", context);
            record::lease(session, context);
            pause(session, context)
        }
        Phase::Pausing => pause(session, context),
        Phase::Paused if is_old => {
            outside::ends(session);
            begin_destroying(session, "paused for too long", context);
            destroy(session, Some(expired(session)), context)
        }
        Phase::Creating if due => {
            outside::ends_half_made(session);
            begin_destroying(session, "nobody is waiting for it", context);
            destroy(session, None, context)
        }
        Phase::Destroying => destroy(session, Some(expired(session)), context),
        Phase::Destroyed if session.observed.sandbox.state.is_some() => {
            destroy(session, Some(expired(session)), context)
        }
        Phase::Creating | Phase::Resuming => {
            let due_at_ms = session.sandbox.due_at_ms;
            record::arm(session, context);
            // A thread may be swept often while the sandbox is on its way up; that must not delay the sandbox's own
            // sweep.
            session.sandbox.due_at_ms = due_at_ms;
            Next::Done
        }
        Phase::Active | Phase::Paused => {
            record::arm(session, context);
            Next::Done
        }
        // Nor does the thread check any more what was left running in it.
        Phase::Destroyed | Phase::Error => {
            record::arm(session, context);
            Next::Done
        }
    }
}

const fn expired(session: &Session) -> &'static str {
    if session.sandbox.is_shared() { words::EXPIRED_SHARED } else { words::EXPIRED }
}

/// Begins a new conversation in the existing sandbox: the agent is no longer told what was said before.
pub(super) fn begin_anew(
    session: &mut Session,
    asker: (&Person, &Membership),
    context: &Context<'_>,
) -> Next {
    let message = context.delivery.message;
    if let Some(next) = share::before_a_wish(session, asker, context) {
        return next;
    }
    if !record::has_ended(session, &message.id) {
        session.conversation.session = None;
        session.conversation.fresh_since_ms = context.now_ms;
        let ended =
            EndedTurn { id: message.id.clone(), outcome: Outcome::Answered, at_ms: context.now_ms };
        record::remember(session, ended, context);
    }
    notice::once(session, words::BEGUN_ANEW, context)
}

/// Next step of a reset.
pub(super) fn reset(
    session: &mut Session,
    asker: (&Person, &Membership),
    context: &Context<'_>,
) -> Next {
    let message = context.delivery.message;
    if let Some(next) = share::before_a_wish(session, asker, context) {
        return next;
    }
    if record::has_ended(session, &message.id) {
        let word = if session.sandbox.is_shared() {
            words::reset_shared(&session.thread)
        } else {
            words::RESET.to_owned()
        };
        return notice::once(session, &word, context);
    }
    if session.sandbox.is_shared() {
        return share::reset(session, context);
    }
    if let Some(wait) = record::wait_for_lease(session, context) {
        return wait;
    }
    // A sandbox that was lost has left its tool sandbox; the end of that one is requested before anything else.
    if outside::ends(session) && !session.sandbox.is_alive() {
        record::arm(session, context);
        return outside::next(session).unwrap_or(Next::Done);
    }
    match session.sandbox.phase {
        Phase::Destroyed | Phase::Error => {
            session.conversation.session = None;
            session.sandbox.history.vanished = None;
            session.sandbox.project.repo = None;
            session.conversation.fresh_since_ms = context.now_ms;
            let ended = EndedTurn {
                id: message.id.clone(),
                outcome: Outcome::Answered,
                at_ms: context.now_ms,
            };
            record::remember(session, ended, context);
            notice::once(session, words::RESET, context)
        }
        Phase::Destroying => match lease::delete(session, context) {
            Some(Next::Hold { .. }) if is_overdue(session, context) => {
                give_up_deletion(session, context);
                reset(session, asker, context)
            }
            Some(next) => next,
            None => reset(session, asker, context),
        },
        _ => {
            begin_destroying(session, "reset by a person", context);
            match lease::delete(session, context) {
                Some(next) => next,
                None => reset(session, asker, context),
            }
        }
    }
}

/// Whether a person has waited for a deletion for as long as for an outage, and the provider still shows the sandbox:
/// the thread's messages wait behind it.
fn is_overdue(session: &Session, context: &Context<'_>) -> bool {
    let asked = session.observed.sandbox.stop_asked_ms;
    let stop_ms = context.delivery.limits.sandbox.stop_ms;
    asked.is_some_and(|asked| context.now_ms >= asked + stop_ms)
        && lease::is_held_too_long(session, context)
}

/// The orphan hunt goes on trying.
fn give_up_deletion(session: &mut Session, context: &Context<'_>) {
    record::enter(session, Phase::Error, "it was not deleted in time", context);
    session.observed.sandbox.stop_asked_ms = None;
}

/// Deletes a sandbox that could not be made ready, after its turn has ended, within the same delivery.
pub(super) fn finish_half_made(session: &mut Session, context: &Context<'_>) -> Next {
    if session.sandbox.phase != Phase::Destroying
        || record::foreign_lease_ms(session, context).is_some()
    {
        return Next::Done;
    }
    lease::delete(session, context).unwrap_or(Next::Done)
}

pub(super) fn begin_destroying(session: &mut Session, note: &str, context: &Context<'_>) {
    session.observed.sandbox.state = None;
    record::enter(session, Phase::Destroying, note, context);
    record::lease(session, context);
}

/// The next step of a pause; `None` once it is over and the phase has changed.
pub(super) fn pause(session: &mut Session, context: &Context<'_>) -> Next {
    let limits = context.delivery.limits;
    lease::own(session, context);
    match (&session.observed.sandbox.state, session.observed.sandbox.stop_asked_ms) {
        (Some(SandboxState::Stopped), _) => {
            record::enter(session, Phase::Paused, "stopped, the disk is kept", context);
            Next::Done
        }
        // A broken sandbox cannot be stopped; it expires as a paused one.
        (Some(SandboxState::Broken { reason, .. }), _) => {
            let note = format!("the provider reports an error: {reason}");
            record::enter(session, Phase::Paused, &note, context);
            Next::Done
        }
        (Some(SandboxState::Gone), _) => {
            record::vanished(session, context);
            Next::Done
        }
        (_, None) => lease::guarded(session, Effect::Sandbox(SandboxEffect::Stop), context),
        (_, Some(asked)) if context.now_ms >= asked + limits.sandbox.stop_ms => Next::Hold {
            delay_ms: limits.retry.backoff_ms_max,
            why: "the sandbox did not stop in time".to_owned(),
        },
        (_, Some(asked)) => Next::Do(Effect::Sandbox(SandboxEffect::Observe {
            after_ms: record::pause_ms(asked, context),
            watch: None,
        })),
    }
}

fn destroy(session: &mut Session, word: Option<&str>, context: &Context<'_>) -> Next {
    if session.sandbox.phase == Phase::Destroying
        && let Some(next) = lease::delete(session, context)
    {
        return next;
    }
    if let Some(next) = word.and_then(|word| share::notify(session, word, false, context)) {
        return next;
    }
    match word.filter(|_| session.thread.is_conversation()) {
        Some(word) => notice::once(session, word, context),
        None => Next::Done,
    }
}
