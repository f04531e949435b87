//! Pull requests of the repositories beside a thread's own: each is shown, pushed and opened separately, by a message
//! of its own, in order.
//!
//! Promised: a refusal of one does not affect the others; a press opens only what no other press has opened.

use super::{Context, Next, publish, words};
use crate::base::ids::TurnId;
use crate::base::names::short_name;
use crate::base::person::{Membership, Person};
use crate::protocol::effect::Effect;
use crate::records::card::OfferOfAll;
use crate::records::carried::ForgeRepository;
use crate::records::control::{PublishStep, ShowOf};
use crate::records::message::{Message, Work};
use crate::records::publication::{Proposal, Publication};
use crate::records::session::Session;
use crate::records::watch::Watch;

/// The repository that the step is about, found by what a person was shown; `None`: the thread's.
pub(super) fn about(session: &Session, step: &PublishStep, context: &Context<'_>) -> Option<u64> {
    let id = &context.delivery.message.id;
    let with = |is_it: &dyn Fn(&Publication) -> bool| {
        session.published.all().find(|(_, publication)| is_it(publication))?.0
    };
    match step {
        PublishStep::Show { of: Some(ShowOf::Beside(repository)), .. } => Some(*repository),
        PublishStep::Show { of: Some(ShowOf::Commit(commit)), .. } => {
            with(&|one| has_shown(one, commit))
        }
        PublishStep::Push { commit } => with(&|one| {
            let is_pressed = one.pressed.as_ref().is_some_and(|pressed| pressed.id == *id);
            is_pressed || has_shown(one, commit)
        }),
        PublishStep::Act { head, .. } => {
            with(&|one| one.watch.as_ref().is_some_and(|watch| watch.head.as_ref() == Some(head)))
        }
        PublishStep::Fixed { beside, .. } => *beside,
        PublishStep::Fix { name } => with(&|one| {
            one.watch.as_ref().is_some_and(|watch| {
                has_begun(watch, name) || watch.begun.offered.as_ref() == Some(name)
            })
        }),
        PublishStep::Show { of: None, .. }
        | PublishStep::PushAll { .. }
        | PublishStep::Review { .. } => None,
    }
}

fn has_shown(publication: &Publication, commit: &str) -> bool {
    publication.shown.as_ref().is_some_and(|shown| shown.commit == commit)
}

fn has_begun(watch: &Watch, name: &str) -> bool {
    watch.fix.as_ref().is_some_and(|fix| fix.name == name)
}

/// Whether it is unknown which repository's button was pressed, because the button matches no latest card.
pub(super) fn is_stale(session: &Session, step: &PublishStep) -> bool {
    if !session.has_several() || session.observed.beside.is_some() {
        return false;
    }
    let own = session.publication();
    match step {
        PublishStep::Show { of: Some(ShowOf::Commit(commit)), .. } => {
            !own.is_some_and(|own| has_shown(own, commit))
        }
        PublishStep::Act { head, .. } => {
            let seen = own.and_then(|own| own.watch.as_ref()?.head.as_ref());
            seen.is_none_or(|seen| seen != head)
        }
        PublishStep::Fix { name } => own.and_then(|own| own.watch.as_ref()).is_none_or(|watch| {
            // The poll of the press finds out what is not known.
            !has_begun(watch, name)
                && watch.begun.offered.as_ref().is_some_and(|offered| offered != name)
        }),
        _ => false,
    }
}

/// A sentence about the repository in hand, which names it if there are several.
pub(super) fn named(session: &Session, word: &str) -> String {
    let project = &session.sandbox.project;
    if project.beside.is_empty() {
        return word.to_owned();
    }
    let id = session.observed.beside;
    let mut beside = project.beside.iter().filter(|one| Some(one.repository.id) == id);
    let carried = if id.is_none() { project.carried.as_ref() } else { beside.next() };
    match carried {
        Some(carried) => words::of_repository(&carried.repository.name, word),
        None => word.to_owned(),
    }
}

