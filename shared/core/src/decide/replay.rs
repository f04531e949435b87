//! A dead letter that somebody wants sent again: whether that does anything, and whether it would do something twice.
//!
//! It goes out under the id and into the group that it had. So the queue drops it while it remembers the id, and the
//! record and the ledger know what has ended: the judgement here is what a person is told before, not what keeps it safe.

use crate::ids::Ms;
use crate::message::{Body, Message, Reply, Work};
use crate::session::Session;

/// How long a FIFO queue remembers a deduplication id (AWS: five minutes), with a margin.
pub const REMEMBERED_MS: u64 = 5 * 60_000 + 10_000;

/// What becomes of a letter that is sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replay {
    /// It is worked on.
    Send,
    /// The queue would drop it without a word: it still remembers the id, until then.
    Wait {
        /// Unix milliseconds.
        until_ms: Ms,
    },
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

/// Judges a letter that came to the dead ones at `dead_since_ms`, by what is on record of its thread. `in_ledger`: the
/// ledger knows its turn as ended.
#[must_use]
pub fn replay(
    body: Option<&Body>,
    session: Option<&Session>,
    in_ledger: bool,
    dead_since_ms: Ms,
    now_ms: Ms,
) -> Replay {
    let Some(body) = body else {
        return Replay::Unreadable;
    };
    match body {
        Body::Message(Message {
            work: Work::Sweep | Work::Look,
            ..
        })
        | Body::Announce(_) => return Replay::AsksItself,
        Body::Message(message) => {
            let id = message.about();
            let over = |session: &Session| {
                session.ended.iter().any(|turn| turn.id == id)
                    || session.operated.iter().any(|one| one.id == id)
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
        Body::Control(_) | Body::Overview(_) => return Replay::TooLate,
        // The thread's first post may stand already: only the token of the request finds it for sure.
        Body::Open(open) => {
            if now_ms >= open.accepted_at_ms.saturating_add(Reply::DISCORD_TOKEN_MS) {
                return Replay::TooLate;
            }
        }
    }
    let until_ms = dead_since_ms.saturating_add(REMEMBERED_MS);
    match now_ms < until_ms {
        true => Replay::Wait { until_ms },
        false => Replay::Send,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ThreadKey;
    use crate::message::{Control, Open, Operation, Person, Prompt, Standing, Want};
    use crate::session::{EndedTurn, Outcome};

    const DEAD_MS: Ms = 1_000_000_000;
    const LATER_MS: Ms = DEAD_MS + REMEMBERED_MS;

    fn thread() -> ThreadKey {
        ThreadKey::discord("1", "2").expect("valid")
    }

    fn message(work: Work) -> Body {
        Body::Message(Message {
            id: "m1".to_owned(),
            thread: thread(),
            accepted_at_ms: DEAD_MS - 60_000,
            work,
        })
    }

    fn prompt() -> Body {
        message(Work::Prompt(Prompt::default()))
    }

    #[test]
    fn a_prompt_is_sent_again_once_the_queue_has_forgotten_it_and_never_one_that_has_ended() {
        let judged = |session: Option<&Session>, in_ledger, now_ms| {
            replay(Some(&prompt()), session, in_ledger, DEAD_MS, now_ms)
        };
        let mut session = Session::new(thread(), 0);
        assert_eq!(judged(None, false, LATER_MS), Replay::Send);
        assert_eq!(judged(Some(&session), false, LATER_MS), Replay::Send);
        assert_eq!(
            judged(Some(&session), false, LATER_MS - 1),
            Replay::Wait { until_ms: LATER_MS }
        );
        assert_eq!(judged(Some(&session), true, LATER_MS), Replay::Ended);
        session.turn = serde_json::from_value(serde_json::json!({
            "id": "m1", "by": Person::default(), "accepted_at_ms": 1, "stage": {"stage": "running"},
        }))
        .expect("a turn");
        assert_eq!(judged(Some(&session), false, LATER_MS), Replay::UnderWay);
        session.turn = None;
        session.ended.push(EndedTurn {
            id: "m1".to_owned(),
            outcome: Outcome::Lost,
            at_ms: 1,
        });
        assert_eq!(judged(Some(&session), false, DEAD_MS), Replay::Ended);
    }

    #[test]
    fn what_meant_something_that_is_over_is_not_sent_again() {
        let judged = |body: &Body| replay(Some(body), None, false, DEAD_MS, LATER_MS);
        let stop = Body::Control(Control {
            id: "c1".to_owned(),
            thread: thread(),
            by: Person::default(),
            reply: Reply::Nobody,
            standing: Standing::default(),
            want: Want::StopAll,
        });
        let operation = message(Work::Operate {
            want: Operation::Destroy,
        });
        let open = |accepted_at_ms| {
            Body::Open(Open {
                id: "o1".to_owned(),
                guild: "1".to_owned(),
                channel: "3".to_owned(),
                accepted_at_ms,
                prompt: Prompt::default(),
                reply: Reply::Nobody,
            })
        };
        for body in [stop, operation, open(LATER_MS - Reply::DISCORD_TOKEN_MS)] {
            assert_eq!(judged(&body), Replay::TooLate, "{body:?}");
        }
        assert_eq!(judged(&open(DEAD_MS)), Replay::Send);
        assert_eq!(judged(&message(Work::Sweep)), Replay::AsksItself);
        assert_eq!(
            replay(None, None, false, DEAD_MS, LATER_MS),
            Replay::Unreadable
        );
    }
}
