//! Small changes of the record that several rules share.

use super::words::for_agent;
use super::{Context, Next, budget, build, watch};
use crate::base::ids::{Ms, TurnId};
use crate::base::limits::SandboxLimits;
use crate::protocol::effect::Effect;
use crate::records::ledger::{self, LedgerEntry};
use crate::records::message::Prompt;
use crate::records::observations::{ChatObserved, Observations, SandboxObserved};
use crate::records::outcome::Outcome;
use crate::records::run::RunAnswer;
use crate::records::sandbox::{InUse, Lease, Phase, TimelineEntry, Vanished, Waiting};
use crate::records::session::Session;
use crate::records::stage::Stage;
use crate::records::turn::{EndedTurn, Steered, Turn};
use crate::records::usage::Usage;

/// Delay before the first observation of something that has just begun.
const FIRST_LOOK_MS: u64 = 250;

/// Enters a phase: stamps it, notes it in the timeline, and schedules the next sweep.
pub(super) fn enter(session: &mut Session, phase: Phase, note: &str, context: &Context<'_>) {
    let limits = context.delivery.limits;
    budget::entered(session, phase, context);
    session.sandbox.phase = phase;
    session.sandbox.phase_since_ms = context.now_ms;
    session.sandbox.history.timeline.push(TimelineEntry {
        at_ms: context.now_ms,
        phase,
        note: note.to_owned(),
    });
    let surplus = session.sandbox.history.timeline.len().saturating_sub(limits.record.timeline);
    session.sandbox.history.timeline.drain(..surplus);
    if !is_on_its_way(phase) {
        session.sandbox.lease = None;
    }
    // Nothing runs in a sandbox that is stopped or has just been requested.
    if matches!(phase, Phase::Paused | Phase::Creating | Phase::Destroyed) {
        session.stray = None;
        session.sandbox.sharing.in_use.retain(|one| !one.left);
        session.sandbox.money.capped_until_ms = None;
    }
    arm(session, context);
}

const fn is_on_its_way(phase: Phase) -> bool {
    matches!(phase, Phase::Creating | Phase::Resuming | Phase::Pausing | Phase::Destroying)
}

/// Takes the lease under which this delivery may stop, or this message delete: nobody else acts until it is over.
pub(super) fn lease(session: &mut Session, context: &Context<'_>) {
    let holder = lease_holder(session, context);
    lease_for(session, holder, context);
}

/// Takes the lease for whichever delivery of this message comes: what it does may be repeated.
pub(super) fn lease_of_message(session: &mut Session, context: &Context<'_>) {
    lease_for(session, context.delivery.message.id.to_string(), context);
}

fn lease_for(session: &mut Session, holder: String, context: &Context<'_>) {
    let limits = context.delivery.limits;
    let until_ms = context.now_ms + limits.poll.visibility_ms + limits.sandbox.lifecycle_call_ms;
    session.sandbox.lease = Some(Lease { holder, until_ms });
    arm(session, context);
}

/// The name under which this delivery takes a lease. Repeating a delete is harmless, so its lease belongs to the
/// message, and the next delivery continues at once. A late stop is not harmless, so its lease belongs to the delivery.
pub(super) fn lease_holder(session: &Session, context: &Context<'_>) -> String {
    let delivery = context.delivery;
    if session.sandbox.phase == Phase::Destroying {
        delivery.message.id.to_string()
    } else {
        delivery.id.clone()
    }
}

/// Takes the lease under which this message brings the sandbox up. Repeating any of those calls is harmless, so the
/// next delivery of the same message continues at once.
pub(super) fn lease_to_bring_up(session: &mut Session, context: &Context<'_>) {
    let limits = context.delivery.limits;
    let longest_ms = limits.sandbox.create_ms.max(limits.sandbox.start_ms)
        + limits.turn.clone_ms.max(limits.turn.carry_ms);
    session.sandbox.lease = Some(Lease {
        holder: context.delivery.message.id.to_string(),
        until_ms: context.now_ms + longest_ms + limits.turn.health_start_ms,
    });
    arm(session, context);
}