/// Whether the thread's words may be quoted in the repository's pull request: words about a private repository are not
/// quoted in public.
pub(super) fn may_quote(session: &Session, repository: &ForgeRepository) -> bool {
    repository.is_private || !session.sandbox.is_private()
}

/// Whether the message in hand shows one of all repositories.
pub(super) fn is_one_of_all(context: &Context<'_>) -> bool {
    let work = &context.delivery.message.work;
    matches!(
        work,
        Work::Publish { step: PublishStep::Show { of: Some(ShowOf::Beside(_)), .. }, .. }
    )
}

/// Queues a message for each repository beside the thread's to show it, once the thread's own was shown; `None`: that
/// is done, or nobody asked for all.
pub(super) fn show(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    let Work::Publish { step: PublishStep::Show { of: None, .. }, by, membership } =
        &context.delivery.message.work
    else {
        return None;
    };
    let is_given_up = publish::is_given_up(session, context);
    if is_given_up || context.settings.admit(membership, &by.id).is_err() {
        return None;
    }
    let beside = session.beside().iter().filter(|one| one.base.is_some());
    let steps = beside.map(|one| PublishStep::Show {
        subject: None,
        body: None,
        of: Some(ShowOf::Beside(one.repository.id)),
    });
    queue(session, steps, (by, membership), context)
}

/// The button that publishes all that was shown and is not opened; `None` if only one repository has something, or if a
/// chat cannot show all of it.
pub(super) fn offered(session: &Session) -> Option<OfferOfAll> {
    let commits = shown(session);
    let repositories = commits.len();
    let is_whole = are_surely_shown(session);
    (repositories > 1 && is_whole).then(|| OfferOfAll { name: name(&commits), repositories })
}

/// Whether each chat shows the texts of all proposals whole: nothing can be pressed that was not read.
fn are_surely_shown(session: &Session) -> bool {
    let mut shown = session.published.all().filter_map(|(_, one)| one.shown.as_ref());
    shown.all(Proposal::is_surely_shown)
}

/// Next step of a press on that button: each repository is pushed and opened by a message of its own.
pub(super) fn push_all(
    session: &mut Session,
    wanted: &str,
    (by, membership): (&Person, &Membership),
    context: &Context<'_>,
) -> Next {
    let commits = shown(session);
    if name(&commits) != wanted || !are_surely_shown(session) {
        return publish::told(session, words::NOT_SHOWN, context);
    }
    let steps = commits.into_iter().map(|commit| PublishStep::Push { commit });
    let next = queue(session, steps, (by, membership), context);
    next.unwrap_or_else(|| publish::end(session, context))
}

/// The commits that were shown last, one of each repository.
fn shown(session: &Session) -> Vec<String> {
    let shown = session.published.all().filter_map(|(_, one)| one.shown.as_ref());
    shown.map(|shown| shown.commit.clone()).collect()
}

fn name(commits: &[String]) -> String {
    let commits: Vec<&str> = commits.iter().map(String::as_str).collect();
    short_name(&commits)
}

/// Queues a message for each step, in this order; `None` once they are queued.
fn queue(
    session: &Session,
    steps: impl Iterator<Item = PublishStep>,
    (by, membership): (&Person, &Membership),
    context: &Context<'_>,
) -> Option<Next> {
    let press = &context.delivery.message.id;
    let messages = steps.enumerate().map(|(nth, step)| Message {
        id: TurnId::from(format!("{press}-{nth}")),
        thread: session.thread.clone(),
        accepted_at_ms: context.now_ms,
        work: Work::Publish { step, by: by.clone(), membership: membership.clone() },
    });
    let messages: Vec<Message> = messages.collect();
    let is_queued = messages.iter().all(|one| session.observed.watch.queued.contains(&one.id));
    (!is_queued).then_some(Next::Do(Effect::Queue { messages }))
}
