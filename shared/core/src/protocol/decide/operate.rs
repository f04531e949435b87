//! Operations on a thread's sandbox that the operator or another person requests: pause, resume, snapshot, delete,
//! forget.
//!
//! An operation travels through the thread's own group like every message, so no turn of the thread runs when it comes
//! to the head, and it cannot hit one. To avoid waiting for a running turn, end the turn first with a cancel flag, as
//! anybody would. The result is recorded. An operation never creates a thread's missing sandbox: that takes a prompt.

use super::{
    Context, Next, build, finish, lease, notice, operated, outside, provision, record, set_up,
    share, teardown, words,
};
use crate::base::ids::Ms;
use crate::base::person::Person;
use crate::protocol::effect::{Effect, SandboxEffect};
use crate::records::control::Operation;
use crate::records::message::{NewSandbox, Work};
use crate::records::outcome::Outcome;
use crate::records::sandbox::{KeptSnapshot, Phase, SandboxState, SnapshotSeen};
use crate::records::session::Session;
use crate::tenant::runtime_mode::RuntimeMode;

/// Next step of an operation.
pub(super) fn next(
    session: &mut Session,
    want: Operation,
    by: Option<&Person>,
    context: &Context<'_>,
) -> Next {
    if session.turn.is_some()
        && let Some(next) = finish::leftover(session, context)
    {
        return next;
    }
    if operated::known(session, context).is_some() {
        return over(session, want, by, context);
    }
    if let Some(wait) = wait_for_turns(session, want, by, context) {
        return wait;
    }
    if let Some(wait) = record::wait_for_lease(session, context) {
        return wait;
    }
    // A half-done operation is then left for the sweeper to finish.
    let limits = context.delivery.limits;
    let waits_for_turns = session.sandbox.is_shared()
        && context.now_ms < context.delivery.message.accepted_at_ms + 2 * limits.share.busy_ms;
    session.observed.sandbox.after_lease |= record::is_anothers_lease(session, context);
    let has_waited = waits_for_turns || session.observed.sandbox.after_lease;
    // Nobody would hear that a tool sandbox has not ended with its agent's: the queue's receive count ends that.
    let is_second = want == Operation::Destroy
        && RuntimeMode::recorded_as(session.sandbox.spec.runtime.as_deref())
            == Some(RuntimeMode::Bare);
    if context.delivery.receive > limits.retry.attempts + 1 && !has_waited && !is_second {
        if want == Operation::Snapshot
            && let Some(next) = set_up::start_held(session, context)
        {
            return next;
        }
        session.sandbox.sharing.closing = None;
        if matches!(session.sandbox.phase, Phase::Active | Phase::Paused) {
            session.sandbox.lease = None;
        }
        operated::remember(session, want, Some("it kept failing"), context);
        return over(session, want, by, context);
    }
    match want {
        Operation::Pause => pause(session, by, context),
        Operation::Resume => resume(session, want, context),
        Operation::Destroy => destroy(session, by, context),
        Operation::Forget => forget(session, context),
        Operation::Snapshot => snapshot(session, by, context),
        Operation::Create => {
            end(session, want, Some("the request does not say what to create"), context)
        }
    }
}

/// Stopping and deleting wait for the turns that work in the sandbox, which were told to end when the operation was
/// requested. A deletion that a person wants waits only up to a bound, and nothing begins in the sandbox meanwhile.
fn wait_for_turns(
    session: &mut Session,
    want: Operation,
    by: Option<&Person>,
    context: &Context<'_>,
) -> Option<Next> {
    let limits = context.delivery.limits;
    if !matches!(want, Operation::Pause | Operation::Destroy | Operation::Snapshot) {
        return None;
    }
    let deletes = want == Operation::Destroy && session.sandbox.is_alive();
    if deletes && session.sandbox.is_shared() && session.sandbox.sharing.closing.is_none() {
        session.sandbox.sharing.closing = Some(by.cloned().unwrap_or_default());
    }
    if record::is_idle(session, context) {
        return None;
    }
    if context.now_ms < context.delivery.message.accepted_at_ms + limits.share.busy_ms {
        return Some(Next::Hold {
            delay_ms: limits.retry.backoff(context.delivery.receive),
            why: "a turn is running in the sandbox".to_owned(),
        });
    }
    (want != Operation::Destroy).then(|| end(session, want, Some(BUSY), context))
}

