//! Signals for the operator: the events that a write of the record shows, by dotted names. Pure: computed only from the
//! record before and after the write, so no change to a session goes unreported, and none is reported twice.
//!
//! The names are those of log lines, which can be queried; a metric is written only for an alarm ([`Alarm`]).
//! Deliberately absent: the words of people, agents and providers.

use crate::base::ids::{Ms, TurnId};
use crate::records::outcome::Outcome;
use crate::records::sandbox::Phase;
use crate::records::session::Session;
use crate::records::stage::Prompted;
use crate::records::turn::{EndedTurn, Turn};
use crate::tenant::budgets::BudgetKind;

/// Kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SignalKind {
    /// A sandbox was requested.
    CreateBegan,
    /// It runs, and its server is healthy. Duration: since the request.
    CreateReady,
    /// It could not be created.
    CreateFailed,
    /// It was created, but its secrets are not put in.
    SecretsMissed,
    /// A stopped sandbox, or its server, was asked to start.
    ResumeBegan,
    /// It runs again. Duration: since the request.
    ResumeReady,
    /// It could not be started again.
    ResumeFailed,
    /// The sandbox was paused.
    PauseDone,
    /// Bobbin deleted it.
    DestroyDone,
    /// It is gone, and Bobbin did not delete it.
    SandboxLost,
    /// The agent session was gone; another one goes on in the same sandbox.
    SessionReplaced,
    /// The server in the sandbox was stopped and started again within a turn.
    ServerRestarted,
    /// A turn began. Duration: the time in the queue.
    TurnBegan,
    /// The prompt is on its way to the agent. Duration: since the turn was accepted.
    PromptSent,
    /// The same prompt was sent again.
    PromptResent,
    /// The agent is done, and the result is about to be posted. Duration: since the prompt was sent.
    RunEnded,
    /// A delivery returned its run to the queue, and another one continues it.
    TurnSliced,
    /// A delivery of the turn failed, and will be retried.
    TurnRetried,
    /// A turn found the sandbox provider unavailable.
    OutageBegan,
    /// The chat is unavailable for the posts of a turn, or rejects the key.
    ChatOutageBegan,
    /// The agent asks a person.
    AskOpened,
    /// An ask is settled: by a person, by time, or by the end of the run.
    AskSettled,
    /// A turn has ended with an answer. Duration: since it was accepted.
    TurnAnswered,
    /// A turn has failed. Duration: since it was accepted.
    TurnFailed,
    /// A turn was cancelled. Duration: since it was accepted.
    TurnCancelled,
    /// A budget ended the turn, or let none begin.
    TurnOverBudget,
    /// The operator's budget of the whole stack did that.
    StackBudgetSpent,
    /// A turn was lost with its sandbox. Duration: since it was accepted.
    TurnLost,
    /// A waiting prompt was sent into a running turn, and has ended with it.
    TurnJoined,
    /// A turn has ended, but the chat will never show it: people waiting in its thread do not know.
    TurnUntold,
}

impl SignalKind {
    /// Every kind of signal.
    pub const ALL: [Self; 30] = [
        Self::CreateBegan,
        Self::CreateReady,
        Self::CreateFailed,
        Self::SecretsMissed,
        Self::ResumeBegan,
        Self::ResumeReady,
        Self::ResumeFailed,
        Self::PauseDone,
        Self::DestroyDone,
        Self::SandboxLost,
        Self::SessionReplaced,
        Self::ServerRestarted,
        Self::TurnBegan,
        Self::PromptSent,
        Self::PromptResent,
        Self::RunEnded,
        Self::TurnSliced,
        Self::TurnRetried,
        Self::OutageBegan,
        Self::ChatOutageBegan,
        Self::AskOpened,
        Self::AskSettled,
        Self::TurnAnswered,
        Self::TurnFailed,
        Self::TurnCancelled,
        Self::TurnOverBudget,
        Self::StackBudgetSpent,
        Self::TurnLost,
        Self::TurnJoined,
        Self::TurnUntold,
    ];