/// Milliseconds until another holder's lease ends.
pub(super) fn foreign_lease_ms(session: &Session, context: &Context<'_>) -> Option<u64> {
    let delivery = context.delivery;
    let ours = |lease: &&Lease| lease.holder == delivery.id || delivery.message.id == lease.holder;
    let lease = session.sandbox.lease.as_ref()?;
    (!ours(&lease) && lease.until_ms > context.now_ms).then(|| lease.until_ms - context.now_ms)
}

/// Whether another message took the lease, expired or not: if so, this one has waited for its end.
pub(super) fn is_anothers_lease(session: &Session, context: &Context<'_>) -> bool {
    let message = context.delivery.message.id.as_str();
    let is_ours = |holder: &str| match holder.strip_prefix(message) {
        Some(rest) => rest.is_empty() || rest.starts_with('#'),
        None => false,
    };
    let lease = session.sandbox.lease.as_ref();
    lease.is_some_and(|lease| !is_ours(&lease.holder))
}

/// Retries the message while another holder has the lease; soon, because most leases end long before their deadline.
pub(super) fn wait_for_lease(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    let left_ms = foreign_lease_ms(session, context)?;
    let limits = context.delivery.limits;
    if let Some(turn) = &mut session.turn {
        turn.waits = true;
    }
    let lasted_ms = context.now_ms.saturating_sub(session.sandbox.phase_since_ms);
    Some(Next::Hold {
        delay_ms: limits.retry.lease_delay(context.delivery.receive, lasted_ms).min(left_ms),
        why: "another worker is starting, stopping or deleting the sandbox".to_owned(),
    })
}

/// Gives the turn its workspace. `false` while another turn has it or is before it, or somebody wants the sandbox
/// deleted.
pub(super) fn claim(session: &mut Session, context: &Context<'_>) -> bool {
    let common = session.works_in_common();
    let Some(turn) = &session.turn else {
        return true;
    };
    let (thread, id) = (session.thread.clone(), turn.id.clone());
    let reserved = turn.reserved.as_ref().map(|reserved| reserved.amount);
    let sandbox = &mut session.sandbox;
    if sandbox.is_in_use_by(&thread, &id) {
        let has_common = |one: &InUse| one.common && one.thread == thread;
        if !common || sandbox.sharing.in_use.iter().any(has_common) {
            return true;
        }
        // A newer generation has begun and has no worktrees: the turn queues for the common checkout.
        sandbox.sharing.in_use.retain(|one| one.thread != thread);
    }
    forget_the_lost(sandbox, context);
    let before = sandbox
        .sharing
        .waiting
        .iter()
        .take_while(|one| one.turn != id || one.thread != thread)
        .any(|one| one.until_ms > context.now_ms);
    let is_free = !common || (sandbox.common_in_use_by(&thread).is_none() && !before);
    // A sandbox that was given up gets no next generation.
    let is_lost = session.place.link.is_some() && !sandbox.takes_threads();
    if sandbox.sharing.closing.is_some() || is_lost || !is_free {
        return false;
    }
    // It is being stopped or deleted, or a snapshot of it is being made.
    let is_on_its_way_up = matches!(sandbox.phase, Phase::Creating | Phase::Resuming);
    if !is_on_its_way_up && foreign_lease_ms(session, context).is_some() {
        return false;
    }
    let sandbox = &mut session.sandbox;
    sandbox.sharing.in_use.retain(|one| one.thread != thread);
    sandbox.sharing.waiting.retain(|one| one.thread != thread);
    let since_ms = context.now_ms;
    sandbox.sharing.in_use.push(InUse {
        thread,
        turn: id,
        common,
        since_ms,
        reserved,
        left: false,
    });
    sandbox.last_activity_ms = context.now_ms;
    arm(session, context);
    true
}