/// Next step of creating a sandbox that no thread was the first of.
pub(super) fn create(session: &mut Session, new: &NewSandbox, context: &Context<'_>) -> Next {
    let want = Operation::Create;
    if operated::known(session, context).is_some() {
        return record::at_rest(session, Next::Done, context);
    }
    if has_failed_too_often(session, context) {
        return end(session, want, Some("it kept failing"), context);
    }
    // The agent's sandbox may have ended since the request: then nobody would end this one.
    if let Some(of) = new.agent.clone().filter(|_| !session.sandbox.is_alive()) {
        match session.observed.sandbox.agent_seen {
            None => return Next::Do(Effect::FindAgent { of }),
            Some(seen) if !seen.wants => return end(session, want, Some(NO_AGENT), context),
            Some(_) => {}
        }
    }
    // A sandbox that has ended is created anew, as it is wanted now.
    if session.sandbox.sharing.name.as_ref() != Some(&new.name) || !session.sandbox.is_alive() {
        match &session.observed.sandbox.name_found {
            None => {
                return Next::Do(Effect::FindName { name: new.name.clone() });
            }
            Some(Some(key)) if *key != session.sandbox_key() => {
                let taken = words::name_taken(&new.name);
                return end(session, want, Some(&taken), context);
            }
            Some(_) => {}
        }
        share::give_name(session, &new.name);
        let default = || context.settings.defaults.provider.clone();
        session.sandbox.spec.provider = new.provider.clone().or_else(default);
        session.sandbox.project.repo.clone_from(&new.repo);
        session.sandbox.spec.snapshot.clone_from(&new.snapshot);
        session.sandbox.tooling.agent.clone_from(&new.agent);
    }
    resume(session, want, context)
}

/// The requested snapshot, as the provider has it.
pub(super) fn snapshot_seen(
    session: &mut Session,
    name: String,
    seen: SnapshotSeen,
    context: &Context<'_>,
) {
    let message = context.delivery.message;
    let by = match &message.work {
        Work::Operate { by, .. } => by.clone().unwrap_or_default(),
        _ => Person::default(),
    };
    let is_ready = seen == SnapshotSeen::Ready;
    let built = build::built(session, context).filter(|_| is_ready);
    match session.sandbox.snapshots.iter_mut().find(|one| one.name == name) {
        Some(known) => known.built = known.built.take().or(built),
        // A builder's is on record before it is ready: it goes if nothing comes of it.
        None if is_ready || build::is_build(context) => {
            let at_ms = message.accepted_at_ms;
            session.sandbox.snapshots.push(KeptSnapshot { name, at_ms, by, built });
        }
        None => {}
    }
    session.observed.sandbox.snapshot = Some(seen);
}

/// Whether a message that brings a sandbox up has come too often, apart from the looks at a set-up.
pub(super) fn has_failed_too_often(session: &Session, context: &Context<'_>) -> bool {
    let limits = context.delivery.limits;
    let set_up = session.sandbox.project.set_up.as_ref();
    let looks = set_up.filter(|_| session.sandbox.is_alive()).map_or(0, |set_up| {
        let latest_ms = set_up.begun_ms + limits.set_up.all_ms;
        let until_ms = set_up.over_ms.unwrap_or_else(|| context.now_ms.min(latest_ms));
        until_ms.saturating_sub(set_up.begun_ms) / limits.set_up.look_ms.max(1)
    });
    u64::from(context.delivery.receive) > u64::from(limits.retry.attempts) + 1 + looks
}

