//! What a person does with the thread's open pull request, in their own name at the forge: ready for review, merged,
//! or brought up to its base.
//!
//! Promised: it is done with the person's own account alone, and a merge or an update only if the head is still the
//! one that they saw. A redelivery repeats the call, which finds what an earlier delivery did. The card shows the end.

use super::{Context, Next, publish, watch, words};
use crate::base::person::Person;
use crate::protocol::effect::{Effect, ForgeEffect};
use crate::records::control::PublishStep;
use crate::records::message::Work;
use crate::records::publication::{ActEnd, BranchUpdate, PullRequestAct, PullRequestState};
use crate::records::session::Session;

pub(super) fn next(
    session: &mut Session,
    (act, head): (PullRequestAct, &str),
    by: &Person,
    context: &Context<'_>,
) -> Next {
    let Some((_, watch, at)) = watch::watched(session) else {
        return publish::told(session, words::NO_OPEN_PULL_REQUEST, context);
    };
    if !watch::may_be_seen(watch, context) {
        let why = words::not_open_any_more(&watch.repository.name);
        return publish::told(session, &why, context);
    }
    Next::Do(Effect::Forge(ForgeEffect::ActOnPullRequest {
        repository: watch.repository.clone(),
        number: at.number,
        act,
        head: head.to_owned(),
        person: by.id.clone(),
    }))
}

/// End of the call.
pub(super) fn ended(session: &mut Session, of: &Effect, ended: ActEnd, context: &Context<'_>) {
    let (
        Effect::Forge(ForgeEffect::ActOnPullRequest { act, number, head, .. }),
        Work::Publish { step: PublishStep::Act { .. }, by, .. },
    ) = (of, &context.delivery.message.work)
    else {
        return;
    };
    if ended == ActEnd::Done && *act == PullRequestAct::Merge {
        session.observed.forge.is_acted = true;
        return watch::ended(session, PullRequestState::Merged, context);
    }
    if ended == ActEnd::Done
        && *act == PullRequestAct::UpdateBranch
        && let Some(publication) = session.publication_mut()
    {
        let (at_ms, from) = (context.now_ms, head.clone());
        publication.updated = Some(BranchUpdate { at_ms, from, to: None });
    }
    session.observed.forge.ending =
        Some(words::acted(&session.thread, (*act, *number), &by.name, &ended));
}