/// A turn that has had its workspace longer than any turn takes belongs to a record that was lost: the table may have
/// been restored to an earlier point.
fn forget_the_lost(sandbox: &mut crate::records::sandbox::SandboxRecord, context: &Context<'_>) {
    let longest_ms = longest_use_ms(context);
    sandbox.sharing.in_use.retain(|one| context.now_ms < one.since_ms + longest_ms);
}

/// Longer than any turn has its workspace.
pub(super) const fn longest_use_ms(context: &Context<'_>) -> u64 {
    let limits = context.delivery.limits;
    2 * (limits.turn.turn_ms + limits.retry.telling_ms)
}

/// Whether no turn works in the sandbox.
pub(super) fn is_idle(session: &mut Session, context: &Context<'_>) -> bool {
    forget_the_lost(&mut session.sandbox, context);
    !session.sandbox.is_in_use()
}

/// Queues the turn for the workspace that another turn has.
pub(super) fn line_up(session: &mut Session, for_ms: u64, context: &Context<'_>) {
    let Some(turn) = &session.turn else { return };
    let until_ms = context.now_ms + for_ms;
    let waiting = &mut session.sandbox.sharing.waiting;
    waiting.retain(|one| one.until_ms > context.now_ms || one.thread == session.thread);
    match waiting.iter_mut().find(|one| one.turn == turn.id) {
        // Half of the time is a margin, so that not every check is a write.
        Some(one) if one.until_ms >= context.now_ms + for_ms / 2 => {}
        Some(one) => one.until_ms = until_ms,
        None => waiting.push(Waiting {
            thread: session.thread.clone(),
            turn: turn.id.clone(),
            until_ms,
        }),
    }
}

/// The thread no longer uses the sandbox.
pub(super) fn leave_workspace(session: &mut Session) {
    let in_use = &mut session.sandbox.sharing.in_use;
    in_use.retain(|one| one.thread != session.thread);
}

/// The turn no longer uses the sandbox, and the lease under which it was brought up is over.
fn release(session: &mut Session, id: &TurnId) {
    if session.sandbox.is_shared() && session.stray.is_some() {
        let in_use = &mut session.sandbox.sharing.in_use;
        let own = in_use.iter_mut().filter(|one| one.turn == *id);
        own.for_each(|one| one.left = true);
    } else {
        leave_workspace(session);
    }
    let sandbox = &mut session.sandbox;
    sandbox.sharing.waiting.retain(|one| one.thread != session.thread);
    if sandbox.lease.as_ref().is_some_and(|lease| *id == lease.holder) {
        sandbox.lease = None;
    }
}

/// How long a paused sandbox is kept, in milliseconds.
pub(super) const fn paused_ttl_ms(session: &Session, limits: &SandboxLimits) -> u64 {
    if session.sandbox.is_shared() { limits.named_ttl_ms } else { limits.paused_ttl_ms }
}

/// Schedules the next sweeps: of the thread while it has a turn, a stray run or untold posts; of its sandbox while no
/// turn uses it.
pub(super) fn arm(session: &mut Session, context: &Context<'_>) {
    arm_thread(session, context);
    let limits = context.delivery.limits;
    let now = context.now_ms;
    let sandbox = &session.sandbox;
    session.sandbox.due_at_ms = match sandbox.phase {
        _ if sandbox.is_in_use() => None,
        Phase::Active => Some(sandbox.last_activity_ms + limits.sandbox.idle_pause_ms),
        Phase::Paused => Some(sandbox.phase_since_ms + paused_ttl_ms(session, &limits.sandbox)),
        Phase::Creating | Phase::Resuming => {
            Some(now + limits.sandbox.create_ms + limits.sandbox.stale_grace_ms)
        }
        Phase::Pausing | Phase::Destroying => {
            Some(sandbox.lease.as_ref().map_or(now, |lease| lease.until_ms))
        }
        // Nothing is left to request but the end of its tool sandbox, or of a prebuild.
        Phase::Destroyed | Phase::Error => sandbox
            .ends_tools()
            .then_some(now + limits.sandbox.stop_ms)
            .or_else(|| build::due_at_ms(session, context)),
    };
}