/// Makes a snapshot of its disk; the oldest snapshot is deleted if there are too many.
fn snapshot(session: &mut Session, _: Option<&Person>, context: &Context<'_>) -> Next {
    let want = Operation::Snapshot;
    if session.sandbox.is_private() {
        return end(session, want, Some(words::PRIVATE_NOT_KEPT), context);
    }
    if session.sandbox.is_builder() {
        return end(session, want, Some("it makes prebuilds"), context);
    }
    match session.sandbox.phase {
        Phase::Active | Phase::Paused => {}
        Phase::Destroyed | Phase::Error => return end(session, want, Some(NONE), context),
        Phase::Creating | Phase::Resuming => {
            return end(session, want, Some("it is still being prepared"), context);
        }
        Phase::Pausing => return end(session, want, Some("it is being stopped"), context),
        Phase::Destroying => return end(session, want, Some("it is being deleted"), context),
    }
    let asked_at_ms = context.delivery.message.accepted_at_ms;
    match taken(session, (asked_at_ms, context.delivery.limits.share.snapshots), context) {
        Taken::Step(next) => *next,
        Taken::Done => end(session, want, None, context),
        Taken::Failed(why) => end(session, want, Some(&why), context),
    }
}

/// A snapshot that is made.
pub(super) enum Taken {
    /// The next step.
    Step(Box<Next>),
    /// It is kept, and no more than wanted are.
    Done,
    /// It could not be made; the reason.
    Failed(String),
}

/// The next step of a snapshot that was begun at that time, until no more than so many are kept.
pub(super) fn taken(
    session: &mut Session,
    (begun_ms, keeps): (Ms, usize),
    context: &Context<'_>,
) -> Taken {
    let limits = context.delivery.limits;
    match session.observed.sandbox.snapshot.clone() {
        Some(SnapshotSeen::Failed { why }) => {
            session.sandbox.lease = None;
            return Taken::Failed(why);
        }
        Some(SnapshotSeen::Ready) => {
            if session.sandbox.snapshots.len() > keeps
                && let Some(oldest) = session.sandbox.snapshots.first()
            {
                let name = oldest.name.clone();
                let delete = Effect::Sandbox(SandboxEffect::DeleteSnapshot { name });
                return Taken::Step(Box::new(Next::Do(delete)));
            }
            session.sandbox.lease = None;
            return Taken::Done;
        }
        // A build looks at least once: what exists has to be on record.
        seen if context.now_ms >= begun_ms + limits.share.snapshot_ms
            && (seen.is_some() || !build::is_build(context)) =>
        {
            if let Some(next) = set_up::start_held(session, context) {
                return Taken::Step(Box::new(next));
            }
            session.sandbox.lease = None;
            return Taken::Failed("it was not created in time".to_owned());
        }
        None | Some(SnapshotSeen::UnderWay) => {}
    }
    // Nothing begins in the sandbox meanwhile, so that the disk is from a single moment.
    let ends_soon = session.sandbox.lease.as_ref().is_none_or(|lease| {
        context.delivery.message.id != lease.holder
            || lease.until_ms < context.now_ms + limits.poll.visibility_ms
    });
    if ends_soon {
        record::lease_of_message(session, context);
    }
    let after_ms = match session.observed.sandbox.snapshot {
        None => 0,
        Some(_) => record::pause_ms(begun_ms, context),
    };
    let set_up = session.sandbox.project.set_up.as_ref();
    let services = set_up.map(|set_up| set_up.recipe.services.clone()).unwrap_or_default();
    Taken::Step(Box::new(Next::Do(Effect::Sandbox(SandboxEffect::Snapshot {
        at_ms: context.delivery.message.accepted_at_ms,
        after_ms,
        services,
        share: build::share(session, context),
    }))))
}

/// Its entry in the timeline.
fn note(done: &str, by: Option<&Person>) -> String {
    let who = by.map_or("the operator", |by| &by.name);
    format!("{done} by {who}")
}

fn pause(session: &mut Session, by: Option<&Person>, context: &Context<'_>) -> Next {
    let want = Operation::Pause;
    match session.sandbox.phase {
        Phase::Active | Phase::Resuming => {
            record::enter(session, Phase::Pausing, &note("paused", by), context);
            record::lease(session, context);
        }
        Phase::Pausing => {}
        Phase::Paused => return end(session, want, None, context),
        Phase::Creating => return end(session, want, Some("it is still being created"), context),
        Phase::Destroying => return end(session, want, Some("it is being deleted"), context),
        Phase::Destroyed | Phase::Error => return end(session, want, Some(NONE), context),
    }
    let next = teardown::pause(session, context);
    match session.sandbox.phase {
        Phase::Pausing => next,
        Phase::Paused => end(session, want, None, context),
        _ => end(session, want, Some("it no longer exists"), context),
    }
}

