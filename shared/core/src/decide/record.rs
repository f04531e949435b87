//! Small changes of the record that several rules share.

use super::{Context, Next, aside};
use crate::effect::Effect;
use crate::ids::{Ms, TurnId};
use crate::ledger::{self, Entry};
use crate::outcome::Outcome;
use crate::run::Answer;
use crate::sandbox::{Lease, Phase, TimelineEntry};
use crate::session::{EndedTurn, Observations, Session, Steered, Turn};
use crate::stage::Stage;
use crate::usage::Usage;

/// The first look at something that has just begun comes after this.
const FIRST_LOOK_MS: u64 = 250;

/// Enters a phase: stamps it, notes it in the timeline, and arms the next look.
pub(super) fn enter(session: &mut Session, phase: Phase, note: &str, context: &Context<'_>) {
    let limits = context.delivery.limits;
    session.sandbox.phase = phase;
    session.sandbox.phase_since_ms = context.now_ms;
    session.sandbox.timeline.push(TimelineEntry {
        at_ms: context.now_ms,
        phase,
        note: note.to_owned(),
    });
    let surplus = session
        .sandbox
        .timeline
        .len()
        .saturating_sub(limits.timeline);
    session.sandbox.timeline.drain(..surplus);
    if !matches!(phase, Phase::Pausing | Phase::Destroying) {
        session.sandbox.lease = None;
    }
    // Nothing runs in what is stopped, or has just been asked for.
    if matches!(phase, Phase::Paused | Phase::Creating) {
        session.stray = None;
    }
    arm(session, context);
}

/// Takes the lease under which this delivery may stop or delete: nobody else acts until it is over.
pub(super) fn lease(session: &mut Session, context: &Context<'_>) {
    let limits = context.delivery.limits;
    let until_ms = context.now_ms + limits.visibility_ms + limits.lifecycle_call_ms;
    session.sandbox.lease = Some(Lease {
        holder: context.delivery.id.clone(),
        until_ms,
    });
    arm(session, context);
}

/// Milliseconds for which another delivery's lease still holds.
pub(super) fn foreign_lease_ms(session: &Session, context: &Context<'_>) -> Option<u64> {
    session
        .sandbox
        .lease
        .as_ref()
        .filter(|lease| lease.holder != context.delivery.id && lease.until_ms > context.now_ms)
        .map(|lease| lease.until_ms - context.now_ms)
}

/// Sets when the sweeper should look next: at the thread while a turn is under way, else at its sandbox.
pub(super) fn arm(session: &mut Session, context: &Context<'_>) {
    let limits = context.delivery.limits;
    let now = context.now_ms;
    if session.turn.is_some() {
        let sign_of_life_ms = limits.follow_window_ms + limits.visibility_ms;
        session.due_at_ms = Some(now + sign_of_life_ms + limits.stale_grace_ms);
        session.sandbox.due_at_ms = None;
        return;
    }
    session.due_at_ms = None;
    let sandbox = &session.sandbox;
    session.sandbox.due_at_ms = match sandbox.phase {
        // What nobody answers for is not left at work until the sandbox is paused.
        Phase::Active if session.stray.is_some() => Some(now + limits.stop_ms),
        Phase::Active => Some(sandbox.last_activity_ms + limits.idle_pause_ms),
        Phase::Paused => Some(sandbox.phase_since_ms + limits.paused_ttl_ms),
        Phase::Creating | Phase::Resuming => Some(now + limits.create_ms + limits.stale_grace_ms),
        Phase::Pausing | Phase::Destroying => {
            Some(sandbox.lease.as_ref().map_or(now, |lease| lease.until_ms))
        }
        Phase::Destroyed | Phase::Error => None,
    };
}

/// Takes a cancel flag for the present turn over into the record.
pub(super) fn see_cancel(session: &mut Session, context: &Context<'_>) {
    if let Some(turn) = &mut session.turn
        && let Some(by) = context.flags.cancelled.get(&turn.id)
    {
        turn.cancelled_by.get_or_insert_with(|| by.clone());
    }
}

/// Puts a new turn on record.
pub(super) fn begin(session: &mut Session, turn: Turn, context: &Context<'_>) {
    session.turn = Some(turn);
    session.sandbox.last_activity_ms = context.now_ms;
    arm(session, context);
}

/// Puts the outcome of the turn on record; telling it comes next. What is on record stands, except an answer that
/// cannot be read again.
pub(super) fn end_with(session: &mut Session, outcome: Outcome) {
    let left = match session.observed.answer {
        Some(_) => None,
        None => session.left_running(),
    };
    let answer = session.observed.answer.as_ref();
    if let Some(turn) = &mut session.turn {
        match &turn.stage {
            Stage::Ending {
                outcome: Outcome::Answered,
                ..
            } if answer.is_none() => {}
            Stage::Ending { .. } => return,
            Stage::Received { .. } | Stage::Prompting(_) | Stage::Running(_) => {}
        }
        let usage = answer.map(|answer| answer.usage).unwrap_or_default();
        session.stray = session.stray.take().or(left);
        let prompted = turn.stage.prompted().cloned();
        turn.stage = Stage::Ending {
            outcome,
            usage,
            prompted,
        };
        turn.attempts = 0;
        // What was not worth a wait while the run went on is, now that its end is told.
        session.observed.asides_over.clear();
    }
}

/// The same for a failure.
pub(super) fn fail(session: &mut Session, reason: &str) {
    end_with(
        session,
        Outcome::Failed {
            reason: reason.to_owned(),
        },
    );
}