/// Schedules the next sweep of the thread alone.
pub(super) fn arm_thread(session: &mut Session, context: &Context<'_>) {
    let limits = context.delivery.limits;
    let now = context.now_ms;
    let sandbox = &session.sandbox;
    session.due_at_ms = if session.turn.is_some() {
        Some(now + limits.poll.out_of_sight_ms() + limits.sandbox.stale_grace_ms)
    } else {
        // A stray run is not left at work until the sandbox is paused.
        // Other threads may bring a shared sandbox up again, and the run with it.
        let is_up = match sandbox.phase {
            Phase::Active => true,
            Phase::Resuming => sandbox.is_shared(),
            _ => false,
        };
        let is_left = session.stray.is_some() && is_up;
        let left = is_left.then_some(now + limits.sandbox.stop_ms);
        left.into_iter().chain(untold_due(session, context)).chain(watch::due(session)).min()
    };
}

/// Copies a cancel flag for the present turn into the record.
pub(super) fn see_cancel(session: &mut Session, context: &Context<'_>) {
    if let Some(turn) = &mut session.turn
        && let Some(by) = context.flags.cancelled_by(&turn.id, turn.accepted_at_ms)
    {
        turn.cancelled_by.get_or_insert_with(|| by.clone());
    }
}

/// Records a new turn.
pub(super) fn begin(session: &mut Session, turn: Turn, context: &Context<'_>) {
    session.turn = Some(turn);
    claim(session, context);
    arm(session, context);
}

/// Records the outcome of the turn; telling it comes next. A recorded outcome stays, except an answer that cannot be
/// read again.
pub(super) fn end_with(session: &mut Session, outcome: Outcome) {
    let left = match session.observed.agent.answer {
        Some(_) => None,
        None => session.left_running(),
    };
    let answer = session.observed.agent.answer.as_ref();
    if let Some(turn) = &mut session.turn {
        match &turn.stage {
            Stage::Ending { outcome: Outcome::Answered, .. } if answer.is_none() => {}
            Stage::Ending { .. } => return,
            Stage::Received { .. } | Stage::Prompting(_) | Stage::Running(_) => {}
        }
        let usage = answer.map(|answer| answer.usage).unwrap_or_default();
        session.stray = session.stray.take().or(left);
        turn.stage.ended(outcome, usage);
        turn.tries.attempts = 0;
        // Posts that were not worth a wait during the run are tried again now that the end is told.
        session.observed.chat.asides_over.clear();
    }
}

/// Records a failure as the outcome.
pub(super) fn fail(session: &mut Session, reason: &str) {
    end_with(session, Outcome::Failed { reason: reason.to_owned() });
}

/// Delay before the next observation of something that began at `since_ms`: half of the time so far, so that a quick
/// provider is met quickly and a slow one is not asked too often.
pub(super) fn pause_ms(since_ms: Ms, context: &Context<'_>) -> u64 {
    let poll_ms = context.delivery.limits.poll.poll_ms;
    (context.now_ms.saturating_sub(since_ms) / 2).max(FIRST_LOOK_MS).min(poll_ms)
}

/// Moves the turn, whose outcome has been told, to the ended turns.
pub(super) fn close_turn(session: &mut Session, context: &Context<'_>) {
    if let Some(turn) = session.turn.take() {
        release(session, &turn.id);
        let (outcome, usage) = match &turn.stage {
            Stage::Ending { outcome, usage, .. } => (outcome.clone(), *usage),
            _ => (Outcome::Lost, Usage::default()),
        };
        budget::settle(session, &turn, usage, context);
        let ended =
            EndedTurn { id: turn.id.clone(), outcome: outcome.clone(), at_ms: context.now_ms };
        for steered in &turn.steered {
            close_steered(session, steered, of_steered(&outcome, &turn.id), context);
        }
        let patch_bytes = context.delivery.limits.record.patch_bytes;
        let changes = session.observed.agent.changes.as_ref();
        let patch = changes.and_then(|changes| changes.patch(patch_bytes));
        let entry =
            entry(turn, patch, (outcome, usage), session.observed.agent.answer.as_ref(), context);
        session.observed.writes.entries.push(entry);
        remember(session, ended, context);
    }
    session.sandbox.last_activity_ms = context.now_ms;
    session.observed = Observations {
        sandbox: SandboxObserved {
            state: session.observed.sandbox.state.take(),
            ..SandboxObserved::default()
        },
        chat: ChatObserved {
            untold: session.observed.chat.untold.take(),
            ..ChatObserved::default()
        },
        writes: std::mem::take(&mut session.observed.writes),
        in_ledger: session.observed.in_ledger,
        used: std::mem::take(&mut session.observed.used),
        ..Observations::default()
    };
    arm(session, context);
}

