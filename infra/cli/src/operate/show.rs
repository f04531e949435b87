//! `show`: one thread and its timeline.

use std::collections::BTreeSet;

use bobbin_cloud::clock::now_ms;
use bobbin_core::base::ids::{AgentSessionId, Ms, ThreadKey, TurnId};
use bobbin_core::base::names::sandbox_name;
use bobbin_core::records::ask::About;
use bobbin_core::records::changes;
use bobbin_core::records::flags::ControlFlags;
use bobbin_core::records::ledger::LedgerEntry;
use bobbin_core::records::outcome::Outcome;
use bobbin_core::records::session::Session;
use bobbin_core::records::turn::Turn;
use bobbin_core::text::{and_more, one_line, shorten, thousands};
use serde::Serialize;

use super::arguments::Show;
use super::line::{ThreadLine, line, stage};
use super::stack::Stack;
use crate::columns::cut;
use crate::output::{CommandError, ExitStatus, Output};
use crate::terminal::width;
use crate::time::{span, when};

/// Ended turns whose ledger entries are read.
const TURNS_MAX: usize = 40;
/// Longest reason or prompt on a line.
const LINE_CHARS_MAX: usize = 160;

#[derive(Serialize)]
struct ShowAnswer {
    #[serde(flatten)]
    of_list: ThreadLine,
    /// Name of this generation's sandbox, while the record has one.
    sandbox: Option<String>,
    /// Its provider; `None` means the stack's first.
    provider: Option<String>,
    /// Its runtime mode; `None` means one of the two OpenCode server modes, by the stack's setting.
    runtime: Option<String>,
    /// Threads that share it.
    threads: Vec<ThreadKey>,
    /// Turns at work in it.
    in_use: Vec<WorkingTurn>,
    /// Turns waiting for the common checkout, in order.
    in_line: Vec<InLine>,
    agent_session: Option<AgentSessionId>,
    wake_at_ms: Option<Ms>,
    /// Expiry of the lease on the sandbox, while one is held.
    lease_until_ms: Option<Ms>,
    asks: Vec<AskLine>,
    queue: Vec<WaitingMessage>,
    timeline: Vec<TimelineEvent>,
}

/// A turn at work in the sandbox.
#[derive(Serialize)]
struct WorkingTurn {
    thread: ThreadKey,
    turn: TurnId,
    /// In the common checkout rather than the thread's own workspace.
    common: bool,
    since_ms: Ms,
}

/// A turn waiting for the common checkout.
#[derive(Serialize)]
struct InLine {
    thread: ThreadKey,
    turn: TurnId,
}

#[derive(Serialize)]
struct AskLine {
    id: String,
    /// Kind of ask: `permission` or `question`.
    about: &'static str,
    expires_at_ms: Ms,
}

#[derive(Serialize)]
struct WaitingMessage {
    id: String,
    by: String,
    accepted_at_ms: Ms,
    /// It will not run: the queue was full, or it was stopped.
    refused: bool,
}

/// An event of the timeline.
#[derive(Serialize)]
struct TimelineEvent {
    at_ms: Ms,
    /// `phase`, `turn` or `operation`.
    kind: &'static str,
    /// The phase, the outcome, or the operation.
    what: String,
    /// Reason and usage.
    note: String,
    /// Id of its turn; `None` for an event of the sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<String>,
    /// Prompt and answer, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answered: Option<String>,
}

/// A thread's record.
pub async fn record(
    stack: &Stack,
    thread: &ThreadKey,
) -> Result<(Session, ControlFlags), CommandError> {
    if !thread.is_conversation() {
        return Err(CommandError::not_found(format!(
            "{thread} is the group of a sandbox, not a thread. List the sandboxes with: bobbin {} sandbox list",
            stack.said
        )));
    }
    let (session, flags) = stack.store.record(thread).await.map_err(|e| {
        format!("{e}. If a newer version wrote it, use the bobbin of the deployed commit.")
    })?;
    let session = session.ok_or_else(|| {
        CommandError::not_found(format!(
            "There is no record of {thread}. List the threads with: bobbin {} thread list --gone",
            stack.said
        ))
    })?;
    Ok((session, flags))
}