    /// The name in logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CreateBegan => "sandbox.create.began",
            Self::CreateReady => "sandbox.create.ready",
            Self::CreateFailed => "sandbox.create.failed",
            Self::SecretsMissed => "sandbox.secrets.missed",
            Self::ResumeBegan => "sandbox.resume.began",
            Self::ResumeReady => "sandbox.resume.ready",
            Self::ResumeFailed => "sandbox.resume.failed",
            Self::PauseDone => "sandbox.pause.done",
            Self::DestroyDone => "sandbox.destroy.done",
            Self::SandboxLost => "sandbox.lost",
            Self::SessionReplaced => "session.replaced",
            Self::ServerRestarted => "server.restarted",
            Self::TurnBegan => "turn.began",
            Self::PromptSent => "prompt.sent",
            Self::PromptResent => "prompt.resent",
            Self::RunEnded => "run.ended",
            Self::TurnSliced => "turn.sliced",
            Self::TurnRetried => "turn.retried",
            Self::OutageBegan => "provider.outage.began",
            Self::ChatOutageBegan => "chat.outage.began",
            Self::AskOpened => "ask.opened",
            Self::AskSettled => "ask.settled",
            Self::TurnAnswered => "turn.answered",
            Self::TurnFailed => "turn.failed",
            Self::TurnCancelled => "turn.cancelled",
            Self::TurnOverBudget => "turn.over_budget",
            Self::StackBudgetSpent => "stack.budget_spent",
            Self::TurnLost => "turn.lost",
            Self::TurnJoined => "turn.joined",
            Self::TurnUntold => "turn.unposted",
        }
    }

    /// The alarm that counts it, if any.
    #[must_use]
    pub const fn alarm(self) -> Option<Alarm> {
        match self {
            Self::TurnLost | Self::TurnUntold | Self::StackBudgetSpent => Some(Alarm::WorkDropped),
            Self::ChatOutageBegan => Some(Alarm::ServiceAway),
            Self::TurnFailed => Some(Alarm::TurnFailed),
            _ => None,
        }
    }
}

/// Reasons to wake the operator. Each is one metric, because CloudWatch bills a metric for the hours in which it is
/// written: these are written only when something goes wrong. The log line beside it says which event it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Alarm {
    /// Requested work was given up, or refused because the operator's budget is spent, or its end could not be posted:
    /// [`INGRESS_FAILED`], [`CONTROL_DROPPED`], [`GIVEN_UP`], [`SignalKind::TurnLost`], [`SignalKind::TurnUntold`],
    /// [`SignalKind::StackBudgetSpent`].
    WorkDropped,
    /// The table, a chat, a sandbox provider or the forge is unavailable or unusable: [`TABLE_FAILED`],
    /// [`SignalKind::ChatOutageBegan`],
    /// [`BREAKER_OPENED`], [`ACCOUNT_OTHER`], [`FORGE_UNUSABLE`].
    ServiceAway,
    /// A turn has failed: [`SignalKind::TurnFailed`].
    TurnFailed,
}

impl Alarm {
    /// All alarms.
    pub const ALL: [Self; 3] = [Self::WorkDropped, Self::ServiceAway, Self::TurnFailed];

    /// The name of its metric.
    #[must_use]
    pub const fn metric(self) -> &'static str {
        match self {
            Self::WorkDropped => "work.dropped",
            Self::ServiceAway => "service.away",
            Self::TurnFailed => "turn.failed",
        }
    }
}

