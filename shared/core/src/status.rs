//! The answer to "what is it doing?", in words.

use crate::ids::Ms;
use crate::session::{Outcome, Phase, Session, Stage};

/// Ended turns that the answer lists.
const ENDED_SHOWN: usize = 3;

/// What a session is doing, as Markdown that both platforms show. `None`: the thread has no record.
#[must_use]
pub fn words(session: Option<&Session>, now_ms: Ms) -> String {
    let Some(session) = session else {
        return "No sandbox yet. Send a task and this thread gets one.".to_owned();
    };
    let mut lines = vec![sandbox(session, now_ms)];
    lines.push(match &session.turn {
        None => "Nothing is running.".to_owned(),
        Some(turn) => {
            let doing = match (&turn.stage, turn.asks.iter().any(|ask| !ask.settled)) {
                (Stage::Received, _) => "waiting for the sandbox",
                (Stage::Prompting | Stage::Running, true) => {
                    "waiting for a decision in this thread"
                }
                (Stage::Prompting | Stage::Running, false) if turn.cancelled_by.is_some() => {
                    "stopping"
                }
                (Stage::Prompting | Stage::Running, false) => "working",
                (Stage::Ending { .. }, _) => "writing its answer",
            };
            format!(
                "The task of {} is {doing}, for {} so far.",
                turn.by.name,
                span(now_ms.saturating_sub(turn.accepted_at_ms))
            )
        }
    });
    let last = session.ended.iter().rev().take(ENDED_SHOWN);
    lines.extend(last.map(|turn| {
        let how = match &turn.outcome {
            Outcome::Answered => "answered".to_owned(),
            Outcome::Failed { reason } => format!("failed: {reason}"),
            Outcome::Cancelled { by } => format!("stopped by {by}"),
            Outcome::Lost => "lost with its sandbox".to_owned(),
        };
        format!(
            "- {} ago, after {}: {how}",
            span(now_ms.saturating_sub(turn.at_ms)),
            span(turn.took_ms)
        )
    }));
    lines.join("\n")
}

fn sandbox(session: &Session, now_ms: Ms) -> String {
    let since = span(now_ms.saturating_sub(session.phase_since_ms));
    match session.phase {
        Phase::Creating => format!("Sandbox {} is being made, for {since}.", session.generation),
        Phase::Active => format!("Sandbox {} is running, for {since}.", session.generation),
        Phase::Pausing => "The sandbox is being paused.".to_owned(),
        Phase::Paused => format!(
            "Sandbox {} is paused, for {since}. A message wakes it; its files are kept.",
            session.generation
        ),
        Phase::Resuming => format!(
            "Sandbox {} is being woken, for {since}.",
            session.generation
        ),
        Phase::Destroying => "The sandbox is being deleted.".to_owned(),
        Phase::Destroyed => {
            "No sandbox at present. The next message starts a fresh one.".to_owned()
        }
        Phase::Error => {
            "The last sandbox could not be made. The next message tries again.".to_owned()
        }
    }
}

/// A span of time as a person says it.
#[must_use]
pub fn span(ms: u64) -> String {
    let s = ms / 1000;
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{} min {} s", s / 60, s % 60),
        _ => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ThreadKey;

    #[test]
    fn a_thread_without_a_record_is_told_how_to_begin() {
        assert_eq!(
            words(None, 0),
            "No sandbox yet. Send a task and this thread gets one."
        );
    }

    #[test]
    fn a_paused_session_says_that_its_files_are_kept() {
        let thread = ThreadKey::discord("1", "2").expect("valid");
        let session = Session {
            phase: Phase::Paused,
            generation: 2,
            phase_since_ms: 1_000,
            ..Session::new(thread, 0)
        };
        assert_eq!(
            words(Some(&session), 62_000),
            "Sandbox 2 is paused, for 1 min 1 s. A message wakes it; its files are kept.\nNothing is running."
        );
    }
}