pub async fn run(stack: &Stack, what: &Show) -> Result<Output, CommandError> {
    let thread = what.thread.key(stack).await?;
    let (session, flags) = record(stack, &thread).await?;
    let newest = session.ended.iter().rev().take(TURNS_MAX);
    let turns: Vec<TurnId> = newest.map(|ended| ended.id.clone()).collect();
    let entries = stack.store.entries(&thread, &turns).await.map_err(|e| e.to_string())?;
    let now_ms = now_ms();
    let alive = session.sandbox.is_alive();
    let answer = ShowAnswer {
        of_list: line(&session, &flags),
        sandbox: alive
            .then(|| sandbox_name(&stack.name, &session.sandbox_key(), session.sandbox.generation)),
        provider: session.sandbox.spec.provider.clone(),
        runtime: session.sandbox.spec.runtime.clone(),
        threads: session.sandbox.sharing.threads.iter().cloned().collect(),
        in_use: in_use(&session),
        in_line: in_line(&session),
        agent_session: session.conversation.session.clone(),
        wake_at_ms: session.sandbox.wake_at_ms.filter(|at| *at > now_ms),
        lease_until_ms: session.sandbox.lease.as_ref().map(|lease| lease.until_ms),
        asks: session.turn.as_ref().map(asks).unwrap_or_default(),
        queue: queue(&flags),
        timeline: timeline(&session, &entries, what.content),
    };
    let words = words(&answer, &session, now_ms);
    Output::new(words, &answer, ExitStatus::Done)
}

fn in_use(session: &Session) -> Vec<WorkingTurn> {
    let in_use = session.sandbox.sharing.in_use.iter();
    in_use
        .map(|one| WorkingTurn {
            thread: one.thread.clone(),
            turn: one.turn.clone(),
            common: one.common,
            since_ms: one.since_ms,
        })
        .collect()
}

fn in_line(session: &Session) -> Vec<InLine> {
    let waiting = session.sandbox.sharing.waiting.iter();
    waiting.map(|one| InLine { thread: one.thread.clone(), turn: one.turn.clone() }).collect()
}

fn asks(turn: &Turn) -> Vec<AskLine> {
    let open = turn.asks.iter().filter(|ask| !ask.settled);
    open.map(|ask| AskLine {
        id: ask.id.to_string(),
        about: match ask.about {
            About::Permission { .. } => "permission",
            About::Question { .. } => "question",
        },
        expires_at_ms: ask.expires_at_ms,
    })
    .collect()
}

fn queue(flags: &ControlFlags) -> Vec<WaitingMessage> {
    let mut queue: Vec<WaitingMessage> = flags
        .queued
        .iter()
        .map(|(id, queued)| WaitingMessage {
            id: id.to_string(),
            by: queued.by.name.clone(),
            accepted_at_ms: queued.accepted_at_ms,
            refused: queued.refused || flags.cancelled.contains_key(id),
        })
        .collect();
    queue.sort_by_key(|one| one.accepted_at_ms);
    queue
}

/// Phases, ended turns and operations, oldest first.
fn timeline(session: &Session, entries: &[LedgerEntry], content: bool) -> Vec<TimelineEvent> {
    let plain = |at_ms, kind, what: &str, note: String| TimelineEvent {
        at_ms,
        kind,
        what: what.to_owned(),
        note,
        turn: None,
        asked: None,
        answered: None,
    };
    let phases = session
        .sandbox
        .history
        .timeline
        .iter()
        .map(|entry| plain(entry.at_ms, "phase", entry.phase.word(), short(&entry.note)));
    let newest = session.ended.iter().rev().take(TURNS_MAX);
    let newest: BTreeSet<&TurnId> = newest.map(|ended| &ended.id).collect();
    let looked_up = |id: &TurnId| newest.contains(id);
    let turns = session.ended.iter().map(|ended| {
        let entry = entries.iter().find(|entry| entry.turn == ended.id);
        let words = |of: fn(&LedgerEntry) -> &String| {
            let text = entry.map(of).filter(|_| content)?;
            (!text.is_empty()).then(|| short(text))
        };
        // Naming, connecting and resetting are remembered like turns, to detect repeats, but have no ledger entry.
        let (kind, what) = match (entry, &ended.outcome) {
            (None, Outcome::Answered) if looked_up(&ended.id) => ("operation", "done"),
            (_, ended) => ("turn", outcome(ended)),
        };
        TimelineEvent {
            turn: Some(ended.id.to_string()),
            asked: words(|entry| &entry.asked),
            answered: words(|entry| &entry.answered),
            ..plain(ended.at_ms, kind, what, note(&ended.outcome, entry))
        }
    });
    let operations = session.sandbox.history.operated.iter().map(|one| {
        let note = match &one.trouble {
            None => "done".to_owned(),
            Some(why) => format!("not done: {}", short(why)),
        };
        plain(one.at_ms, "operation", one.want.word(), note)
    });
    let mut all: Vec<TimelineEvent> = phases.chain(turns).chain(operations).collect();
    all.sort_by_key(|event| event.at_ms);
    all
}

