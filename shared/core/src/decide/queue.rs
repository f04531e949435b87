//! A prompt that has been put behind others: whether it is shown as waiting, and when too many wait.

use crate::limits::Limits;
use crate::message::Announce;
use crate::session::{Marks, Queued, Session};

/// What becomes of an announcement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// Its turn has begun or ended.
    Over,
    /// It has been announced before, and still waits.
    Known {
        /// How it is marked.
        queued: Queued,
        /// Turns before it, the present one included.
        ahead: usize,
    },
    /// It waits behind so many others; none means that it begins as soon as a worker has it.
    Waits {
        /// Turns before it, the present one included.
        ahead: usize,
    },
    /// The thread has as many waiting as it may have.
    Full,
}

/// Judges an announcement by what is on record. `in_ledger`: the ledger knows its turn as ended.
#[must_use]
pub fn admit(
    session: Option<&Session>,
    marks: &Marks,
    in_ledger: bool,
    announce: &Announce,
    limits: &Limits,
) -> Admission {
    let turn = session.and_then(|session| session.turn.as_ref());
    let running = usize::from(turn.is_some());
    if let Some(queued) = marks.queued.get(&announce.turn) {
        let earlier = |one: &&Queued| !one.refused && one.accepted_at_ms < queued.accepted_at_ms;
        return Admission::Known {
            queued: queued.clone(),
            ahead: marks.queued.values().filter(earlier).count() + running,
        };
    }
    let ended = in_ledger
        || session.is_some_and(|session| session.ended.iter().any(|turn| turn.id == announce.turn));
    if ended || turn.is_some_and(|turn| turn.id == announce.turn) {
        return Admission::Over;
    }
    let waiting = marks.queued.values().filter(|one| !one.refused).count();
    if waiting >= limits.thread_queue {
        return Admission::Full;
    }
    Admission::Waits {
        ahead: waiting + running,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ThreadKey;
    use crate::message::Person;

    fn announce(turn: &str) -> Announce {
        Announce {
            turn: turn.to_owned(),
            thread: ThreadKey::discord("1", "2").expect("valid"),
            by: Person::default(),
            accepted_at_ms: 1,
        }
    }

    fn marks(waiting: usize) -> Marks {
        let mut marks = Marks::default();
        for n in 0..waiting {
            let queued = Queued {
                by: Person::default(),
                accepted_at_ms: n as u64,
                card: None,
                refused: false,
            };
            marks.queued.insert(format!("w{n}"), queued);
        }
        marks
    }

    #[test]
    fn a_prompt_is_counted_behind_those_before_it_and_once() {
        let limits = Limits::DEFAULT;
        let judged =
            |marks: &Marks, turn: &str| admit(None, marks, false, &announce(turn), &limits);
        assert_eq!(judged(&marks(0), "a"), Admission::Waits { ahead: 0 });
        assert_eq!(judged(&marks(3), "a"), Admission::Waits { ahead: 3 });
        assert!(matches!(
            judged(&marks(3), "w1"),
            Admission::Known { ahead: 1, .. }
        ));
        assert_eq!(judged(&marks(limits.thread_queue), "a"), Admission::Full);
        assert_eq!(
            admit(None, &marks(0), true, &announce("a"), &limits),
            Admission::Over
        );
    }
}