fn destroy(session: &mut Session, by: Option<&Person>, context: &Context<'_>) -> Next {
    let want = Operation::Destroy;
    let has_second = outside::ends(session);
    match session.sandbox.phase {
        // A sandbox that is only a name releases the name; one that was lost ends its tool sandbox.
        Phase::Destroyed | Phase::Error if session.sandbox.is_shared() || has_second => {
            let next = destroyed(session, by, context);
            record::arm(session, context);
            return outside::next(session).unwrap_or(next);
        }
        Phase::Destroyed | Phase::Error => return end(session, want, Some(NONE), context),
        Phase::Destroying => {}
        Phase::Creating | Phase::Active | Phase::Pausing | Phase::Paused | Phase::Resuming => {
            teardown::begin_destroying(session, &note("deleted", by), context);
        }
    }
    match lease::delete(session, context) {
        Some(next) => next,
        None => destroyed(session, by, context),
    }
}

/// The sandbox was deleted on request: no thread works or waits in it any more, and its name is free.
fn destroyed(session: &mut Session, by: Option<&Person>, context: &Context<'_>) -> Next {
    let sandbox = &mut session.sandbox;
    sandbox.sharing.closing = None;
    sandbox.sharing.in_use.clear();
    sandbox.sharing.waiting.clear();
    share::give_up_name(session);
    operated::remember(session, Operation::Destroy, None, context);
    over(session, Operation::Destroy, by, context)
}

fn resume(session: &mut Session, want: Operation, context: &Context<'_>) -> Next {
    let phase = session.sandbox.phase;
    if phase == Phase::Creating && want == Operation::Resume {
        return end(session, want, Some("it is still being created"), context);
    }
    if matches!(phase, Phase::Destroyed | Phase::Error) && want == Operation::Resume {
        return end(session, want, Some(NONE), context);
    }
    match bring_up(session, context) {
        BroughtUp::Step(next) => *next,
        BroughtUp::No(trouble) => end(session, want, Some(&trouble), context),
        BroughtUp::Ready => end(session, want, None, context),
    }
}

/// A sandbox that is being brought up for something other than a turn.
pub(super) enum BroughtUp {
    /// The next step.
    Step(Box<Next>),
    /// It is up, and its server healthy.
    Ready,
    /// It cannot be brought up; the reason.
    No(String),
}

/// Brings the sandbox up. Whoever wants that is going to use it: its idle time begins now.
pub(super) fn bring_up(session: &mut Session, context: &Context<'_>) -> BroughtUp {
    let limits = context.delivery.limits;
    match (session.sandbox.phase, &session.observed.sandbox.state) {
        (Phase::Active, _) if session.observed.agent.healthy || session.sandbox.is_builder() => {
            session.sandbox.last_activity_ms = context.now_ms;
            record::arm(session, context);
            return BroughtUp::Ready;
        }
        (Phase::Destroying, _) if !provision::is_made_anew(session) => {
            return BroughtUp::No("it is being deleted".to_owned());
        }
        (
            Phase::Resuming | Phase::Active | Phase::Paused | Phase::Pausing,
            Some(SandboxState::Gone),
        ) => {
            record::vanished(session, context);
            return BroughtUp::No("it no longer exists".to_owned());
        }
        // Another build is asked for by the next thread.
        (Phase::Creating, Some(SandboxState::Gone)) if build::is_build(context) => {
            record::vanished(session, context);
            return BroughtUp::No("it no longer exists".to_owned());
        }
        (_, Some(SandboxState::Broken { reason, .. })) => {
            return BroughtUp::No(words::broken(reason));
        }
        _ => {}
    }
    if session.observed.agent.downs > limits.turn.server_restarts + 1 {
        let seen = session.observed.trouble.take().unwrap_or_default();
        return BroughtUp::No(format!("its server does not answer: {seen}"));
    }
    match provision::step(session, context) {
        Some(next) => BroughtUp::Step(Box::new(next)),
        // Every other way on belongs to a turn; without a turn it means that the sandbox took too long.
        None if session.sandbox.phase == Phase::Active => bring_up(session, context),
        None => BroughtUp::No(words::not_ready(limits.sandbox.start_ms)),
    }
}

