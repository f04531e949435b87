//! Prebuilds: a new sandbox begins with its repository's prebuild, and one is made after a project was set up.
//!
//! Promised: no turn waits for a prebuild, and none fails over one; a builder has no server, and so no key beside it;
//! a sandbox begins only with a prebuild of its own tenant, made with the same credentials and from the same image.
//! What its set-up steps have done counts only if they would be the same ones on the same files.

use super::{Context, Next, forge, lease, operate, operated, record, teardown};
use crate::base::failure::Failure;
use crate::base::ids::{Ms, SandboxKey};
use crate::protocol::effect::{Effect, PrebuildShare, SandboxEffect};
use crate::records::control::Operation;
use crate::records::message::Work;
use crate::records::prebuild::{
    BeginsWith, BuildPurpose, BuiltProject, NewBuild, Prebuild, builder_of,
};
use crate::records::sandbox::{KeptSnapshot, Phase, SandboxState};
use crate::records::session::Session;
use crate::records::set_up::SetUp;
use crate::tenant::repositories::apart;
use crate::tenant::selection::SUBMODULES;

const FAILED: &str = "the project's set-up failed in it";
const WITH_SUBMODULES: &str = "its submodules come with it there, and a builder brings none";
const NO_SNAPSHOTS: &str = "its provider makes no snapshots";
const NOTHING: &str = "the project has no set-up steps";
const KEPT_FAILING: &str = "it kept failing";

/// The look for a prebuild before a sandbox is created; `None` once that is known, or there is none to look for.
pub(super) fn find(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    if !session.sandbox.project.begins.is_unknown() || !is_meant_for(session, context) {
        return None;
    }
    let builder = builder(session, context)?;
    Some(Next::Do(Effect::FindPrebuild { builder }))
}

/// The builder of the sandbox's repository, if that may have one.
fn builder(session: &Session, context: &Context<'_>) -> Option<SandboxKey> {
    let repo = session.sandbox.project.repo.as_deref()?;
    let provider = session.sandbox.spec.provider.as_deref();
    let name = forge::name_of(repo, context)?;
    Some(builder_of(&session.sandbox_key().tenant(), &name, provider))
}

/// Whether this kind of sandbox begins with a prebuild, and requests one.
fn is_meant_for(session: &Session, context: &Context<'_>) -> bool {
    let (limits, sandbox) = (&context.delivery.limits.set_up, &session.sandbox);
    limits.why_no_build(true).is_none()
        && !sandbox.is_builder()
        && !sandbox.is_shared()
        && !sandbox.works_elsewhere()
        && sandbox.spec.snapshot.is_none()
        && sandbox.tooling.agent.is_none()
        && why_none(session, context).is_none()
        && !is_with_submodules(context)
}

/// Whether submodules are brought in the message's channel. The builder brings none.
fn is_with_submodules(context: &Context<'_>) -> bool {
    let defaults = context.settings.defaults_of(forge::channel(context));
    defaults.submodules.as_deref() == Some(SUBMODULES[1])
}

/// What was found: the sandbox begins with it.
pub(super) fn found(session: &mut Session, found: Option<Prebuild>) {
    session.sandbox.project.begins = found.map_or(BeginsWith::Image, BeginsWith::Prebuild);
}

/// The table did not answer: the sandbox begins without one. False: the failure is about something else.
pub(super) fn could_not_be_found(session: &mut Session, of: &Effect, failure: &Failure) -> bool {
    let is_sought = matches!(of, Effect::FindPrebuild { .. });
    // A newer worker wrote the record: it goes on.
    let is_over = is_sought && !matches!(failure, Failure::Newer { .. });
    if is_over {
        found(session, None);
    }
    is_over
}

/// The prebuild is unusable, or holds another repository: a sandbox without a prebuild replaces this one. False: it did
/// not begin with one.
pub(super) fn begin_without(
    session: &mut Session,
    is_useless: bool,
    context: &Context<'_>,
) -> bool {
    let project = &mut session.sandbox.project;
    if project.begins.prebuild().is_none() || session.sandbox.phase != Phase::Creating {
        return false;
    }
    let useless = project.begins.prebuild().map(|prebuild| prebuild.snapshot.clone());
    project.begins = BeginsWith::ImageInstead(useless.filter(|_| is_useless));
    session.observed.sandbox.state = None;
    record::enter(
        session,
        Phase::Destroying,
        "its prebuild cannot be used: created again",
        context,
    );
    record::lease(session, context);
    true
}

