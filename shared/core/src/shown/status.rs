//! The answer to "what is it doing?", as text.

use std::collections::BTreeSet;

use crate::base::ids::{Ms, ThreadKey, TurnId};
use crate::records::flags::ControlFlags;
use crate::records::ledger::LedgerEntry;
use crate::records::outcome::Outcome;
use crate::records::sandbox::Phase;
use crate::records::session::Session;
use crate::records::stage::Stage;
use crate::tenant::selection::Selection;
use crate::text::{dollars, shorten, span};

/// Ended turns that the answer lists.
const ENDED_SHOWN: usize = 3;
/// People named among those whose tasks wait.
const NAMES_SHOWN: usize = 5;
/// Characters (UTF-16 units) of the prompt.
const ASKED_UNITS_MAX: usize = 80;

/// The state of a session, as Markdown that both platforms show. `None` if the thread has no record.
#[must_use]
pub fn words(
    session: Option<&Session>,
    flags: &ControlFlags,
    entries: &[LedgerEntry],
    now_ms: Ms,
) -> String {
    let Some(session) = session else {
        return "No sandbox yet. Send a task and this thread gets one.".to_owned();
    };
    let mut lines = vec![sandbox(session, now_ms)];
    lines.extend(session.sandbox.project.repo.as_ref().map(|repo| format!("It works on {repo}.")));
    lines.push(match &session.turn {
        None => "Nothing is running.".to_owned(),
        Some(turn) => {
            let doing = match (&turn.stage, turn.asks.iter().any(|ask| !ask.settled)) {
                (Stage::Received { .. }, _) => "waiting for the sandbox",
                (Stage::Prompting(_) | Stage::Running(_), true) => {
                    "waiting for a decision in this thread"
                }
                (Stage::Prompting(_) | Stage::Running(_), false) if turn.cancelled_by.is_some() => {
                    "stopping"
                }
                (Stage::Prompting(_) | Stage::Running(_), false) => "working",
                (Stage::Ending { .. }, _) => "writing its answer",
            };
            format!(
                "The task of {} is {doing}, for {} so far{}.",
                turn.by.name,
                span(now_ms.saturating_sub(turn.accepted_at_ms)),
                with(&turn.selection)
            )
        }
    });
    lines.extend(behind(flags));
    let mut last: Vec<&LedgerEntry> = entries.iter().collect();
    last.sort_by_key(|entry| std::cmp::Reverse(entry.ended_at_ms));
    lines.extend(last.into_iter().take(ENDED_SHOWN).map(|turn| {
        let how = match &turn.outcome {
            Outcome::Answered => "answered".to_owned(),
            Outcome::Joined { .. } => "sent into the task before it".to_owned(),
            Outcome::Failed { reason } => format!("failed: {reason}"),
            Outcome::OverBudget { reason, .. } => format!("stopped by a budget: {reason}"),
            Outcome::Cancelled { by } => format!("stopped by {by}"),
            Outcome::Lost => "lost with its sandbox".to_owned(),
        };
        let mut facts = vec![span(turn.took_ms())];
        if turn.usage.tokens > 0 {
            facts.push(format!("{} tokens", turn.usage.tokens));
        }
        if turn.usage.cost_micro_usd > 0 {
            facts.push(dollars(turn.usage.cost_micro_usd));
        }
        let asked = shorten(&turn.asked, ASKED_UNITS_MAX);
        format!(
            "- {} ago, {}: {how} ({}){}{asked}",
            span(now_ms.saturating_sub(turn.ended_at_ms)),
            turn.by.name,
            facts.join(", "),
            if asked.is_empty() { "" } else { ": " },
        )
    }));
    lines.join("\n")
}

