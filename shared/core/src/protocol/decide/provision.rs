//! The steps until the sandbox runs, its server is healthy and the agent session is known.

use super::{
    Context, Next, budget, build, forge, operated, outside, record, secrets, set_up, words,
};
use crate::base::limits::Limits;
use crate::protocol::effect::{AgentEffect, Effect, SandboxEffect, Watched};
use crate::protocol::event::NotCloned;
use crate::records::message::Work;
use crate::records::outcome::Outcome;
use crate::records::prebuild::BeginsWith;
use crate::records::sandbox::{Phase, SandboxState};
use crate::records::session::Session;
use crate::tenant::runtime_mode::RuntimeMode;

/// How many sandboxes in a row may be replaced because they put no secrets in.
const REMADE_MAX: u32 = 1;
const REMADE: &str = "it does not put secrets into requests: created again";

/// The missing step; `None` when the agent can be talked to. A turn that cannot go on is put into `Ending`, which shows
/// as a step back to the caller (`None` with the stage changed is never "ready": see `prompt`).
pub(super) fn step(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    let limits = context.delivery.limits;
    // Another thread that shares the sandbox may have seen it go: what its agent had been given went with it.
    let is_lost =
        |generation: u32| generation != session.sandbox.generation || !session.sandbox.is_alive();
    if let Some(turn) = &session.turn
        && turn.stage.prompted().is_some_and(|at| is_lost(at.generation))
    {
        record::end_with(session, Outcome::Lost);
        return None;
    }
    if let Some(wait) = record::wait_for_lease(session, context) {
        return Some(wait);
    }
    loop {
        let since_ms = session.sandbox.phase_since_ms;
        let late = |bound_ms: u64| context.now_ms >= since_ms + bound_ms;
        return match (session.sandbox.phase, session.observed.sandbox.state.clone()) {
            (Phase::Destroyed | Phase::Error, _)
                if limits.tenant.sandboxes > 0 && session.observed.sandbox.of_tenant.is_none() =>
            {
                act(Effect::Sandbox(SandboxEffect::Count { older_than: None }))
            }
            (Phase::Destroyed | Phase::Error, _)
                if limits.tenant.sandboxes > 0
                    && session.observed.sandbox.of_tenant >= Some(room(limits, context)) =>
            {
                fail(session, &words::too_many_sandboxes(limits.tenant.sandboxes), context);
                None
            }
            (Phase::Destroyed | Phase::Error, _) => {
                begin_generation(session, context);
                continue;
            }
            (Phase::Creating, None) => build::find(session, context).or_else(|| {
                let prebuild = session.sandbox.project.begins.prebuild();
                let prebuild = prebuild.map(|prebuild| prebuild.snapshot.clone());
                let snapshot = own_snapshot(session);
                act(Effect::Sandbox(SandboxEffect::Create { snapshot, prebuild }))
            }),
            (Phase::Creating, Some(SandboxState::Provisioning | SandboxState::Busy))
                if late(limits.set_up.prebuild_wait_ms)
                    && session.sandbox.project.set_up.is_none()
                    // A large one may only be slow to come to another machine.
                    && build::begin_without(session, false, context) =>
            {
                continue;
            }
            (Phase::Creating, Some(SandboxState::Broken { .. }))
                if build::begin_without(session, true, context) =>
            {
                continue;
            }
            (Phase::Creating, Some(SandboxState::Provisioning | SandboxState::Busy))
                if late(limits.sandbox.create_ms) =>
            {
                abandon(session, &words::not_ready(limits.sandbox.create_ms), context)
            }
            (Phase::Creating, Some(SandboxState::Broken { reason, .. })) => {
                abandon(session, &words::broken(&reason), context)
            }
            (Phase::Resuming, None) => {
                act(Effect::Sandbox(SandboxEffect::Observe { after_ms: 0, watch: None }))
            }
            (Phase::Resuming, Some(SandboxState::Provisioning | SandboxState::Busy))
                if late(limits.sandbox.start_ms) =>
            {
                record::fail(session, &words::not_ready(limits.sandbox.start_ms));
                None
            }
            (Phase::Resuming, Some(SandboxState::Broken { reason, .. })) => {
                record::fail(session, &words::broken(&reason));
                None
            }
            (
                Phase::Creating | Phase::Resuming,
                Some(SandboxState::Provisioning | SandboxState::Busy),
            ) => act(Effect::Sandbox(SandboxEffect::Observe {
                after_ms: record::pause_ms(session.sandbox.phase_since_ms, context),
                watch: watch(session),
            })),
            (Phase::Creating | Phase::Resuming, Some(SandboxState::Stopped)) => {
                start(session, late(limits.sandbox.start_ms), context)
            }
            (Phase::Creating | Phase::Resuming, Some(SandboxState::Running)) => {
                let brought = repository(session, context);
                // It was given up.
                if session.sandbox.phase == Phase::Destroying && is_made_anew(session) {
                    continue;
                }
                if !matches!(session.sandbox.phase, Phase::Creating | Phase::Resuming) {
                    return None;
                }
                match brought.or_else(|| server_of_ready_project(session, context)) {
                    Some(next) => Some(next),
                    None if session.sandbox.phase == Phase::Creating
                        && limits.tenant.sandboxes > 0 =>
                    {
                        within_quota(session, context)
                    }
                    None => {
                        ready(session, context);
                        None
                    }
                }
            }
            (Phase::Creating | Phase::Resuming | Phase::Active, Some(SandboxState::Gone)) => {
                vanished(session, context);
                if session.turn.as_ref().is_some_and(|turn| turn.stage.is_ending()) {
                    None
                } else {
                    continue;
                }
            }
            (Phase::Pausing | Phase::Paused, _) => {
                session.observed.sandbox.state = None;
                record::enter(session, Phase::Resuming, "a message came", context);
                record::lease_to_bring_up(session, context);
                continue;
            }
            (Phase::Destroying, Some(SandboxState::Gone)) => {
                record::gone(session, "deleted", context);
                continue;
            }
            (Phase::Destroying, _) => super::lease::delete(session, context),
            (Phase::Active, _) if begins(session) && budget::key_ends_soon(session, context) => {
                start_anew(session, "its model key ends soon", context);
                continue;
            }
            (Phase::Active, _) if begins(session) && secrets::is_stale(session, context) => {
                start_anew(session, "the project's secrets were changed", context);
                continue;
            }
            (Phase::Active, _) if !session.observed.agent.healthy => {
                act(Effect::Agent(AgentEffect::CheckServer {
                    within_ms: limits.turn.health_active_ms,
                }))
            }
            (Phase::Active, _) => find_agent_session(session, context),
        };
    }
}

