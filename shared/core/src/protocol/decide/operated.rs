//! What a sandbox's record says of the operations that people requested: each is done once.

use super::Context;
use crate::records::control::Operation;
use crate::records::message::Work;
use crate::records::sandbox::{OPERATED_MAX, Operated};
use crate::records::session::Session;

/// A retry cannot help: the record says so.
pub(super) fn refused(session: &mut Session, reason: &str, context: &Context<'_>) {
    let want = match context.delivery.message.work {
        Work::Operate { want, .. } => want,
        Work::Create(_) => Operation::Create,
        Work::Build(_) => Operation::Snapshot,
        _ => return,
    };
    remember(session, want, Some(reason), context);
}

pub(super) fn known<'a>(session: &'a Session, context: &Context<'_>) -> Option<&'a Operated> {
    let id = &context.delivery.message.id;
    session.sandbox.history.operated.iter().find(|one| one.id == *id)
}

/// The first result of a message counts. A deletion that failed keeps nobody out of the sandbox.
pub(super) fn remember(
    session: &mut Session,
    want: Operation,
    trouble: Option<&str>,
    context: &Context<'_>,
) {
    if known(session, context).is_some() {
        return;
    }
    if want == Operation::Destroy && trouble.is_some() {
        session.sandbox.sharing.closing = None;
    }
    session.sandbox.history.operated.push(Operated {
        id: context.delivery.message.id.clone(),
        want,
        at_ms: context.now_ms,
        trouble: trouble.map(str::to_owned),
    });
    let surplus = session.sandbox.history.operated.len().saturating_sub(OPERATED_MAX);
    session.sandbox.history.operated.drain(..surplus);
}
