//! Whether a sandbox is gone. That one look, or one call, does not find it is a claim: it is believed once a second look some
//! seconds later does not find it either and the provider's list does not show it ([`SandboxEffect::Confirm`]). What the
//! provider answers to our own delete is not doubted.
//!
//! The doubt lives within a delivery. One that dies with it leaves the record as it was, and the next one looks anew.

use super::{Context, Next, down, stray};
use crate::base::failure::Failure;
use crate::protocol::effect::{Effect, SandboxEffect};
use crate::records::observations::Missing;
use crate::records::sandbox::{Phase, SandboxState};
use crate::records::session::Session;

/// The sandbox was looked at.
pub(super) fn seen(session: &mut Session, of: &Effect, state: SandboxState, context: &Context<'_>) {
    let is_second = is_confirm(of);
    if state == SandboxState::Gone && !is_second && session.sandbox.phase != Phase::Destroying {
        claimed(session, Missing::Look, context);
        return;
    }
    let claim = session.observed.sandbox.missing.take();
    if matches!(of, Effect::Sandbox(SandboxEffect::Create { .. })) {
        session.observed.sandbox.created_ms = Some(context.now_ms);
    }
    let is_there = state != SandboxState::Gone;
    session.observed.sandbox.state = Some(state);
    if let Some(claim) = claim.filter(|_| is_second && is_there) {
        // What did not find it has not started it either.
        session.observed.sandbox.start_asked = false;
        refuted(session, claim, context);
    } else if is_second && !is_there {
        // Its runs went with it.
        session.stray = None;
    }
}

/// It is there. Who says of a sandbox that is there that it is not cannot reach it.
fn refuted(session: &mut Session, claim: Missing, context: &Context<'_>) {
    let seen = "the provider did not find the sandbox for a moment".to_owned();
    match claim {
        Missing::Look => {}
        Missing::Call { first_sending } => {
            down::sandbox_down(session, &seen, first_sending, context);
        }
        Missing::EndRun => {
            let failure = Failure::SandboxDown { seen: seen.clone() };
            if !stray::not_ended(session, &failure, context) {
                down::sandbox_down(session, &seen, false, context);
            }
        }
    }
}

/// Somebody did not find the sandbox. What we have just made may take a while to be found.
pub(super) fn claimed(session: &mut Session, by: Missing, context: &Context<'_>) {
    let appears_ms = context.delivery.limits.sandbox.appear_ms;
    let is_new = |made: u64| context.now_ms < made + appears_ms;
    if session.sandbox.phase == Phase::Creating
        && session.observed.sandbox.created_ms.is_some_and(is_new)
    {
        session.observed.sandbox.state = Some(SandboxState::Provisioning);
    } else {
        session.observed.sandbox.missing.get_or_insert(by);
    }
}

/// The look by which a claim is believed or not.
pub(super) fn next(session: &Session, context: &Context<'_>) -> Option<Next> {
    session.observed.sandbox.missing?;
    Some(Next::Do(Effect::Sandbox(SandboxEffect::Confirm {
        after_ms: context.delivery.limits.sandbox.gone_apart_ms,
    })))
}

/// The doubt could not be resolved: whoever looks next begins anew.
pub(super) fn failed_to_confirm(session: &mut Session, of: &Effect) {
    if is_confirm(of) {
        session.observed.sandbox.missing = None;
    }
}

const fn is_confirm(of: &Effect) -> bool {
    matches!(of, Effect::Sandbox(SandboxEffect::Confirm { .. }))
}
