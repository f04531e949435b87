//! Overview of one person's turns in the threads of a workspace: only their own requests, not those of others.
//!
//! Pure: it turns records into values, and the wire modules draw them. Absent: requests of others, in any channel,
//! because a record does not say who may see that channel.

use crate::base::ids::{Ms, ThreadKey, TurnId};
use crate::records::ask::About;
use crate::records::flags::ControlFlags;
use crate::records::ledger::LedgerEntry;
use crate::records::outcome::Outcome;
use crate::records::session::Session;
use crate::records::stage::Stage;
use crate::tenant::selection::Selection;
use crate::text::{one_line, shorten, span};

/// Runs that are shown.
pub const RUNS_MAX: usize = 10;
/// Ended turns that are shown.
pub const ENDED_MAX: usize = 5;
/// Threads whose records are read for one overview.
pub const THREADS_MAX: usize = 50;
/// Characters (UTF-16 units) of an ask or of a prompt.
const LINE_UNITS_MAX: usize = 160;

/// A turn that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenRun {
    /// The thread that it belongs to.
    pub thread: ThreadKey,
    /// The turn that has not ended.
    pub turn: TurnId,
    /// Its state, in a word or two: `Working`.
    pub state: &'static str,
    /// When it was accepted.
    pub since_ms: Ms,
    /// Its asks without a decision, one line each.
    pub asks: Vec<String>,
}

/// The overview of one person.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Picture {
    /// Running and waiting turns, oldest first.
    pub runs: Vec<OpenRun>,
    /// Recently ended turns, newest first.
    pub ended: Vec<(ThreadKey, LedgerEntry)>,
    /// What was spent beside its budgets, in the words of the usage command.
    pub spending: Vec<String>,
    /// The tenant's defaults for a turn.
    pub defaults: Selection,
    /// The person may change the defaults.
    pub manages: bool,
    /// Result of the person's last action.
    pub notice: Option<String>,
    /// When this state was taken.
    pub now_ms: Ms,
}

/// The parts of a thread's record that belong to `user`.
#[must_use]
pub fn runs(session: &Session, flags: &ControlFlags, user: &str) -> Vec<OpenRun> {
    let mut runs = Vec::new();
    if let Some(turn) = session.turn.as_ref().filter(|turn| turn.by.id == user) {
        let asks: Vec<String> =
            turn.asks.iter().filter(|ask| !ask.settled).map(|ask| about(&ask.about)).collect();
        let state = match &turn.stage {
            _ if turn.cancelled_by.is_some() => "Stopping",
            Stage::Received { .. } => "Getting ready",
            Stage::Ending { .. } => "Answering",
            Stage::Prompting(_) | Stage::Running(_) if asks.is_empty() => "Working",
            Stage::Prompting(_) | Stage::Running(_) => "Waiting for a decision",
        };
        runs.push(OpenRun {
            thread: session.thread.clone(),
            turn: turn.id.clone(),
            state,
            since_ms: turn.accepted_at_ms,
            asks,
        });
    }
    let waiting = flags.queued.iter().filter(|(_, one)| !one.refused && one.by.id == user);
    runs.extend(waiting.map(|(turn, one)| OpenRun {
        thread: session.thread.clone(),
        turn: turn.clone(),
        state: "Queued",
        since_ms: one.accepted_at_ms,
        asks: Vec::new(),
    }));
    runs
}

fn about(about: &About) -> String {
    let words = match about {
        About::Permission { action, subject, .. } => format!("Allow {action}: {subject}?"),
        About::Question { questions } => {
            questions.first().map(|question| question.text.clone()).unwrap_or_default()
        }
    };
    shorten(&one_line(&words), LINE_UNITS_MAX)
}

/// Outcome of a turn, on one line: `answered 3 min 0 s ago, took 30 s: fix the build`.
#[must_use]
pub fn ended(entry: &LedgerEntry, now_ms: Ms) -> String {
    let how = match &entry.outcome {
        Outcome::Answered => "answered",
        Outcome::Failed { .. } => "failed",
        Outcome::OverBudget { .. } => "stopped by a budget",
        Outcome::Cancelled { .. } => "stopped",
        Outcome::Lost => "lost with its sandbox",
        Outcome::Joined { .. } => "sent into another task",
    };
    let asked = shorten(&one_line(&entry.asked), LINE_UNITS_MAX);
    let ago = span(now_ms.saturating_sub(entry.ended_at_ms));
    let took = span(entry.took_ms());
    if asked.is_empty() {
        format!("{how} {ago} ago, took {took}")
    } else {
        format!("{how} {ago} ago, took {took}: {asked}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::person::Person;
    use crate::records::ask::Ask;
    use crate::records::flags::Queued;
    use crate::records::turn::Turn;

    fn person(id: &str) -> Person {
        Person { id: id.to_owned(), name: id.to_lowercase() }
    }

    fn session(by: &str) -> Session {
        let thread = ThreadKey::slack("T1", "C1", "1.1").expect("valid");
        let turn: Turn = serde_json::from_value(serde_json::json!({
            "id": "one", "by": person(by), "accepted_at_ms": 5, "stage": {"stage": "running", "ids": {"message": "msg_1", "part": "prt_1"}, "generation": 1, "at_ms": 1},
        }))
        .expect("a turn");
        Session { turn: Some(turn), ..Session::new(thread, 0) }
    }

    #[test]
    fn overview_shows_only_own_prompts() {
        let queued = |by: &str| -> Queued {
            let queued = serde_json::json!({ "by": person(by), "accepted_at_ms": 7 });
            serde_json::from_value(queued).expect("a waiting prompt")
        };
        let mut flags = ControlFlags::default();
        flags.queued.insert("two".into(), queued("U2"));
        flags.queued.insert("three".into(), queued("U1"));
        let of = |user: &str| -> Vec<(String, &str)> {
            let runs = runs(&session("U1"), &flags, user);
            runs.into_iter().map(|run| (run.turn.to_string(), run.state)).collect()
        };
        assert_eq!(of("U1"), [("one".to_owned(), "Working"), ("three".to_owned(), "Queued")]);
        assert_eq!(of("U2"), [("two".to_owned(), "Queued")]);
        assert_eq!(of("U3"), []);
    }

    #[test]
    fn overview_lists_only_open_asks() {
        let mut session = session("U1");
        let ask = |subject: &str, settled| Ask {
            id: "per_1".into(),
            about: About::Permission {
                action: "bash".to_owned(),
                subject: subject.to_owned(),
                left_out: 0,
                places: [].into(),
                always: [].into(),
            },
            expires_at_ms: 9,
            post: None,
            settled,
        };
        let turn = session.turn.as_mut().expect("a turn");
        turn.asks = vec![ask("rm -rf\n/tmp/x", false), ask("ls", true)];
        let run = runs(&session, &ControlFlags::default(), "U1").remove(0);
        assert_eq!(run.state, "Waiting for a decision");
        assert_eq!(run.asks, ["Allow bash: rm -rf /tmp/x?"]);
    }
}