const fn outcome(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Answered => "answered",
        Outcome::Joined { .. } => "joined",
        Outcome::Failed { .. } => "failed",
        Outcome::OverBudget { .. } => "over_budget",
        Outcome::Cancelled { .. } => "cancelled",
        Outcome::Lost => "lost",
    }
}

/// Requester, reason and usage.
fn note(outcome: &Outcome, entry: Option<&LedgerEntry>) -> String {
    let mut facts = Vec::new();
    match outcome {
        Outcome::Failed { reason } | Outcome::OverBudget { reason, .. } if !reason.is_empty() => {
            facts.push(short(reason))
        }
        Outcome::Cancelled { by } if !by.is_empty() => facts.push(format!("by {by}")),
        Outcome::Joined { turn } => facts.push(format!("sent into {turn}")),
        _ => {}
    }
    if let Some(entry) = entry {
        facts.push(format!("of {}", entry.by.name));
        facts.push(format!("took {}", bobbin_core::text::span(entry.took_ms())));
        if entry.usage.tokens > 0 {
            facts.push(format!("{} tokens", thousands(entry.usage.tokens)));
        }
        facts.extend(changes::in_short(&entry.usage));
    }
    facts.join(", ")
}

fn short(text: &str) -> String {
    shorten(&one_line(text), LINE_CHARS_MAX)
}

/// The text output: facts from the record, then what runs, what waits and the timeline.
fn words(answer: &ShowAnswer, session: &Session, now_ms: Ms) -> String {
    let mut lines = facts(answer, now_ms);
    if let Some(turn) = &session.turn {
        lines.push("Turn".to_owned());
        lines.extend(turn_lines(turn, &answer.asks, now_ms));
    }
    if !answer.queue.is_empty() {
        lines.push("Waiting".to_owned());
        lines.extend(answer.queue.iter().map(|one| waiting_line(one, now_ms)));
    }
    if !answer.timeline.is_empty() {
        lines.push("Timeline".to_owned());
        let timeline = answer.timeline.iter();
        lines.extend(timeline.flat_map(|event| event_lines(event, now_ms)));
    }
    let width = width();
    let lines: Vec<String> = lines.iter().map(|line| cut(line, width)).collect();
    lines.join("\n")
}

/// The thread's key and the sandbox's facts, one per line.
fn facts(answer: &ShowAnswer, now_ms: Ms) -> Vec<String> {
    let line = &answer.of_list;
    let phase = format!(
        "{} for {}, generation {}",
        line.phase,
        span(now_ms.saturating_sub(line.phase_since_ms)),
        line.generation
    );
    let at = |at_ms: Option<Ms>| at_ms.map(|at_ms| when(at_ms, now_ms));
    let lease = at(answer.lease_until_ms).map(|ends| format!("ends {ends}"));
    let facts = [
        ("tenant", Some(line.tenant.clone())),
        ("phase", Some(phase)),
        ("named", line.sandbox_name.clone()),
        ("sandbox", answer.sandbox.clone()),
        ("provider", answer.provider.clone()),
        ("runtime", answer.runtime.clone()),
        ("threads", listed(&answer.threads)),
        ("in use", in_use_words(answer, now_ms)),
        ("waiting", waiting_words(answer)),
        ("agent", answer.agent_session.as_ref().map(ToString::to_string)),
        ("repository", line.repo.clone()),
        ("active", at(Some(line.last_activity_ms))),
        ("due", at(line.due_at_ms)),
        ("wake-up", at(answer.wake_at_ms)),
        ("lease", lease),
    ];
    let known = facts
        .into_iter()
        .filter_map(|(name, value)| value.map(|value| format!("  {name:<10} {value}")));
    std::iter::once(line.thread.clone()).chain(known).collect()
}

/// Threads named on a line.
const NAMED_MAX: usize = 5;

fn listed(threads: &[ThreadKey]) -> Option<String> {
    if threads.is_empty() {
        return None;
    }
    let named: Vec<String> = threads.iter().take(NAMED_MAX).map(ToString::to_string).collect();
    Some(and_more(&named, threads.len().saturating_sub(NAMED_MAX)))
}

