//! The tool sandbox of an agent that works outside: which end of the agent's sandbox ends it too.
//!
//! Deleting the agent's sandbox on purpose deletes both. If the agent's sandbox was lost, or is unused because another
//! runtime was chosen, the tool sandbox and its files are left to the next generation.

use super::{Context, Next, record};
use crate::base::failure::Failure;
use crate::protocol::effect::Effect;
use crate::records::sandbox::{Phase, Tools};
use crate::records::session::Session;

/// A generation of the agent's sandbox begins: it may have a tool sandbox, unless an earlier one exists.
pub(super) fn begins(session: &mut Session) {
    let sandbox = &mut session.sandbox;
    if sandbox.works_elsewhere() {
        let (since, ends_with) = (sandbox.generation, None);
        sandbox.tooling.tools.get_or_insert(Tools { since, ends_with });
    }
}

/// The agent's sandbox is deleted on purpose. `true`: there may be a tool sandbox, which is deleted too.
pub(super) fn ends(session: &mut Session) -> bool {
    let sandbox = &mut session.sandbox;
    // A sandbox made before its record noted tool sandboxes may have one all the same. While it is being deleted, the
    // end of that one has been requested already.
    let is_unsaid = sandbox.is_alive() && sandbox.phase != Phase::Destroying;
    let is_unsaid = is_unsaid && sandbox.works_elsewhere();
    let since = sandbox.generation;
    let unsaid = is_unsaid.then_some(Tools { since, ends_with: None });
    if let Some(tools) = sandbox.tooling.tools.or(unsaid) {
        let ends_with = Some(sandbox.generation);
        sandbox.tooling.tools = Some(Tools { ends_with, ..tools });
    }
    sandbox.tooling.tools.is_some()
}

/// The agent's sandbox could not be made ready: a tool sandbox of the same generation ends with it.
pub(super) fn ends_half_made(session: &mut Session) {
    let generation = session.sandbox.generation;
    let is_older = |tools: Tools| tools.since != generation;
    if !session.sandbox.tooling.tools.is_some_and(is_older) {
        ends(session);
    }
}

/// The step before everything else if the tool sandbox is to end.
pub(super) fn next(session: &Session) -> Option<Next> {
    let ends = session.sandbox.ends_tools();
    ends.then_some(Next::Do(Effect::EndTools))
}

/// The step before the tool sandbox is stopped or deleted because it is idle. A turn of its agent counts as use, even
/// if it calls no tool for a long time.
pub(super) fn in_use_by_its_agent(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    let of = session.sandbox.tooling.agent.clone()?;
    let Some(seen) = session.observed.sandbox.agent_seen else {
        return Some(Next::Do(Effect::FindAgent { of }));
    };
    let since_ms = seen.at_work_since_ms?;
    // A turn that works longer than any turn can belongs to a record that was lost.
    if context.now_ms >= since_ms + record::longest_use_ms(context) {
        return None;
    }
    session.sandbox.last_activity_ms = context.now_ms;
    record::arm(session, context);
    session.sandbox.due_at_ms =
        Some(context.now_ms + context.delivery.limits.sandbox.idle_pause_ms);
    Some(Next::Done)
}

/// Its end has been requested.
pub(super) fn ended(session: &mut Session, context: &Context<'_>) {
    session.sandbox.tooling.tools = None;
    record::arm(session, context);
}

/// Its end could not be requested. The request needs only table and queue, so it is waited for.
pub(super) fn not_ended(failure: &Failure, context: &Context<'_>) -> Next {
    let limits = context.delivery.limits;
    let after_ms = match failure {
        Failure::Wait { after_ms, .. } | Failure::Outage { after_ms, .. } => *after_ms,
        _ => 0,
    };
    Next::Hold {
        delay_ms: limits.retry.outage_backoff(context.delivery.receive).max(after_ms),
        why: "the tool sandbox could not be asked to end".to_owned(),
    }
}