/// Whether the prebuild, if there is one, is of this repository: the forge's id, or `None` for one cloned from inside.
/// A name may now belong to another repository.
pub(super) fn is_of(session: &Session, repository: Option<u64>) -> bool {
    let prebuild = session.sandbox.project.begins.prebuild();
    prebuild.is_none_or(|prebuild| prebuild.of.repository == repository)
}

/// The commit at which a set-up with this key was done in the prebuild that the sandbox began with.
pub(super) fn done_at(session: &Session, set_up: &SetUp) -> Option<String> {
    let prebuild = session.sandbox.project.begins.prebuild()?;
    let is_same = set_up.key.as_ref() == Some(&prebuild.of.key);
    let is_there = session.observed.sandbox.project.is_prebuilt && is_base(session);
    (is_there && is_same).then(|| prebuild.of.commit.clone().unwrap_or_default())
}

/// Whether the checkout is the default branch's, from which the lock files count. In a snapshot it may be any.
pub(super) fn is_base(session: &Session) -> bool {
    let project = &session.sandbox.project;
    let is_named = project.repo.as_deref().is_some_and(|repo| apart(repo).1.is_some());
    !is_named && project.pull.is_none() && session.sandbox.spec.snapshot.is_none()
}

/// The request for a prebuild once a project was set up without one; `None` once it was requested, or is not wanted.
pub(super) fn request(session: &Session, context: &Context<'_>) -> Option<Next> {
    let set_up = session.sandbox.project.set_up.as_ref()?;
    let is_over = set_up.over_ms.is_some() && !set_up.is_requested && set_up.prebuilt_at.is_none();
    let is_done = !set_up.ended.is_empty() && set_up.failed.is_empty();
    let is_fit = is_meant_for(session, context) && is_base(session);
    if !(is_over && is_done && is_fit) {
        return None;
    }
    let key = set_up.key.as_ref()?;
    let builder = builder(session, context)?;
    let build = NewBuild {
        repo: session.sandbox.project.repo.clone()?,
        provider: session.sandbox.spec.provider.clone(),
        channel: forge::channel(context).to_owned(),
        hash: key.hash.clone(),
        useless: match &session.sandbox.project.begins {
            BeginsWith::ImageInstead(useless) => useless.clone(),
            _ => None,
        },
        purpose: BuildPurpose::Build,
    };
    let messages = vec![build.message(&builder, context.now_ms)];
    Some(Next::Do(Effect::Queue { messages }))
}

/// The request was made, or could not be: the turn goes on. False: the effect was about something else.
pub(super) fn requested(session: &mut Session, of: &Effect) -> bool {
    let Effect::Queue { messages } = of else { return false };
    let is_request = messages.iter().any(|message| matches!(message.work, Work::Build(_)));
    if let Some(set_up) = session.sandbox.project.set_up.as_mut().filter(|_| is_request) {
        set_up.is_requested = true;
    }
    is_request
}

/// Why the project has no prebuild, for its card; `None`: it may have one.
pub(super) fn why_none(session: &Session, context: &Context<'_>) -> Option<&'static str> {
    let repo = session.sandbox.project.repo.as_deref()?;
    context.settings.why_no_prebuild(&forge::name_of(repo, context)?)
}

/// Why nothing is set up in the builder; `None`: the message gets what it wants.
fn refusal(
    session: &Session,
    purpose: BuildPurpose,
    context: &Context<'_>,
) -> Option<&'static str> {
    let limits = &context.delivery.limits.set_up;
    limits
        .why_no_build(purpose == BuildPurpose::Build)
        .or_else(|| why_none(session, context))
        .or_else(|| is_with_submodules(context).then_some(WITH_SUBMODULES))
}