/// The shared sandbox of the thread: its name, where the thread works in it, and which other threads do. `named`
/// formats a thread for display, or returns `None` if it cannot. `None` if the sandbox is not shared.
#[must_use]
pub fn shared(session: &Session, named: impl Fn(&ThreadKey) -> Option<String>) -> Option<String> {
    let sandbox = &session.sandbox;
    let name = sandbox.sharing.name.as_ref()?;
    let place =
        if session.works_in_common() { "in its common checkout" } else { "in its own worktree" };
    let mut words = format!("The sandbox is called {name}; this thread works {place}.");
    let others = |threads: &mut dyn Iterator<Item = &ThreadKey>| {
        let others: BTreeSet<ThreadKey> =
            threads.filter(|thread| **thread != session.thread).cloned().collect();
        let shown: Vec<String> = others.iter().filter_map(&named).take(NAMES_SHOWN).collect();
        (others.len(), shown)
    };
    let said = |(count, shown): (usize, Vec<String>)| {
        let many = match count {
            1 => "one other thread".to_owned(),
            n => format!("{n} other threads"),
        };
        if shown.is_empty() { many } else { format!("{many} ({})", shown.join(", ")) }
    };
    let threads = others(&mut sandbox.sharing.threads.iter());
    if threads.0 > 0 {
        words = format!("{words} Shared with {}.", said(threads));
    }
    let at_work = others(&mut sandbox.sharing.in_use.iter().map(|one| &one.thread));
    if at_work.0 > 0 {
        words = format!("{words} Working in it now: {}.", said(at_work));
    }
    let ahead = others(&mut sandbox.sharing.waiting.iter().map(|one| &one.thread));
    if ahead.0 > 0 {
        words = format!("{words} Waiting for the common checkout: {}.", said(ahead));
    }
    Some(words)
}

/// The turns that the answer needs from the ledger.
#[must_use]
pub fn wanted(session: &Session) -> Vec<TurnId> {
    let last = session.ended.iter().rev().take(ENDED_SHOWN);
    last.map(|turn| turn.id.clone()).collect()
}

/// The queue behind the present turn.
fn behind(flags: &ControlFlags) -> Option<String> {
    let waiting = flags.waiting();
    let names: Vec<&str> =
        waiting.iter().map(|(_, one)| one.by.name.as_str()).take(NAMES_SHOWN).collect();
    match waiting.len() {
        0 => None,
        1 => Some(format!("One task waits behind it, from {}.", names[0])),
        n if n > NAMES_SHOWN => {
            Some(format!("{n} tasks wait behind it: from {} and others.", names.join(", ")))
        }
        n => Some(format!("{n} tasks wait behind it: from {}.", names.join(", "))),
    }
}

/// Selection of a turn, as text.
fn with(selection: &Selection) -> String {
    let model = selection.model.as_deref();
    let agent = selection.agent.as_deref();
    match (model, agent) {
        (None, None) => String::new(),
        (Some(one), None) | (None, Some(one)) => format!(", with {one}"),
        (Some(model), Some(agent)) => format!(", with {model} as {agent}"),
    }
}