/// Keeps what a repeat of a message needs: the ids of what has ended, and the generation, which never comes back.
fn forget(session: &mut Session, context: &Context<'_>) -> Next {
    let want = Operation::Forget;
    if !matches!(session.sandbox.phase, Phase::Destroyed) || session.sandbox.tooling.tools.is_some()
    {
        let trouble = "it still has a sandbox with people's files: destroy that first";
        return end(session, want, Some(trouble), context);
    }
    for ended in &mut session.ended {
        match &mut ended.outcome {
            Outcome::Cancelled { by } => by.clear(),
            Outcome::Failed { reason } | Outcome::OverBudget { reason, .. } => reason.clear(),
            Outcome::Answered | Outcome::Joined { .. } | Outcome::Lost => {}
        }
    }
    session.sandbox.history.timeline.clear();
    session.shown.clear();
    (session.sandbox.project.repo, session.conversation.options, session.conversation.briefed) =
        (None, None, None);
    session.conversation.told = None;
    session.conversation.fresh_since_ms = context.now_ms;
    for operated in &mut session.sandbox.history.operated {
        operated.trouble = operated.trouble.take().map(|_| String::new());
    }
    end(session, want, None, context)
}

/// What an operation would meet, by the present record; the head of the group decides again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlook {
    /// It can be requested.
    Open,
    /// A turn is under way: the operation waits for its end, unless somebody ends it first.
    Busy,
    /// There is nothing to do; the reason.
    Pointless(&'static str),
}

/// Judges the operation by the present record.
#[must_use]
pub fn outlook(session: &Session, want: Operation) -> Outlook {
    if session.turn.is_some() || session.sandbox.is_in_use() {
        return Outlook::Busy;
    }
    match (want, session.sandbox.phase) {
        (Operation::Forget, Phase::Destroyed) if session.sandbox.tooling.tools.is_none() => {
            Outlook::Open
        }
        (Operation::Forget, _) => {
            Outlook::Pointless("it still has a sandbox with people's files: destroy that first")
        }
        // A sandbox that was lost has left its tool sandbox.
        (Operation::Destroy, Phase::Destroyed | Phase::Error)
            if session.sandbox.tooling.tools.is_some() =>
        {
            Outlook::Open
        }
        (_, Phase::Destroyed | Phase::Error) => Outlook::Pointless(NONE),
        (Operation::Pause, Phase::Paused) => Outlook::Pointless("it is already paused"),
        _ => Outlook::Open,
    }
}

/// Reasons why there is nothing to do.
const NONE: &str = "the thread has no sandbox";
const NO_AGENT: &str = "its agent's sandbox no longer exists";
const BUSY: &str = "a turn is still running in it: stop the turn first";

fn end(
    session: &mut Session,
    want: Operation,
    trouble: Option<&str>,
    context: &Context<'_>,
) -> Next {
    operated::remember(session, want, trouble, context);
    over(session, want, None, context)
}

/// What remains once the result is recorded: people are told that their files are gone, or that a person's deletion
/// failed.
fn over(
    session: &mut Session,
    want: Operation,
    by: Option<&Person>,
    context: &Context<'_>,
) -> Next {
    let known = operated::known(session, context);
    let deleted = known.is_some_and(|known| known.trouble.is_none());
    let trouble = known.and_then(|known| known.trouble.clone());
    // A late repeat finds the next generation, of which this says nothing. What is still being deleted is finished by
    // the sweeper.
    if want == Operation::Destroy
        && session.sandbox.phase == Phase::Error
        && let (Some(by), Some(trouble)) = (by, trouble.filter(|trouble| trouble != NONE))
    {
        session.observed.trouble = None;
        let word = words::not_destroyed(&by.name, &trouble);
        if let Some(next) = share::notify(session, &word, false, context) {
            return next;
        }
    }
    if want == Operation::Destroy && deleted && session.sandbox.phase == Phase::Destroyed {
        session.observed.trouble = None;
        let word = words::destroyed_by(by.map_or("", |by| &by.name));
        if let Some(next) = share::notify(session, &word, by.is_some(), context) {
            return next;
        }
        session.sandbox.sharing.threads.clear();
        if session.thread.is_conversation() {
            return notice::once(session, words::DESTROYED, context);
        }
    }
    record::at_rest(session, Next::Done, context)
}
