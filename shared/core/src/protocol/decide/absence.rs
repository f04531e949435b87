//! Whether a sandbox is gone. A single observation or call that does not find it is a claim. The claim is believed once
//! a second observation, some seconds later, does not find it either and the provider's list does not show it
//! ([`SandboxEffect::Confirm`]). The provider's answer to our own delete is not doubted.
//!
//! A claim lives within a delivery. If the delivery dies, the record is as before, and the next delivery observes anew.

use super::{Context, Next, server_down, stray_run};
use crate::base::failure::Failure;
use crate::protocol::effect::{Effect, SandboxEffect};
use crate::records::observations::Missing;
use crate::records::sandbox::{Phase, SandboxState};
use crate::records::session::Session;

/// The sandbox was observed.
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
        // A call that did not find it has not started it either.
        session.observed.sandbox.start_asked = false;
        refuted(session, claim, context);
    } else if is_second && !is_there {
        // Its runs are gone with it.
        session.stray = None;
    }
}

/// The sandbox exists. A call that did not find it could not reach it.
fn refuted(session: &mut Session, claim: Missing, context: &Context<'_>) {
    let seen = "the provider briefly did not find the sandbox".to_owned();
    match claim {
        Missing::Look => {}
        Missing::Call { first_sending } => {
            server_down::sandbox_down(session, &seen, first_sending, context);
        }
        Missing::EndRun => {
            let failure = Failure::SandboxDown { seen: seen.clone() };
            if !stray_run::not_ended(session, &failure, context) {
                server_down::sandbox_down(session, &seen, false, context);
            }
        }
    }
}

/// A call or observation did not find the sandbox. A sandbox just created may take a while to appear.
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

/// The observation that confirms or refutes a claim.
pub(super) fn next(session: &Session, context: &Context<'_>) -> Option<Next> {
    session.observed.sandbox.missing?;
    Some(Next::Do(Effect::Sandbox(SandboxEffect::Confirm {
        after_ms: context.delivery.limits.sandbox.gone_apart_ms,
    })))
}

/// The claim could be neither confirmed nor refuted; the next observation begins anew.
pub(super) fn failed_to_confirm(session: &mut Session, of: &Effect) {
    if is_confirm(of) {
        session.observed.sandbox.missing = None;
    }
}

const fn is_confirm(of: &Effect) -> bool {
    matches!(of, Effect::Sandbox(SandboxEffect::Confirm { .. }))
}
