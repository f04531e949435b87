//! Calls to the provider that only the holder of the sandbox's lease makes.

use super::{Context, Next, outside, record};
use crate::protocol::effect::{Effect, SandboxEffect};
use crate::records::sandbox::SandboxState;
use crate::records::session::Session;

/// The next step of a deletion; `None` once the provider no longer knows the sandbox (the phase is `destroyed` then).
pub(super) fn delete(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    let limits = context.delivery.limits;
    own(session, context);
    if let Some(next) = outside::next(session) {
        return Some(next);
    }
    Some(match (&session.observed.sandbox.state, session.observed.sandbox.stop_asked_ms) {
        (Some(SandboxState::Gone), _) => {
            record::gone(session, "deleted", context);
            session.observed.sandbox.stop_asked_ms = None;
            // Tells a sweep that this delivery deleted it, so that the thread hears of it.
            session.observed.sandbox.state = Some(SandboxState::Gone);
            return None;
        }
        (_, None) => guarded(session, Effect::Sandbox(SandboxEffect::Delete), context),
        (_, Some(asked)) if context.now_ms >= asked + limits.sandbox.stop_ms => Next::Hold {
            delay_ms: limits.retry.backoff_ms_max,
            why: "the sandbox was not deleted in time".to_owned(),
        },
        (_, Some(asked)) => Next::Do(Effect::Sandbox(SandboxEffect::Observe {
            after_ms: record::pause_ms(asked, context),
            watch: None,
        })),
    })
}

/// Takes the lease over if its holder is gone; everybody else goes on waiting.
pub(super) fn own(session: &mut Session, context: &Context<'_>) {
    let holder = record::lease_holder(session, context);
    let held = session.sandbox.lease.as_ref();
    if held.is_none_or(|lease| lease.holder != holder || lease.until_ms <= context.now_ms) {
        record::lease(session, context);
    }
}

/// Whether a deletion has lasted for as long as an outage is waited for.
pub(super) fn is_held_too_long(session: &Session, context: &Context<'_>) -> bool {
    let outage_ms = context.delivery.limits.retry.outage_ms;
    context.now_ms >= session.sandbox.phase_since_ms + outage_ms
}

/// A refused stop is no longer on its way, so nobody who needs the sandbox has to wait for it. The sandbox stays due at
/// the time when the lease would have ended.
pub(super) fn release(session: &mut Session, of: &Effect, context: &Context<'_>) {
    let is_stop = matches!(of, Effect::Sandbox(SandboxEffect::Stop));
    if is_stop && record::foreign_lease_ms(session, context).is_none() {
        session.sandbox.lease = None;
    }
}

/// A stop or delete is sent only while the message stays invisible for longer than the call may take: it cannot be
/// recalled, and nobody else may act meanwhile.
pub(super) fn guarded(session: &mut Session, effect: Effect, context: &Context<'_>) -> Next {
    let limits = context.delivery.limits;
    if context.visible_until_ms < context.now_ms + limits.sandbox.lifecycle_call_ms {
        return Next::Hold {
            delay_ms: limits.retry.backoff_ms,
            why: "too little visibility time is left for the call".to_owned(),
        };
    }
    session.observed.sandbox.stop_asked_ms = Some(context.now_ms);
    Next::Do(effect)
}