/// The server is ended and started again.
fn start_anew(session: &mut Session, why: &str, context: &Context<'_>) {
    session.observed.sandbox.state = None;
    session.observed.agent.healthy = false;
    session.observed.agent.restart_server = true;
    record::enter(session, Phase::Resuming, why, context);
    record::lease_to_bring_up(session, context);
}

/// Whether a turn has its workspace, and the agent knows nothing of the turn yet.
fn begins(session: &Session) -> bool {
    let turn = session.turn.as_ref();
    turn.is_some_and(|turn| {
        turn.stage.is_received() && session.sandbox.is_in_use_by(&session.thread, &turn.id)
    })
}

/// How many sandboxes the tenant may have before this one. A builder leaves the last place to people.
fn room(limits: &Limits, context: &Context<'_>) -> u32 {
    limits.tenant.sandboxes.saturating_sub(u32::from(build::is_build(context)))
}

/// Runtime of the new generation: chosen by the turn, the create message, the tenant, or the stack.
fn runtime(session: &Session, context: &Context<'_>) -> Option<String> {
    let chosen = match (&session.turn, &context.delivery.message.work) {
        (Some(turn), _) => turn.selection.runtime.clone(),
        (None, Work::Create(new)) => new.runtime.clone(),
        // It has no agent, and so no key.
        (None, Work::Build(_)) => return Some(RuntimeMode::Bare.name().to_owned()),
        (None, _) => None,
    };
    let default = || context.settings.defaults.runtime.clone();
    let of_stack = || context.delivery.runtime.recorded().map(str::to_owned);
    chosen.or_else(default).or_else(of_stack)
}