/// Next step of making, trying or forgetting a prebuild. The builder's sandbox is deleted at the end, whatever
/// happened.
pub(super) fn next(session: &mut Session, build: &NewBuild, context: &Context<'_>) -> Next {
    if let Some(wait) = record::wait_for_lease(session, context) {
        return wait;
    }
    if operated::known(session, context).is_some() {
        return leave(session, context);
    }
    session.sandbox.project.repo = Some(build.repo.clone());
    if build.purpose == BuildPurpose::Forget {
        return forget(session, context);
    }
    if let Some(why) = refusal(session, build.purpose, context)
        && !may_be_unread(session, context)
    {
        return end(session, Some(why), context);
    }
    if !session.sandbox.is_alive()
        && let Some(name) = surplus(session, build, context)
    {
        return delete_snapshot(name);
    }
    let has_it =
        |kept: &KeptSnapshot| kept.built.as_ref().is_some_and(|built| built.key.hash == build.hash);
    if session.sandbox.snapshots.iter().any(has_it) && session.observed.sandbox.snapshot.is_none() {
        return end(session, None, context);
    }
    if operate::has_failed_too_often(session, context) {
        return end(session, Some(KEPT_FAILING), context);
    }
    let id = &context.delivery.message.id;
    let is_own = session.sandbox.project.builds.as_ref() == Some(id);
    match session.sandbox.phase {
        // An earlier message has left it.
        phase if !is_own && !matches!(phase, Phase::Destroyed | Phase::Error) => {
            delete(session, context).unwrap_or_else(|| next(session, build, context))
        }
        Phase::Destroyed | Phase::Error if is_own => {
            let asked_at_ms = context.delivery.message.accepted_at_ms;
            let is_made = session
                .sandbox
                .snapshots
                .iter()
                .any(|kept| kept.at_ms == asked_at_ms && kept.built.is_some());
            end(session, (!is_made).then_some("its sandbox no longer exists"), context)
        }
        Phase::Destroyed | Phase::Error => {
            session.sandbox.spec.provider.clone_from(&build.provider);
            session.sandbox.spec.snapshot = None;
            bring_up(session, build.purpose, context)
        }
        Phase::Active if session.observed.sandbox.state == Some(SandboxState::Gone) => {
            record::vanished(session, context);
            next(session, build, context)
        }
        Phase::Active => set_up_there(session, build.purpose, context),
        _ => bring_up(session, build.purpose, context),
    }
}

/// Whether an earlier delivery may have begun a snapshot whose name is not on record yet.
fn may_be_unread(session: &Session, context: &Context<'_>) -> bool {
    let id = &context.delivery.message.id;
    let is_own = session.sandbox.lease.as_ref().is_some_and(|lease| *id == lease.holder);
    is_own && session.sandbox.phase == Phase::Active && session.observed.sandbox.snapshot.is_none()
}

/// A snapshot that no sandbox begins with any more: it is useless, was made with other credentials, or was not
/// finished.
fn surplus(session: &Session, build: &NewBuild, context: &Context<'_>) -> Option<String> {
    let sandbox = &session.sandbox;
    let is_others = sandbox.spec.credentials != context.settings.sandbox_credentials();
    let is_over = |kept: &&KeptSnapshot| {
        is_others || kept.built.is_none() || build.useless.as_ref() == Some(&kept.name)
    };
    sandbox.snapshots.iter().find(is_over).map(|kept| kept.name.clone())
}

/// Deletes each prebuild, once nothing is left of an earlier message.
fn forget(session: &mut Session, context: &Context<'_>) -> Next {
    if operate::has_failed_too_often(session, context) {
        return end(session, Some(KEPT_FAILING), context);
    }
    if session.sandbox.is_alive()
        && let Some(next) = delete(session, context)
    {
        return next;
    }
    match session.sandbox.snapshots.first() {
        Some(oldest) => delete_snapshot(oldest.name.clone()),
        None => end(session, None, context),
    }
}

fn delete_snapshot(name: String) -> Next {
    Next::Do(Effect::Sandbox(SandboxEffect::DeleteSnapshot { name }))
}

fn bring_up(session: &mut Session, purpose: BuildPurpose, context: &Context<'_>) -> Next {
    match operate::bring_up(session, context) {
        operate::BroughtUp::Step(next) => *next,
        operate::BroughtUp::Ready => set_up_there(session, purpose, context),
        operate::BroughtUp::No(trouble) => end(session, Some(&trouble), context),
    }
}