/// Namespace of the metrics.
pub const NAMESPACE: &str = "Bobbin";
/// Their only dimension: the stack.
pub const DIMENSION: &str = "Stack";
/// Event: a request signed by the platform could not be queued or checked. Its sender is asked to send it again.
pub const INGRESS_FAILED: &str = "ingress.failed";
/// Event: a control message (a Stop, a decision, a first prompt, a status request) was given up.
pub const CONTROL_DROPPED: &str = "control.dropped";
/// Event: a message became a dead letter, and its thread or requester is notified.
pub const GIVEN_UP: &str = "message.given_up";
/// Event: the table refused to read or write the record of a delivery, or did not answer at all.
pub const TABLE_FAILED: &str = "table.failed";
/// Event: the stack's key for a provider, or its settings, belong to another account than the sandboxes on record.
pub const ACCOUNT_OTHER: &str = "account.other";
/// Event: a provider's breaker has opened.
pub const BREAKER_OPENED: &str = "provider.breaker.opened";
/// Event: sandboxes that looked like orphans were kept, because they were most of a listing.
pub const ORPHANS_HELD: &str = "sandbox.orphan.held";
/// Event: records were not asked to look for their sandboxes, because most sandboxes were missing.
pub const VANISHED_HELD: &str = "sandbox.vanished.held";
/// Event: the forge refuses the app's key, or the key or an address of the forge cannot be used.
pub const FORGE_UNUSABLE: &str = "forge.unusable";
/// Event: an installation of the app has ended; its owner's repositories cannot be reached any more.
pub const INSTALLATION_ENDED: &str = "forge.installation_ended";
/// Event: the owner of an installation has suspended it.
pub const INSTALLATION_SUSPENDED: &str = "forge.installation_suspended";
/// Event: usage of a turn: time, tokens, money, and file changes.
pub const USED: &str = "turn.used";

/// An event of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    /// Kind of event.
    pub kind: SignalKind,
    /// The turn, if the event belongs to one.
    pub turn: Option<TurnId>,
    /// Duration in milliseconds, if known.
    pub took_ms: Option<u64>,
}

/// The events between two states of a record, in the order in which they happen. `before` is `None` for a thread's
/// first record.
#[must_use]
pub fn signals(before: Option<&Session>, after: &Session, now_ms: Ms) -> Vec<Signal> {
    let mut emitted = Vec::new();
    sandbox(before, after, now_ms, &mut emitted);
    let turn_before = before.and_then(|session| session.turn.as_ref());
    if let Some(turn) = &after.turn {
        let same = turn_before.filter(|before| before.id == turn.id);
        under_way(same, turn, now_ms, &mut emitted);
    }
    let known = |ended: &EndedTurn| {
        before.is_some_and(|session| session.ended.iter().any(|one| one.id == ended.id))
    };
    for ended in after.ended.iter().filter(|ended| !known(ended)) {
        let accepted = turn_before.filter(|turn| turn.id == ended.id);
        emitted.push(Signal {
            kind: match ended.outcome {
                Outcome::Answered => SignalKind::TurnAnswered,
                Outcome::Failed { .. } => SignalKind::TurnFailed,
                Outcome::OverBudget { by: Some(BudgetKind::Stack), .. } => {
                    SignalKind::StackBudgetSpent
                }
                Outcome::OverBudget { .. } => SignalKind::TurnOverBudget,
                Outcome::Cancelled { .. } => SignalKind::TurnCancelled,
                Outcome::Lost => SignalKind::TurnLost,
                Outcome::Joined { .. } => SignalKind::TurnJoined,
            },
            turn: Some(ended.id.clone()),
            took_ms: accepted.map(|turn| now_ms.saturating_sub(turn.accepted_at_ms)),
        });
    }
    let is_new = |id: &TurnId| {
        let is_kept = |session: &Session| session.untold.iter().any(|one| one.turn == *id);
        let has_ended = after.ended.iter().any(|ended| ended.id == *id && !known(ended));
        has_ended || before.is_some_and(is_kept)
    };
    if let Some(turn) = after.observed.chat.untold.as_ref().filter(|id| is_new(id)) {
        emitted.push(Signal {
            kind: SignalKind::TurnUntold,
            turn: Some(turn.clone()),
            took_ms: None,
        });
    }
    emitted
}