/// Begins the next generation; nothing of the sandbox before it carries over.
fn begin_generation(session: &mut Session, context: &Context<'_>) {
    session.sandbox.generation += 1;
    (session.sandbox.project.left_out, session.sandbox.project.carried) = (None, None);
    (session.sandbox.project.pull, session.sandbox.project.set_up) = (None, None);
    session.sandbox.project.secrets = None;
    session.sandbox.project.beside.clear();
    if !matches!(session.sandbox.project.begins, BeginsWith::ImageInstead(_)) {
        session.sandbox.project.begins = BeginsWith::Unknown;
    }
    if session.sandbox.history.without_secrets > REMADE_MAX {
        session.sandbox.history.without_secrets = 0;
    }
    session.sandbox.spec.credentials = context.settings.sandbox_credentials();
    session.sandbox.spec.runtime = runtime(session, context);
    if let Work::Build(_) = context.delivery.message.work {
        session.sandbox.project.builds = Some(context.delivery.message.id.clone());
    }
    record::leave(session);
    if let Some(turn) = &session.turn {
        let chosen = &turn.selection;
        session.sandbox.project.repo.clone_from(&chosen.repo);
        // The provider belongs to the sandbox: the choice of a later turn does not move it. For an agent that works
        // elsewhere, the choice says where the code is.
        if session.sandbox.works_elsewhere() {
            session.sandbox.tooling.tools_provider.clone_from(&chosen.provider);
        } else if session.sandbox.spec.provider.is_none() {
            session.sandbox.spec.provider.clone_from(&chosen.provider);
        }
        if chosen.snapshot.is_some() {
            session.sandbox.spec.snapshot.clone_from(&chosen.snapshot);
        }
    }
    outside::begins(session);
    // It was counted for, too; the next count covers only the sandboxes created before it.
    session.observed.forget_sandbox();
    let note = format!("sandbox {}", session.sandbox.generation);
    record::enter(session, Phase::Creating, &note, context);
    record::lease_to_bring_up(session, context);
}

/// The snapshot to create the sandbox from; `None` for an agent that works elsewhere, since the choice was made for the
/// code.
fn own_snapshot(session: &Session) -> Option<String> {
    let sandbox = &session.sandbox;
    let of_code = || sandbox.spec.snapshot.clone();
    (!sandbox.works_elsewhere()).then(of_code).flatten()
}

/// Threads that counted before they created their sandboxes may have counted at the same time: the last ones give way.
/// Done only now, because the provider's list lags behind.
fn within_quota(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    let bound = context.delivery.limits.tenant.sandboxes;
    match session.observed.sandbox.of_tenant {
        None => act(Effect::Sandbox(SandboxEffect::Count {
            older_than: Some(session.sandbox.generation),
        })),
        Some(older) if older >= bound => {
            abandon(session, &words::too_many_sandboxes(bound), context)
        }
        Some(_) => {
            ready(session, context);
            None
        }
    }
}

fn ready(session: &mut Session, context: &Context<'_>) {
    session.sandbox.history.without_secrets = 0;
    if matches!(session.sandbox.project.begins, BeginsWith::ImageInstead(_)) {
        session.sandbox.project.begins = BeginsWith::Image;
    }
    record::enter(session, Phase::Active, "ready", context);
}

fn act(effect: Effect) -> Option<Next> {
    Some(Next::Do(effect))
}

fn start(session: &mut Session, late: bool, context: &Context<'_>) -> Option<Next> {
    let limits = context.delivery.limits;
    if late {
        record::fail(session, &words::not_ready(limits.sandbox.start_ms));
        return None;
    }
    if session.observed.sandbox.start_asked {
        return act(Effect::Sandbox(SandboxEffect::Observe {
            after_ms: record::pause_ms(session.sandbox.phase_since_ms, context),
            watch: watch(session),
        }));
    }
    session.observed.sandbox.start_asked = true;
    act(Effect::Sandbox(SandboxEffect::Start))
}

/// The project is made ready before the server starts in it. Given up in this: `None`.
fn server_of_ready_project(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    let set_up = set_up::step(session, context).or_else(|| build::request(session, context));
    if set_up.is_some() || session.sandbox.is_builder() {
        return set_up;
    }
    server(session, context)
}

/// A new sandbox gets its repository before its server starts in it. A sandbox that was active before has it.
fn repository(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    let repo = session.sandbox.project.repo.clone()?;
    if session.sandbox.works_elsewhere()
        || session.sandbox.phase != Phase::Creating
        || session.observed.sandbox.cloned
        || session.observed.agent.healthy
    {
        return None;
    }
    forge::bring(session, &repo, context)
}

/// The new sandbox is useless without its repository: the turn says so, and the next turn creates a new one.
/// A clone that failed because another delivery had already brought this generation up changes nothing.
pub(super) fn not_cloned(session: &mut Session, why: &NotCloned, context: &Context<'_>) {
    if session.sandbox.phase != Phase::Creating {
        return;
    }
    // What its set-up left may stand in the way.
    let is_in_the_way =
        matches!(why, NotCloned::TooLong { .. } | NotCloned::NoRoom | NotCloned::Other { .. });
    if is_in_the_way && build::begin_without(session, true, context) {
        return;
    }
    let repo = session.sandbox.project.repo.take().unwrap_or_default();
    let reason = words::not_cloned(&repo, why);
    abandon(session, &reason, context);
}