/// A prompt that was sent into the turn ends with it.
fn close_steered(
    session: &mut Session,
    steered: &Steered,
    outcome: Outcome,
    context: &Context<'_>,
) {
    let ended =
        EndedTurn { id: steered.turn.clone(), outcome: outcome.clone(), at_ms: context.now_ms };
    let again = outcome.again_label().is_some();
    session.observed.writes.entries.push(LedgerEntry {
        turn: steered.turn.clone(),
        by: steered.prompt.by.clone(),
        accepted_at_ms: steered.accepted_at_ms,
        ended_at_ms: context.now_ms,
        outcome,
        usage: Usage::default(),
        selection: steered.prompt.wants.clone(),
        asked: ledger::brief(steered.prompt.task()),
        answered: String::new(),
        card: steered.card.clone(),
        rolls: 0,
        posted: Vec::new(),
        again: Some(&steered.prompt).filter(|_| again).and_then(ledger::kept),
        patch: None,
    });
    remember(session, ended, context);
}

/// The turn's ledger entry. Its prompt is known only to the delivery of its own message.
fn entry(
    turn: Turn,
    patch: Option<String>,
    (outcome, usage): (Outcome, Usage),
    answer: Option<&RunAnswer>,
    context: &Context<'_>,
) -> LedgerEntry {
    let prompt = context.delivery.message.prompt_of(&turn.id);
    let posted = turn.stage.told().map(|told| told.posted.clone()).unwrap_or_default();
    let again = again(&turn, &outcome, prompt);
    LedgerEntry {
        turn: turn.id,
        by: turn.by,
        accepted_at_ms: turn.accepted_at_ms,
        ended_at_ms: context.now_ms,
        outcome,
        usage,
        selection: turn.selection,
        asked: prompt.map(|prompt| ledger::brief(prompt.task())).unwrap_or_default(),
        answered: answer.map(|answer| ledger::brief(&answer.text)).unwrap_or_default(),
        card: turn.card.at,
        rolls: turn.card.rolls,
        posted,
        again: again.as_ref().and_then(ledger::kept),
        patch,
    }
}

/// What a person may let run after the turn: its prompt again, or what was left of it.
fn again(turn: &Turn, outcome: &Outcome, prompt: Option<&Prompt>) -> Option<Prompt> {
    let prompt = prompt?.clone();
    match outcome {
        Outcome::Lost | Outcome::Failed { .. } | Outcome::OverBudget { by: None, .. } => {
            Some(Prompt { extends: None, ..prompt })
        }
        Outcome::OverBudget { more: 0, .. } => None,
        Outcome::OverBudget { by, .. } if turn.stage.prompted().is_some() => Some(Prompt {
            text: for_agent::GO_ON.to_owned(),
            quotes: Vec::new(),
            extends: *by,
            continues: Some(ledger::brief(prompt.task())),
            ..prompt
        }),
        Outcome::OverBudget { by, .. } => Some(Prompt { extends: *by, ..prompt }),
        Outcome::Answered | Outcome::Joined { .. } | Outcome::Cancelled { .. } => None,
    }
}

/// Sets the thread's wake-up when `next` says that nothing else is left to do.
pub(super) fn at_rest(session: &mut Session, next: Next, context: &Context<'_>) -> Next {
    match next {
        Next::Done => wake(session, context).unwrap_or(Next::Done),
        next => next,
    }
}