fn sandbox(before: Option<&Session>, after: &Session, now_ms: Ms, emitted: &mut Vec<Signal>) {
    let turn = after.turn.as_ref().map(|turn| turn.id.clone());
    let mut emit = |kind, took_ms| {
        emitted.push(Signal { kind, turn: turn.clone(), took_ms });
    };
    let was = before.map_or(Phase::Destroyed, |session| session.sandbox.phase);
    let since_ms = before.map_or(now_ms, |session| session.sandbox.phase_since_ms);
    let took_ms = Some(now_ms.saturating_sub(since_ms));
    let anew = before.is_none_or(|session| session.sandbox.generation != after.sandbox.generation);
    let missed = |session: &Session| session.sandbox.history.without_secrets;
    if missed(after) > before.map_or(0, missed) {
        emit(SignalKind::SecretsMissed, took_ms);
    }
    match (was, after.sandbox.phase) {
        (was, Phase::Creating) if was != Phase::Creating || anew => {
            emit(SignalKind::CreateBegan, None)
        }
        (Phase::Creating, Phase::Active) => emit(SignalKind::CreateReady, took_ms),
        (Phase::Creating, Phase::Error) => emit(SignalKind::CreateFailed, None),
        (was, Phase::Resuming) if was != Phase::Resuming => emit(SignalKind::ResumeBegan, None),
        (Phase::Resuming, Phase::Active) => emit(SignalKind::ResumeReady, took_ms),
        (Phase::Resuming, Phase::Error) => emit(SignalKind::ResumeFailed, None),
        (was, Phase::Paused) if was != Phase::Paused => emit(SignalKind::PauseDone, None),
        (Phase::Destroying, Phase::Destroyed) => emit(SignalKind::DestroyDone, None),
        (was, Phase::Destroyed) if !matches!(was, Phase::Destroyed | Phase::Error) => {
            emit(SignalKind::SandboxLost, None);
        }
        _ => {}
    }
    let replaced = before.is_some_and(|session| {
        !anew
            && session.conversation.session.is_some()
            && session.conversation.session != after.conversation.session
    });
    if replaced && after.conversation.session.is_some() {
        emit(SignalKind::SessionReplaced, None);
    }
}