/// The turns in a shared sandbox and their start; the thread's own turn is shown elsewhere.
fn in_use_words(answer: &ShowAnswer, now_ms: Ms) -> Option<String> {
    let others = answer.in_use.iter();
    let others = others.filter(|one| one.thread.to_string() != answer.of_list.thread);
    let words = others.map(|one| {
        let place = if one.common { "common checkout" } else { "worktree" };
        let since = span(now_ms.saturating_sub(one.since_ms));
        format!("{} ({place}, for {since})", one.thread)
    });
    let words = words.collect::<Vec<_>>().join(", ");
    (!words.is_empty()).then_some(words)
}

fn waiting_words(answer: &ShowAnswer) -> Option<String> {
    let threads: Vec<ThreadKey> = answer.in_line.iter().map(|one| one.thread.clone()).collect();
    listed(&threads)
}

/// The running turn: its state, errors so far, and its asks.
fn turn_lines(turn: &Turn, asks: &[AskLine], now_ms: Ms) -> Vec<String> {
    let mut lines = vec![format!(
        "  {}  {} for {}, of {}, with {}",
        turn.id,
        stage(&turn.stage),
        span(now_ms.saturating_sub(turn.accepted_at_ms)),
        turn.by.name,
        turn.model("the configured model"),
    )];
    let prompted = turn.stage.prompted();
    let counts = [
        (turn.tries.attempts, "failed deliveries"),
        (prompted.map_or(0, |prompted| prompted.resends), "resends"),
        (turn.tries.server_restarts, "server restarts"),
        (prompted.map_or(0, |prompted| prompted.windows), "follow windows"),
    ];
    let counted: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if !counted.is_empty() {
        lines.push(format!("  {}", counted.join(", ")));
    }
    let trouble = turn.trouble.iter();
    lines.extend(trouble.map(|why| format!("  trouble: {}", short(why))));
    lines.extend(asks.iter().map(|ask| {
        format!(
            "  waits for a {}: {}, which counts as no {}",
            match ask.about {
                "permission" => "permission",
                _ => "answer",
            },
            ask.id,
            when(ask.expires_at_ms, now_ms)
        )
    }));
    lines
}

/// A prompt queued behind the turn.
fn waiting_line(one: &WaitingMessage, now_ms: Ms) -> String {
    format!(
        "  {}  of {}, {}{}",
        one.id,
        one.by,
        when(one.accepted_at_ms, now_ms),
        if one.refused { ", will not run" } else { "" }
    )
}

/// An event's time and text; below it prompt and answer, if requested.
fn event_lines(event: &TimelineEvent, now_ms: Ms) -> Vec<String> {
    let turn = event.turn.as_deref().unwrap_or_default();
    let note = [turn, event.note.as_str()]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("  ");
    let at = when(event.at_ms, now_ms);
    let shown = format!("  {at:<12} {:<10} {note}", event.what);
    let mut lines = vec![shown.trim_end().to_owned()];
    for (word, text) in [("asked", &event.asked), ("answered", &event.answered)] {
        let text = text.iter();
        lines.extend(text.map(|text| format!("  {:<12} {word}: {text}", "")));
    }
    lines
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use bobbin_core::records::turn::EndedTurn;

    use super::*;

    #[test]
    fn ends_without_turn_are_operations() {
        let thread = ThreadKey::discord("1", "2").unwrap();
        let mut session = Session::new(thread, 0);
        session.ended = ["asked", "named"]
            .map(|id| EndedTurn { id: id.into(), outcome: Outcome::Answered, at_ms: 1 })
            .to_vec();
        let entry = serde_json::from_value(serde_json::json!({
            "turn": "asked", "by": {"id": "4", "name": "ada"}, "accepted_at_ms": 0, "ended_at_ms": 1,
            "outcome": {"outcome": "answered"}, "asked": "",
        }));
        let entry: LedgerEntry = entry.unwrap();
        let listed: Vec<_> = timeline(&session, &[entry], false)
            .into_iter()
            .map(|one| (one.kind, one.what, one.turn.unwrap()))
            .collect();
        let line = |kind, what: &str, id: &str| (kind, what.to_owned(), id.to_owned());
        assert_eq!(listed, [line("turn", "answered", "asked"), line("operation", "done", "named")]);
    }
}