/// The missing wake-up, if any. Lazily: one that comes too early finds nothing due and sets the next.
fn wake(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    let idle = matches!(session.sandbox.phase, Phase::Active | Phase::Paused)
        && !session.sandbox.is_in_use();
    let at_ms = session.sandbox.due_at_ms.filter(|due| idle && *due > context.now_ms)?;
    if session.sandbox.wake_at_ms.is_some_and(|set| set > context.now_ms && set <= at_ms) {
        return None;
    }
    session.sandbox.wake_at_ms = Some(at_ms);
    Some(Next::Do(Effect::Wake { at_ms }))
}

/// Closes a turn whose end cannot be told in the thread: the record says so, whatever the outcome was.
pub(super) fn close_untold(session: &mut Session, reason: &str, context: &Context<'_>) {
    session.stray = session.stray.take().or_else(|| session.left_running());
    if let Some(turn) = &mut session.turn {
        let usage = match &turn.stage {
            Stage::Ending { usage, .. } => *usage,
            Stage::Received { .. } | Stage::Prompting(_) | Stage::Running(_) => Usage::default(),
        };
        turn.stage.ended(Outcome::Failed { reason: reason.to_owned() }, usage);
    }
    close_turn(session, context);
}

/// Remembers an ended turn for deduplication.
pub(super) fn remember(session: &mut Session, ended: EndedTurn, context: &Context<'_>) {
    session.ended.push(ended);
    let surplus = session.ended.len().saturating_sub(context.delivery.limits.record.ended_turns);
    session.ended.drain(..surplus);
}

/// Whether the turn of the message in hand has ended before.
pub(super) fn has_ended(session: &Session, id: &TurnId) -> bool {
    session.observed.in_ledger || session.ended.iter().any(|turn| turn.id == *id)
}

/// Forgets what the thread knew of the sandbox's present generation.
pub(super) fn leave(session: &mut Session) {
    session.conversation.session = None;
    session.conversation.generation = None;
    session.place.own = None;
    // Its runs are gone with it.
    session.stray = None;
    session.conversation.options = None;
}

/// Other threads may have moved the shared sandbox to its next generation, or deleted it, since the thread's record was
/// written.
pub(super) fn catch_up(session: &mut Session) {
    let present = session.sandbox.generation;
    let is_past = session.conversation.generation.is_some_and(|of| of != present);
    let is_down = !session.sandbox.is_alive() && session.sandbox.is_shared();
    if is_past || is_down {
        leave(session);
    }
}

/// The provider no longer knows the sandbox of this generation, and Bobbin did not delete it. One that was in use is
/// remembered, and taken back if it is seen again ([`super::orphan`]).
pub(super) fn vanished(session: &mut Session, context: &Context<'_>) {
    if session.sandbox.phase != Phase::Creating {
        session.sandbox.history.vanished =
            Some(Vanished { generation: session.sandbox.generation, at_ms: context.now_ms });
    }
    gone(session, "the sandbox vanished", context);
}

/// The sandbox of this generation no longer exists.
pub(super) fn gone(session: &mut Session, note: &str, context: &Context<'_>) {
    leave(session);
    session.observed.forget_sandbox();
    enter(session, Phase::Destroyed, note, context);
}

/// Outcome of a prompt that was sent into a turn, given the outcome of that turn.
pub(super) fn of_steered(outcome: &Outcome, turn: &TurnId) -> Outcome {
    match outcome {
        Outcome::Answered | Outcome::Joined { .. } => Outcome::Joined { turn: turn.to_owned() },
        other => other.clone(),
    }
}

/// When untold posts are tried again: the delay grows with the time for which they have been kept.
fn untold_due(session: &Session, context: &Context<'_>) -> Option<Ms> {
    let limits = context.delivery.limits;
    let kept_ms = context.now_ms.saturating_sub(session.untold.first()?.since_ms);
    Some(context.now_ms + limits.retry.outage_delay(kept_ms).max(limits.retry.backoff_ms_max))
}