/// The new sandbox is useless: it will never put secrets in. Another one replaces it; if that is no better, the turn
/// fails with the reason.
pub(super) fn secrets_not_put_in(session: &mut Session, context: &Context<'_>) {
    let count = session.sandbox.history.without_secrets + 1;
    if count > REMADE_MAX {
        abandon(session, words::SECRETS_NOT_PUT_IN, context);
        session.sandbox.history.without_secrets = count;
        return;
    }
    session.sandbox.history.without_secrets = count;
    session.observed.sandbox.state = None;
    record::enter(session, Phase::Destroying, REMADE, context);
    record::lease(session, context);
}

/// Whether the sandbox being deleted is replaced at once.
pub(super) const fn is_made_anew(session: &Session) -> bool {
    let before = session.sandbox.history.without_secrets;
    let begins = &session.sandbox.project.begins;
    matches!(begins, BeginsWith::ImageInstead(_)) || (before > 0 && before <= REMADE_MAX)
}

fn server(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    if !session.observed.agent.healthy {
        // A server left running by an earlier delivery lacks what has changed since.
        let restart = session.observed.agent.restart_server || secrets::is_stale(session, context);
        return act(Effect::Sandbox(SandboxEffect::EnsureServer {
            is_new: session.sandbox.phase == Phase::Creating,
            restart,
            cap: budget::cap(session, context),
            within_ms: context.delivery.limits.turn.health_start_ms,
            watch: watch(session),
        }));
    }
    find_agent_session(session, context)
}

/// The turn whose Stop ends a wait for its sandbox; `None` once the Stop is known, so that the current effect runs to
/// its end.
pub(super) fn watch(session: &Session) -> Option<Watched> {
    let turn = session.turn.as_ref()?;
    let stoppable = turn.stage.is_received() && turn.cancelled_by.is_none();
    stoppable.then(|| Watched { turn: turn.id.clone(), accepted_at_ms: turn.accepted_at_ms })
}

/// What only a thread needs: its own workspace, if it has one, and its agent session. Not needed if no turn waits for
/// it.
fn find_agent_session(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    if session.observed.agent.session || !session.thread.is_conversation() {
        return None;
    }
    if session.workspace().is_none() {
        return act(Effect::Sandbox(SandboxEffect::MakeWorkspace {
            within_ms: context.delivery.limits.share.workspace_ms,
        }));
    }
    act(Effect::Agent(AgentEffect::FindAgentSession {
        known: session.conversation.session.clone(),
        since_ms: session.conversation.fresh_since_ms,
        agent: session.turn.as_ref().and_then(|turn| turn.selection.agent.clone()),
    }))
}

/// The new sandbox cannot be had: the turn says so, and the half-made sandbox is deleted.
pub(super) fn abandon(session: &mut Session, reason: &str, context: &Context<'_>) -> Option<Next> {
    fail(session, reason, context);
    outside::ends_half_made(session);
    session.sandbox.history.without_secrets = 0;
    session.sandbox.project.begins = BeginsWith::Unknown;
    session.observed.sandbox.state = None;
    record::enter(session, Phase::Destroying, "it could not be prepared", context);
    record::lease(session, context);
    None
}

/// The reason is the turn's end, or that of the operation for which the sandbox is brought up.
fn fail(session: &mut Session, reason: &str, context: &Context<'_>) {
    record::fail(session, reason);
    if session.turn.is_none() {
        operated::refused(session, reason, context);
    }
}

/// The provider no longer knows the sandbox.
fn vanished(session: &mut Session, context: &Context<'_>) {
    let generation = session.sandbox.generation;
    record::vanished(session, context);
    let Some(turn) = &mut session.turn else {
        return;
    };
    // The agent may have had the prompt and acted on it: Bobbin never runs it again by itself.
    let prompted = turn.stage.prompted();
    if prompted.is_some_and(|prompted| prompted.generation == generation) {
        record::end_with(session, Outcome::Lost);
        return;
    }
    turn.tries.attempts += 1;
    if turn.tries.attempts > context.delivery.limits.retry.attempts {
        record::fail(session, &words::kept_failing(Some("the sandbox vanished")));
    }
}
