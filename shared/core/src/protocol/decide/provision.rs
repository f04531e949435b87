//! The steps until the sandbox runs, its server is healthy and the agent session is known.

use super::{Context, Next, forge, outside, record, words};
use crate::protocol::effect::{AgentEffect, Effect, SandboxEffect, Watched};
use crate::protocol::event::NotCloned;
use crate::records::message::Work;
use crate::records::outcome::Outcome;
use crate::records::sandbox::{Phase, SandboxState};
use crate::records::session::Session;

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
        let late = |bound_ms: u64| context.now_ms >= session.sandbox.phase_since_ms + bound_ms;
        return match (session.sandbox.phase, session.observed.sandbox.state.clone()) {
            (Phase::Destroyed | Phase::Error, _)
                if limits.tenant.sandboxes > 0 && session.observed.sandbox.of_tenant.is_none() =>
            {
                act(Effect::Sandbox(SandboxEffect::Count { older_than: None }))
            }
            (Phase::Destroyed | Phase::Error, _)
                if limits.tenant.sandboxes > 0
                    && session.observed.sandbox.of_tenant >= Some(limits.tenant.sandboxes) =>
            {
                record::fail(session, &words::too_many_sandboxes(limits.tenant.sandboxes));
                None
            }
            (Phase::Destroyed | Phase::Error, _) => {
                begin_generation(session, context);
                continue;
            }
            (Phase::Creating, None) => {
                act(Effect::Sandbox(SandboxEffect::Create { snapshot: own_snapshot(session) }))
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
                if !matches!(session.sandbox.phase, Phase::Creating | Phase::Resuming) {
                    return None;
                }
                match brought.or_else(|| server(session, context)) {
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
            (Phase::Active, _) if !session.observed.agent.healthy => {
                act(Effect::Agent(AgentEffect::CheckServer {
                    within_ms: limits.turn.health_active_ms,
                }))
            }
            (Phase::Active, _) => find_agent_session(session, context),
        };
    }
}

/// Runtime of the new generation: chosen by the turn, the create message, the tenant, or the stack.
fn runtime(session: &Session, context: &Context<'_>) -> Option<String> {
    let chosen = match (&session.turn, &context.delivery.message.work) {
        (Some(turn), _) => turn.selection.runtime.clone(),
        (None, Work::Create(new)) => new.runtime.clone(),
        (None, _) => None,
    };
    let default = || context.settings.defaults.runtime.clone();
    let of_stack = || context.delivery.runtime.recorded().map(str::to_owned);
    chosen.or_else(default).or_else(of_stack)
}

/// Begins the next generation; nothing of the sandbox before it carries over.
fn begin_generation(session: &mut Session, context: &Context<'_>) {
    session.sandbox.generation += 1;
    (session.sandbox.left_out, session.sandbox.carried) = (None, None);
    session.sandbox.pull = None;
    if session.sandbox.without_secrets > REMADE_MAX {
        session.sandbox.without_secrets = 0;
    }
    session.sandbox.credentials = context.settings.sandbox_credentials();
    session.sandbox.runtime = runtime(session, context);
    record::leave(session);
    if let Some(turn) = &session.turn {
        let chosen = &turn.selection;
        session.sandbox.repo.clone_from(&chosen.repo);
        // The provider belongs to the sandbox: the choice of a later turn does not move it. For an agent that works
        // elsewhere, the choice says where the code is.
        if session.sandbox.works_elsewhere() {
            session.sandbox.tools_provider.clone_from(&chosen.provider);
        } else if session.sandbox.provider.is_none() {
            session.sandbox.provider.clone_from(&chosen.provider);
        }
        if chosen.snapshot.is_some() {
            session.sandbox.snapshot.clone_from(&chosen.snapshot);
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
    let of_code = || sandbox.snapshot.clone();
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
    session.sandbox.without_secrets = 0;
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

/// A new sandbox gets its repository before its server starts in it. A sandbox that was active before has it.
fn repository(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    let repo = session.sandbox.repo.clone()?;
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
    let repo = session.sandbox.repo.take().unwrap_or_default();
    let reason = words::not_cloned(&repo, why);
    abandon(session, &reason, context);
}

/// The new sandbox is useless: it will never put secrets in. Another one replaces it; if that is no better, the turn
/// fails with the reason.
pub(super) fn secrets_not_put_in(session: &mut Session, context: &Context<'_>) {
    let count = session.sandbox.without_secrets + 1;
    if count > REMADE_MAX {
        abandon(session, words::SECRETS_NOT_PUT_IN, context);
        session.sandbox.without_secrets = count;
        return;
    }
    session.sandbox.without_secrets = count;
    session.observed.sandbox.state = None;
    record::enter(session, Phase::Destroying, REMADE, context);
    record::lease(session, context);
}

/// Whether the sandbox being deleted is replaced at once.
pub(super) const fn is_made_anew(session: &Session) -> bool {
    let before = session.sandbox.without_secrets;
    before > 0 && before <= REMADE_MAX
}

fn server(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    if !session.observed.agent.healthy {
        let restart = session.observed.agent.restart_server;
        return act(Effect::Sandbox(SandboxEffect::EnsureServer {
            is_new: session.sandbox.phase == Phase::Creating,
            restart,
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
fn abandon(session: &mut Session, reason: &str, context: &Context<'_>) -> Option<Next> {
    record::fail(session, reason);
    outside::ends_half_made(session);
    session.sandbox.without_secrets = 0;
    session.observed.sandbox.state = None;
    record::enter(session, Phase::Destroying, "it could not be prepared", context);
    record::lease(session, context);
    None
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
