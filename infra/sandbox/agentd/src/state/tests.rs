#![allow(clippy::unwrap_used)]

use super::*;

fn prompt(text: &str) -> TurnPrompt {
    TurnPrompt { text: text.to_owned(), ..TurnPrompt::default() }
}

fn take(state: &mut SessionState, turn: &str, text: &str) -> Result<Acceptance, RequestRefusal> {
    let (acceptance, change) = state.accept(turn, &prompt(text))?;
    if let Some(change) = change {
        state.apply(change);
    }
    Ok(acceptance)
}

fn permission(id: &str) -> WaitingAsk {
    WaitingAsk::Permission(PermissionRequest {
        id: id.to_owned(),
        session_id: "s".to_owned(),
        permission: "bash".to_owned(),
        patterns: Vec::new(),
        metadata: serde_json::Map::new(),
        always: Vec::new(),
        tool: None,
    })
}

#[test]
fn turn_is_accepted_once() {
    let mut state = SessionState::default();
    assert_eq!(take(&mut state, "t1", "a"), Ok(Acceptance::Accepted));
    for phase in ["queued", "running", "ended"] {
        assert_eq!(take(&mut state, "t1", "a"), Ok(Acceptance::AlreadyKnown), "{phase}");
        assert_eq!(take(&mut state, "t1", "b"), Err(RequestRefusal::OtherPrompt), "{phase}");
        state.apply(match phase {
            "queued" => SessionChange::Submitted { turn: "t1".to_owned() },
            _ => SessionChange::Ended {
                turn: "t1".to_owned(),
                ended: TurnEnd::of(TurnOutcome::Done, "end_turn", None),
            },
        });
    }
}

#[test]
fn turns_run_in_order_accepted() {
    let mut state = SessionState::default();
    take(&mut state, "b", "1").unwrap();
    take(&mut state, "a", "2").unwrap();
    assert_eq!(state.next(), Some("b"));
    state.apply(SessionChange::Submitted { turn: "b".to_owned() });
    assert_eq!((state.running(), state.next()), (Some("b"), None));
    let ended = TurnEnd::of(TurnOutcome::Done, "end_turn", None);
    state.apply(SessionChange::Ended { turn: "b".to_owned(), ended });
    assert_eq!((state.running(), state.next()), (None, Some("a")));
}

#[test]
fn ask_is_answered_only_once() {
    let mut state = SessionState::default();
    take(&mut state, "t", "1").unwrap();
    state.apply(SessionChange::Submitted { turn: "t".to_owned() });
    state.apply(SessionChange::Asked(permission("p1")));
    state.apply(SessionChange::Asked(permission("p2")));
    assert_eq!(state.answer("p1", AskAnswer::Declined), Err(RequestRefusal::WrongAnswer));
    let answered = state.answer("p1", AskAnswer::Once).unwrap();
    state.apply(answered);
    assert_eq!(state.answer("p1", AskAnswer::Once), Err(RequestRefusal::AskGone));
    let ended = TurnEnd::of(TurnOutcome::Lost, "cut", None);
    state.apply(SessionChange::Ended { turn: "t".to_owned(), ended });
    assert_eq!(state.answer("p2", AskAnswer::Once), Err(RequestRefusal::AskGone));
    assert_eq!(state.asks().count(), 0);
}

#[test]
fn queued_turn_is_cancelled_without_running() {
    let mut state = SessionState::default();
    take(&mut state, "t1", "1").unwrap();
    take(&mut state, "t2", "2").unwrap();
    state.apply(SessionChange::Submitted { turn: "t1".to_owned() });
    let change = state.cancel("t2").unwrap().unwrap();
    assert!(matches!(change, SessionChange::Ended { .. }));
    state.apply(change);
    let change = state.cancel("t1").unwrap().unwrap();
    assert_eq!(change, SessionChange::CancelAsked { turn: "t1".to_owned() });
    state.apply(change);
    assert_eq!(state.cancel("t1"), Ok(None));
    assert_eq!(state.cancel("t3"), Err(RequestRefusal::UnknownTurn));
    assert_eq!(state.open_turns(), ["t1"]);
}

#[test]
fn queue_length_is_bounded() {
    let mut state = SessionState::default();
    for number in 0..QUEUED_MAX {
        take(&mut state, &format!("t{number}"), "x").unwrap();
    }
    assert_eq!(take(&mut state, "over", "x"), Err(RequestRefusal::QueueFull));
    assert_eq!(take(&mut state, "t0", "x"), Ok(Acceptance::AlreadyKnown));
}

#[test]
fn no_turn_runs_twice_after_replay() {
    let changes = [
        SessionChange::Accepted { turn: "t1".to_owned(), prompt: prompt("1") },
        SessionChange::Submitted { turn: "t1".to_owned() },
        SessionChange::Accepted { turn: "t2".to_owned(), prompt: prompt("2") },
        SessionChange::Asked(permission("p")),
        SessionChange::Answered { ask: "p".to_owned(), answer: AskAnswer::Once },
        SessionChange::Ended {
            turn: "t1".to_owned(),
            ended: TurnEnd::of(TurnOutcome::Done, "end_turn", None),
        },
        SessionChange::Submitted { turn: "t2".to_owned() },
        SessionChange::Ended {
            turn: "t2".to_owned(),
            ended: TurnEnd::of(TurnOutcome::Done, "end_turn", None),
        },
    ];
    for kept in 0..=changes.len() {
        let mut state = SessionState::default();
        for change in &changes[..kept] {
            state.apply(change.clone());
        }
        // As after a start: nothing goes on by itself.
        for turn in state.open_turns() {
            state.apply(SessionChange::Ended {
                turn,
                ended: TurnEnd::of(TurnOutcome::Lost, "cut", None),
            });
        }
        assert_eq!(state.next(), None, "after {kept} changes");
        let again = ["t1", "t2"].map(|turn| state.accept(turn, &prompt(&turn[1..])));
        let taken = again.map(|taken| matches!(taken, Ok((Acceptance::Accepted, _))));
        let is_new = |turn: &str| state.phase(turn).is_none();
        assert_eq!(taken, ["t1", "t2"].map(is_new), "after {kept} changes");
        assert!(state.open_turns().is_empty());
    }
}

#[test]
fn next_turn_ends_the_previous() {
    let mut state = SessionState::default();
    take(&mut state, "t1", "1").unwrap();
    take(&mut state, "t2", "2").unwrap();
    for turn in ["t1", "t2"] {
        state.apply(SessionChange::Submitted { turn: turn.to_owned() });
    }
    assert_eq!((state.is_open("t1"), state.running()), (false, Some("t2")));
    let ended = TurnEnd::of(TurnOutcome::Cancelled, "cancelled", None);
    let late = SessionChange::Ended { turn: "t1".to_owned(), ended: ended.clone() };
    state.apply(late);
    assert_eq!(state.phase("t1"), Some(&TurnPhase::Ended(ended)));
    assert_eq!(state.running(), Some("t2"));
}