/// How long to wait before the next look at something that began then: half of what it took so far, so that a quick
/// provider is met quickly and a slow one is not asked too often.
pub(super) fn pause_ms(since_ms: Ms, context: &Context<'_>) -> u64 {
    let poll_ms = context.delivery.limits.poll_ms;
    (context.now_ms.saturating_sub(since_ms) / 2)
        .max(FIRST_LOOK_MS)
        .min(poll_ms)
}

/// Moves the turn, whose outcome has been told, to the ended ones.
pub(super) fn close_turn(session: &mut Session, context: &Context<'_>) {
    if let Some(turn) = session.turn.take() {
        let (outcome, usage) = match &turn.stage {
            Stage::Ending { outcome, usage, .. } => (outcome.clone(), *usage),
            _ => (Outcome::Lost, Usage::default()),
        };
        let ended = EndedTurn {
            id: turn.id.clone(),
            outcome: outcome.clone(),
            at_ms: context.now_ms,
        };
        for steered in &turn.steered {
            close_steered(
                session,
                steered,
                aside::of_steered(&outcome, &turn.id),
                context,
            );
        }
        let patch_bytes = context.delivery.limits.patch_bytes;
        let changes = session.observed.changes.as_ref();
        let patch = changes.and_then(|changes| changes.patch(patch_bytes));
        let entry = entry(
            turn,
            patch,
            (outcome, usage),
            session.observed.answer.as_ref(),
            context,
        );
        session.observed.entries.push(entry);
        remember(session, ended, context);
    }
    session.sandbox.last_activity_ms = context.now_ms;
    session.observed = Observations {
        sandbox: session.observed.sandbox.take(),
        entries: std::mem::take(&mut session.observed.entries),
        in_ledger: session.observed.in_ledger,
        untold: session.observed.untold.take(),
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
    let ended = EndedTurn {
        id: steered.turn.clone(),
        outcome: outcome.clone(),
        at_ms: context.now_ms,
    };
    let again = matches!(outcome, Outcome::Lost | Outcome::Failed { .. });
    session.observed.entries.push(Entry {
        turn: steered.turn.clone(),
        by: steered.prompt.by.clone(),
        accepted_at_ms: steered.accepted_at_ms,
        ended_at_ms: context.now_ms,
        outcome,
        usage: Usage::default(),
        selection: steered.prompt.wants.clone(),
        asked: ledger::brief(&steered.prompt.text),
        answered: String::new(),
        card: steered.card.clone(),
        rolls: 0,
        posted: Vec::new(),
        again: Some(&steered.prompt)
            .filter(|_| again)
            .and_then(ledger::kept),
        patch: None,
    });
    remember(session, ended, context);
}

/// The turn as the ledger keeps it. Its prompt is known only to the delivery of its own message.
fn entry(
    turn: Turn,
    patch: Option<String>,
    (outcome, usage): (Outcome, Usage),
    answer: Option<&Answer>,
    context: &Context<'_>,
) -> Entry {
    let prompt = context.delivery.message.prompt_of(&turn.id);
    let again = matches!(outcome, Outcome::Lost | Outcome::Failed { .. });
    Entry {
        turn: turn.id,
        by: turn.by,
        accepted_at_ms: turn.accepted_at_ms,
        ended_at_ms: context.now_ms,
        outcome,
        usage,
        selection: turn.selection,
        asked: prompt
            .map(|prompt| ledger::brief(&prompt.text))
            .unwrap_or_default(),
        answered: answer
            .map(|answer| ledger::brief(&answer.text))
            .unwrap_or_default(),
        card: turn.card,
        rolls: turn.rolls,
        posted: turn.posted,
        again: prompt.filter(|_| again).and_then(ledger::kept),
        patch,
    }
}

/// What is left to do where `next` says that nothing is: to see to the thread's wake-up.
pub(super) fn at_rest(session: &mut Session, next: Next, context: &Context<'_>) -> Next {
    match next {
        Next::Done => wake(session, context).unwrap_or(Next::Done),
        next => next,
    }
}

/// The wake-up that is missing, if one is. Lazily: one that comes too early finds nothing due and asks for the next.
fn wake(session: &mut Session, context: &Context<'_>) -> Option<Next> {
    let idle =
        matches!(session.sandbox.phase, Phase::Active | Phase::Paused) && session.turn.is_none();
    let at_ms = session
        .sandbox
        .due_at_ms
        .filter(|due| idle && *due > context.now_ms)?;
    if session
        .sandbox
        .wake_at_ms
        .is_some_and(|set| set > context.now_ms && set <= at_ms)
    {
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
        turn.stage = Stage::Ending {
            outcome: Outcome::Failed {
                reason: reason.to_owned(),
            },
            usage,
            prompted: turn.stage.prompted().cloned(),
        };
    }
    close_turn(session, context);
}

/// Remembers an ended turn for deduplication.
pub(super) fn remember(session: &mut Session, ended: EndedTurn, context: &Context<'_>) {
    session.ended.push(ended);
    let surplus = session
        .ended
        .len()
        .saturating_sub(context.delivery.limits.ended_turns);
    session.ended.drain(..surplus);
}

/// Whether the turn that the message in hand is about has ended before.
pub(super) fn has_ended(session: &Session, id: &TurnId) -> bool {
    session.observed.in_ledger || session.ended.iter().any(|turn| turn.id == *id)
}

/// Forgets the sandbox of this generation: it does not exist any more.
pub(super) fn gone(session: &mut Session, note: &str, context: &Context<'_>) {
    session.agent_session = None;
    // Its runs went with it.
    session.stray = None;
    session.observed.agent_session = false;
    session.observed.healthy = false;
    session.observed.sandbox = None;
    session.observed.start_asked = false;
    session.observed.cloned = false;
    session.observed.tenant_sandboxes = None;
    session.checked_options = None;
    enter(session, Phase::Destroyed, note, context);
}