fn sandbox(session: &Session, now_ms: Ms) -> String {
    let since = span(now_ms.saturating_sub(session.sandbox.phase_since_ms));
    match session.sandbox.phase {
        Phase::Creating => {
            format!("Sandbox {} is being created, for {since} so far.", session.sandbox.generation)
        }
        Phase::Active => {
            format!("Sandbox {} has been running for {since}.", session.sandbox.generation)
        }
        Phase::Pausing => "The sandbox is being paused.".to_owned(),
        Phase::Paused => format!(
            "Sandbox {} has been paused for {since}. A message wakes it; its files are kept.",
            session.sandbox.generation
        ),
        Phase::Resuming => {
            format!("Sandbox {} is waking, for {since} so far.", session.sandbox.generation)
        }
        Phase::Destroying => "The sandbox is being deleted.".to_owned(),
        Phase::Destroyed => "No sandbox now. The next message starts a fresh one.".to_owned(),
        Phase::Error => {
            "The last sandbox could not be created. The next message tries again.".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::ThreadKey;
    use crate::records::sandbox::{SandboxProject, SandboxRecord, Sharing};

    #[test]
    fn status_without_record_invites_prompt() {
        assert_eq!(
            words(None, &ControlFlags::default(), &[], 0),
            "No sandbox yet. Send a task and this thread gets one."
        );
    }

    #[test]
    fn status_shows_queue_and_last_turns() {
        let person =
            |name: &str| crate::base::person::Person { id: "1".to_owned(), name: name.to_owned() };
        let thread = ThreadKey::discord("1", "2").expect("valid");
        let session = Session {
            sandbox: SandboxRecord { phase: Phase::Active, generation: 1, ..SandboxRecord::new(0) },
            ..Session::new(thread, 0)
        };
        let mut flags = ControlFlags::default();
        for (id, name, at) in [("b", "Bo", 2), ("a", "Al", 1)] {
            flags.queued.insert(
                id.into(),
                crate::records::flags::Queued {
                    by: person(name),
                    accepted_at_ms: at,
                    card: None,
                    refused: false,
                    prompt: None,
                },
            );
        }
        let entry = LedgerEntry {
            turn: "t".into(),
            by: person("Cy"),
            accepted_at_ms: 1_000,
            ended_at_ms: 31_000,
            outcome: Outcome::Answered,
            selection: crate::tenant::selection::Selection::default(),
            usage: crate::records::usage::Usage {
                tokens: 12,
                cost_micro_usd: 1_500,
                ..crate::records::usage::Usage::default()
            },
            asked: "fix the build".to_owned(),
            answered: String::new(),
            card: None,
            rolls: 0,
            posted: Vec::new(),
            again: None,
            patch: None,
        };
        assert_eq!(
            words(Some(&session), &flags, &[entry], 91_000),
            "Sandbox 1 has been running for 1 min 31 s.\nNothing is running.\n2 tasks wait behind it: from Al, Bo.\n- 1 min 0 s ago, Cy: answered (30 s, 12 tokens, $0.0015): fix the build"
        );
    }

    #[test]
    fn status_shows_repository_model_and_agent() {
        let thread = ThreadKey::discord("1", "2").expect("valid");
        let turn = serde_json::json!({"id": "t", "by": {"id": "1", "name": "Cy"}, "accepted_at_ms": 0,
            "stage": {"stage": "running", "ids": {"message": "msg_1", "part": "prt_1"}, "generation": 1, "at_ms": 1}, "selection": {"model": "anthropic/a", "agent": "plan"}});
        let session = Session {
            turn: serde_json::from_value(turn).expect("a turn"),
            sandbox: SandboxRecord {
                phase: Phase::Active,
                generation: 1,
                project: SandboxProject {
                    repo: Some("acme/api".to_owned()),
                    ..SandboxProject::default()
                },
                ..SandboxRecord::new(0)
            },
            ..Session::new(thread, 0)
        };
        assert_eq!(
            words(Some(&session), &ControlFlags::default(), &[], 5_000),
            "Sandbox 1 has been running for 5 s.\nIt works on acme/api.\nThe task of Cy is working, for 5 s so far, with anthropic/a as plan."
        );
    }

    #[test]
    fn status_shows_who_shares_sandbox() {
        let thread = |id: &str| ThreadKey::discord("1", id).expect("valid");
        let named = |thread: &ThreadKey| match thread {
            ThreadKey::Discord { thread, .. } => Some(format!("<#{thread}>")),
            _ => None,
        };
        let mut session = Session {
            sandbox: SandboxRecord {
                sharing: Sharing {
                    name: Some("frontend".parse().expect("a name")),
                    threads: [thread("2"), thread("3")].into(),
                    in_use: vec![crate::records::sandbox::InUse {
                        thread: thread("3"),
                        turn: "t".into(),
                        common: true,
                        since_ms: 1,
                        reserved: None,
                        left: false,
                    }],
                    ..Sharing::default()
                },
                ..SandboxRecord::new(0)
            },
            ..Session::new(thread("2"), 0)
        };
        assert_eq!(
            shared(&session, named).as_deref(),
            Some(
                "The sandbox is called frontend; this thread works in its common checkout. Shared with one other thread (<#3>). Working in it now: one other thread (<#3>)."
            )
        );
        session.sandbox.sharing.in_use.clear();
        assert_eq!(
            shared(&session, |_| None).as_deref(),
            Some(
                "The sandbox is called frontend; this thread works in its common checkout. \
                 Shared with one other thread."
            )
        );
        session.sandbox.sharing.name = None;
        assert_eq!(shared(&session, named), None);
    }

    #[test]
    fn paused_status_says_files_are_kept() {
        let thread = ThreadKey::discord("1", "2").expect("valid");
        let session = Session {
            sandbox: SandboxRecord {
                phase: Phase::Paused,
                generation: 2,
                phase_since_ms: 1_000,
                ..SandboxRecord::new(0)
            },
            ..Session::new(thread, 0)
        };
        assert_eq!(
            words(Some(&session), &ControlFlags::default(), &[], 62_000),
            "Sandbox 2 has been paused for 1 min 1 s. A message wakes it; its files are kept.\nNothing is running."
        );
    }
}