/// The set-up is over. Unless it was only tried, a snapshot is kept, in the place of the one before.
fn set_up_there(session: &mut Session, purpose: BuildPurpose, context: &Context<'_>) -> Next {
    let trouble = match &session.sandbox.project.set_up {
        Some(set_up) if !set_up.failed.is_empty() => Some(FAILED),
        Some(set_up) if !set_up.ended.is_empty() => {
            let is_kept = purpose == BuildPurpose::Build;
            (is_kept && set_up.key.is_none()).then_some(NO_SNAPSHOTS)
        }
        Some(_) | None => Some(NOTHING),
    };
    if trouble.is_some() || purpose == BuildPurpose::Try {
        return end(session, trouble, context);
    }
    // A set-up may take longer than a snapshot does.
    let begun_ms = session.sandbox.phase_since_ms;
    match operate::taken(session, (begun_ms, 1), context) {
        operate::Taken::Step(next) => *next,
        operate::Taken::Done => end(session, None, context),
        operate::Taken::Failed(why) => end(session, Some(&why), context),
    }
}

/// What the snapshot at hand is made of; `None`: it is no prebuild.
pub(super) fn built(session: &Session, context: &Context<'_>) -> Option<BuiltProject> {
    let Work::Build(_) = context.delivery.message.work else { return None };
    let set_up = session.sandbox.project.set_up.as_ref()?;
    let repository = session.sandbox.project.carried.as_ref().map(|it| it.repository.id);
    Some(BuiltProject { key: set_up.key.clone()?, commit: set_up.commit.clone(), repository })
}

/// What prebuilds the tenant may have, if the snapshot at hand is one.
pub(super) fn share(session: &Session, context: &Context<'_>) -> Option<PrebuildShare> {
    let kept = session.sandbox.snapshots.iter().map(|kept| kept.name.clone());
    is_build(context).then(|| PrebuildShare {
        most: context.delivery.limits.set_up.prebuilds,
        keeps: kept.collect(),
    })
}

/// Whether the message in hand is a builder's.
pub(super) const fn is_build(context: &Context<'_>) -> bool {
    matches!(context.delivery.message.work, Work::Build(_))
}

fn end(session: &mut Session, trouble: Option<&str>, context: &Context<'_>) -> Next {
    operated::remember(session, Operation::Snapshot, trouble, context);
    leave(session, context)
}

/// The result is on record: nothing of the builder's sandbox is left.
fn leave(session: &mut Session, context: &Context<'_>) -> Next {
    if session.sandbox.is_alive()
        && let Some(next) = delete(session, context)
    {
        return next;
    }
    record::arm(session, context);
    record::at_rest(session, Next::Done, context)
}

fn delete(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    if session.sandbox.phase != Phase::Destroying {
        teardown::begin_destroying(session, "a builder is not kept", context);
    }
    lease::delete(session, context)
}

/// The next step of a sweep of a builder whose prebuild has not been renewed for too long, or was not finished; `None`:
/// nothing is due.
pub(super) fn expire(session: &Session, context: &Context<'_>) -> Option<Next> {
    let (first, due_ms) = first_to_go(session, context)?;
    let name = first.name.clone();
    (context.now_ms >= due_ms).then(|| delete_snapshot(name))
}

/// When the prebuild of a builder without a sandbox expires.
pub(super) fn due_at_ms(session: &Session, context: &Context<'_>) -> Option<Ms> {
    first_to_go(session, context).map(|(_, due_ms)| due_ms)
}

/// The snapshot of a builder without a sandbox that goes first, and when: one that was not finished goes at once.
fn first_to_go<'a>(session: &'a Session, context: &Context<'_>) -> Option<(&'a KeptSnapshot, Ms)> {
    let sandbox = &session.sandbox;
    let is_left = sandbox.is_builder() && !sandbox.is_alive();
    let unfinished = sandbox.snapshots.iter().find(|kept| kept.built.is_none());
    let first = unfinished.or(sandbox.snapshots.first()).filter(|_| is_left)?;
    let ttl_ms = context.delivery.limits.set_up.prebuild_ttl_ms;
    Some((first, first.at_ms + if first.built.is_some() { ttl_ms } else { 0 }))
}