fn under_way(before: Option<&Turn>, after: &Turn, now_ms: Ms, emitted: &mut Vec<Signal>) {
    let since_ms = Some(now_ms.saturating_sub(after.accepted_at_ms));
    let mut emit = |kind, took_ms| {
        emitted.push(Signal { kind, turn: Some(after.id.clone()), took_ms });
    };
    if before.is_none() {
        emit(SignalKind::TurnBegan, since_ms);
    }
    let received = before.is_none_or(|turn| turn.stage.is_received());
    if received && after.stage.is_with_agent() {
        emit(SignalKind::PromptSent, since_ms);
    }
    let over = |turn: &Turn| turn.stage.is_ending();
    if let (Some(before), Some(prompted)) = (before, after.stage.prompted())
        && over(after)
        && !over(before)
    {
        emit(SignalKind::RunEnded, Some(now_ms.saturating_sub(prompted.at_ms)));
    }
    let more = |of: fn(&Turn) -> u32| of(after) > before.map_or(0, of);
    let prompted = |turn: &Turn, of: fn(&Prompted) -> u32| turn.stage.prompted().map_or(0, of);
    let more_sent = |of: fn(&Prompted) -> u32| {
        prompted(after, of) > before.map_or(0, |before| prompted(before, of))
    };
    for (kind, happened) in [
        (SignalKind::PromptResent, more_sent(|prompted| prompted.resends)),
        (SignalKind::ServerRestarted, more(|turn| turn.tries.server_restarts)),
        (SignalKind::TurnSliced, more_sent(|prompted| prompted.windows)),
        (SignalKind::TurnRetried, more(|turn| turn.tries.attempts)),
        (
            SignalKind::OutageBegan,
            after.outages.provider_since_ms.is_some()
                && before.is_none_or(|turn| turn.outages.provider_since_ms.is_none()),
        ),
        (
            SignalKind::ChatOutageBegan,
            after.outages.chat_since_ms.is_some()
                && before.is_none_or(|turn| turn.outages.chat_since_ms.is_none()),
        ),
    ] {
        if happened {
            emit(kind, None);
        }
    }
    for ask in &after.asks {
        let known = before.and_then(|turn| turn.asks.iter().find(|one| one.id == ask.id));
        if known.is_none() {
            emit(SignalKind::AskOpened, None);
        }
        if ask.settled && known.is_none_or(|one| !one.settled) {
            emit(SignalKind::AskSettled, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::records::session::Conversation;

    fn conversation(session: Option<&str>) -> Conversation {
        Conversation { session: session.map(Into::into), ..Conversation::default() }
    }
    use crate::base::ids::ThreadKey;
    use crate::records::sandbox::SandboxRecord;

    fn session() -> Session {
        Session::new(ThreadKey::discord("1", "2").expect("valid"), 1_000)
    }

    fn names(before: Option<&Session>, after: &Session) -> Vec<(&'static str, Option<u64>)> {
        let emitted = signals(before, after, 5_000);
        emitted.iter().map(|one| (one.kind.name(), one.took_ms)).collect()
    }

    #[test]
    fn sandbox_lifecycle_emits_signals() {
        let absent = session();
        let creating = Session {
            sandbox: SandboxRecord {
                phase: Phase::Creating,
                generation: 1,
                phase_since_ms: 2_000,
                ..session().sandbox
            },
            ..session()
        };
        let active = Session {
            conversation: conversation(Some("a")),
            sandbox: SandboxRecord { phase: Phase::Active, ..creating.sandbox.clone() },
            ..creating.clone()
        };
        let paused = Session {
            sandbox: SandboxRecord { phase: Phase::Paused, ..active.sandbox.clone() },
            ..active.clone()
        };
        assert_eq!(names(None, &creating), [("sandbox.create.began", None)]);
        assert_eq!(names(Some(&absent), &creating), [("sandbox.create.began", None)]);
        assert_eq!(names(Some(&creating), &active), [("sandbox.create.ready", Some(3_000))]);
        assert_eq!(names(Some(&active), &paused), [("sandbox.pause.done", None)]);
        let gone = Session {
            conversation: conversation(None),
            sandbox: SandboxRecord { phase: Phase::Destroyed, ..active.sandbox.clone() },
            ..active.clone()
        };
        assert_eq!(names(Some(&active), &gone), [("sandbox.lost", None)]);
        let destroying = Session {
            sandbox: SandboxRecord { phase: Phase::Destroying, ..active.sandbox.clone() },
            ..active.clone()
        };
        assert_eq!(names(Some(&destroying), &gone), [("sandbox.destroy.done", None)]);
        let other = Session { conversation: conversation(Some("b")), ..active.clone() };
        assert_eq!(names(Some(&active), &other), [("session.replaced", None)]);
    }

    #[test]
    fn irrelevant_write_emits_no_signal() {
        let active = Session {
            sandbox: SandboxRecord { phase: Phase::Active, generation: 1, ..session().sandbox },
            ..session()
        };
        let later = Session { version: 9, due_at_ms: Some(7), ..active.clone() };
        assert_eq!(names(Some(&active), &later), []);
    }

    #[test]
    fn ended_turn_is_signalled_once() {
        let before = session();
        let ended = Session {
            ended: vec![EndedTurn { id: "t".into(), outcome: Outcome::Lost, at_ms: 5_000 }],
            ..session()
        };
        assert_eq!(names(Some(&before), &ended), [("turn.lost", None)]);
        assert_eq!(names(Some(&ended), &ended), []);
    }

    #[test]
    fn only_the_stacks_exhausted_budget_wakes_the_operator() {
        let ended = |by| {
            let outcome = Outcome::OverBudget { reason: String::new(), more: 0, by };
            let ended = vec![EndedTurn { id: "t".into(), outcome, at_ms: 5_000 }];
            let emitted = signals(Some(&session()), &Session { ended, ..session() }, 5_000);
            emitted.iter().map(|one| (one.kind.name(), one.kind.alarm())).collect::<Vec<_>>()
        };
        assert_eq!(
            ended(Some(BudgetKind::Stack)),
            [("stack.budget_spent", Some(Alarm::WorkDropped))]
        );
        assert_eq!(ended(Some(BudgetKind::Month)), [("turn.over_budget", None)]);
        assert_eq!(ended(None), [("turn.over_budget", None)]);
    }

    #[test]
    fn signal_kind_names_are_unique() {
        let names: BTreeSet<&str> = SignalKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), SignalKind::ALL.len());
    }
}
