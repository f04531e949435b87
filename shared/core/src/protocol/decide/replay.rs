//! Sending a dead letter again on request: whether that does anything, and whether it would do something twice.
//!
//! The message is sent with its original body and group, under a deduplication id made from this death ([`again_id`]):
//! the queue may still know the original id and would drop the message silently. The id in the body prevents doing it
//! twice: the record and the ledger know what has ended under it. So this verdict is only what a person is told
//! beforehand, not what makes sending safe.

use crate::base::ids::{Ms, digest};
use crate::records::message::{Body, Message, Work};
use crate::records::session::Session;

/// The deduplication id for sending a letter again: one for each death, however often somebody requests it.
#[must_use]
pub fn again_id(group: &str, id: &str, dead_since_ms: Ms) -> String {
    let named = digest(&["replay", group, id, &dead_since_ms.to_string()]);
    format!("replay-{}", &named[..32])
}

/// Verdict on a letter to be sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replay {
    /// It will be worked on.
    Send,
    /// Its turn has ended: nothing would be done.
    Ended,
    /// Its turn is under way: nothing more would be done.
    UnderWay,
    /// Its sender no longer waits for it, or it would act on something other than they meant.
    TooLate,
    /// The sweeper sends the same by itself.
    AsksItself,
    /// This version cannot read it.
    Unreadable,
}

/// Judges a letter by its thread's record. `in_ledger`: the ledger knows its turn as ended.
#[must_use]
pub fn replay(
    body: Option<&Body>,
    session: Option<&Session>,
    in_ledger: bool,
    now_ms: Ms,
) -> Replay {
    let Some(body) = body else {
        return Replay::Unreadable;
    };
    match body {
        Body::Message(Message { work: Work::Sweep | Work::Poll | Work::Reconcile, .. })
        | Body::Announce(_)
        | Body::DeadLetters(_)
        | Body::Forge(_) => return Replay::AsksItself,
        Body::Message(message) => {
            let id = message.about();
            let over = |session: &Session| {
                session.ended.iter().any(|turn| turn.id == *id)
                    || session.sandbox.history.operated.iter().any(|one| one.id == *id)
            };
            if in_ledger || session.is_some_and(over) {
                return Replay::Ended;
            }
            let turn = session.and_then(|session| session.turn.as_ref());
            if turn.is_some_and(|turn| turn.covers(id)) {
                return Replay::UnderWay;
            }
            // An operation requested then may not be wanted now.
            if matches!(message.work, Work::Operate { .. }) {
                return Replay::TooLate;
            }
        }
        // Messages about what ran then.
        Body::Control(_) | Body::Overview(_) => return Replay::TooLate,
        // The thread's first post may exist already: only the token of the request finds it for sure.
        Body::Open(open) => {
            if now_ms >= open.accepted_at_ms.saturating_add(crate::base::limits::REPLY_TOKEN_MS) {
                return Replay::TooLate;
            }
        }
    }
    Replay::Send
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::ThreadKey;
    use crate::base::person::{Membership, Person};
    use crate::records::control::{Control, ControlAction, Operation};
    use crate::records::message::{Open, Prompt, Reply};
    use crate::records::outcome::Outcome;
    use crate::records::turn::EndedTurn;

    const NOW_MS: Ms = 1_000_000_000;

    fn thread() -> ThreadKey {
        ThreadKey::discord("1", "2").expect("valid")
    }

    fn message(work: Work) -> Body {
        Body::Message(Message {
            id: "m1".into(),
            thread: thread(),
            accepted_at_ms: NOW_MS - 60_000,
            work,
        })
    }

    fn prompt() -> Body {
        message(Work::Prompt(Prompt::default()))
    }

    #[test]
    fn only_unended_prompt_is_replayed() {
        let judged = |session: Option<&Session>, in_ledger| {
            replay(Some(&prompt()), session, in_ledger, NOW_MS)
        };
        let mut session = Session::new(thread(), 0);
        assert_eq!(judged(None, false), Replay::Send);
        assert_eq!(judged(Some(&session), false), Replay::Send);
        assert_eq!(judged(Some(&session), true), Replay::Ended);
        session.turn = serde_json::from_value(serde_json::json!({
            "id": "m1", "by": Person::default(), "accepted_at_ms": 1, "stage": {"stage": "running", "ids": {"message": "msg_1", "part": "prt_1"}, "generation": 1, "at_ms": 1},
        }))
        .expect("a turn");
        assert_eq!(judged(Some(&session), false), Replay::UnderWay);
        session.turn = None;
        session.ended.push(EndedTurn { id: "m1".into(), outcome: Outcome::Lost, at_ms: 1 });
        assert_eq!(judged(Some(&session), false), Replay::Ended);
    }

    #[test]
    fn outdated_messages_are_not_replayed() {
        let judged = |body: &Body| replay(Some(body), None, false, NOW_MS);
        let stop = Body::Control(Control {
            id: "c1".to_owned(),
            thread: thread(),
            by: Person::default(),
            reply: Reply::Nobody,
            membership: Membership::default(),
            want: ControlAction::StopAll,
        });
        let operation = message(Work::Operate { want: Operation::Destroy, by: None });
        let open = |accepted_at_ms| {
            Body::Open(Open {
                id: "o1".into(),
                guild: "1".to_owned(),
                channel: "3".to_owned(),
                accepted_at_ms,
                prompt: Prompt::default(),
                reply: Reply::Nobody,
            })
        };
        for body in [stop, operation, open(NOW_MS - crate::base::limits::REPLY_TOKEN_MS)] {
            assert_eq!(judged(&body), Replay::TooLate, "{body:?}");
        }
        assert_eq!(judged(&open(NOW_MS - 1)), Replay::Send);
        assert_eq!(judged(&message(Work::Sweep)), Replay::AsksItself);
        assert_eq!(replay(None, None, false, NOW_MS), Replay::Unreadable);
    }

    #[test]
    fn dead_letter_replay_id_is_unique() {
        let id = again_id("slack:T1:C1:1.1", "T1:C1:2.2", 5);
        assert_eq!(id, again_id("slack:T1:C1:1.1", "T1:C1:2.2", 5));
        assert_ne!(id, again_id("slack:T1:C1:1.1", "T1:C1:2.2", 6));
        assert!(id.len() <= 128);
    }
}
