//! A dead letter that somebody wants sent again: whether that does anything, and whether it would do something twice.
//!
//! It goes out with the body and into the group that it had, under a deduplication id made of what this death of it was
//! ([`again_id`]): its own may still be known to the queue, which would drop it without a word. The body's id is what
//! keeps it from being done twice: the record and the ledger know what has ended under it. So the judgement here is what a
//! person is told before, not what makes it safe.

use crate::base::ids::{Ms, digest};
use crate::records::message::{Body, Message, Work};
use crate::records::session::Session;

/// The deduplication id under which a letter is sent again: one for each time that it died, however often somebody asks.
#[must_use]
pub fn again_id(group: &str, id: &str, dead_since_ms: Ms) -> String {
    let named = digest(&["replay", group, id, &dead_since_ms.to_string()]);
    format!("replay-{}", &named[..32])
}

/// What becomes of a letter that is sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replay {
    /// It is worked on.
    Send,
    /// Its turn has ended: nothing would be done.
    Ended,
    /// Its turn is under way: nothing more would be done.
    UnderWay,
    /// Who said it does not wait for it any more, or it would act on something else than they meant.
    TooLate,
    /// The sweeper asks for the same by itself.
    AsksItself,
    /// No part of this version can read it.
    Unreadable,
}

/// Judges a letter by what is on record of its thread. `in_ledger`: the ledger knows its turn as ended.
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
    let body = match body {
        Body::Candidate(candidate) => &candidate.said,
        body => body,
    };
    match body {
        Body::Message(Message { work: Work::Sweep | Work::Reconcile, .. })
        | Body::Announce(_)
        | Body::DeadLetters(_) => return Replay::AsksItself,
        Body::Message(message) => {
            let id = message.about();
            let over = |session: &Session| {
                session.ended.iter().any(|turn| turn.id == *id)
                    || session.sandbox.operated.iter().any(|one| one.id == *id)
            };
            if in_ledger || session.is_some_and(over) {
                return Replay::Ended;
            }
            let turn = session.and_then(|session| session.turn.as_ref());
            if turn.is_some_and(|turn| turn.covers(id)) {
                return Replay::UnderWay;
            }
            // What was wanted of a sandbox then is not what is wanted of it now.
            if matches!(message.work, Work::Operate { .. }) {
                return Replay::TooLate;
            }
        }
        // Words about what ran then.
        Body::Control(_) | Body::Overview(_) | Body::Candidate(_) => return Replay::TooLate,
        // The thread's first post may stand already: only the token of the request finds it for sure.
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
    use crate::records::message::Reply;
    use crate::records::message::{Control, Open, Operation, Prompt, Want};
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
            want: Want::StopAll,
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
