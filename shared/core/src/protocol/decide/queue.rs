//! A prompt that waits behind others: whether it is shown as waiting, and when too many wait.

use crate::base::ids::{PostRef, TurnId};
use crate::base::limits::RecordLimits;
use crate::records::flags::{ControlFlags, Queued};
use crate::records::ledger::LedgerEntry;
use crate::records::message::{Announce, Prompt};
use crate::records::outcome::Outcome;
use crate::records::sandbox::Phase;
use crate::records::session::Session;

/// Verdict on an announcement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// Its turn has begun or ended.
    Over,
    /// It was announced before, and still waits.
    Known {
        /// Its mark.
        queued: Queued,
        /// Turns before it, the present one included.
        ahead: usize,
    },
    /// It waits behind this many turns; with 0 it begins as soon as a worker has it.
    Waits {
        /// Turns before it, the present one included.
        ahead: usize,
    },
    /// The thread already has the most waiting prompts allowed.
    Full,
    /// So many were refused since the thread's present turn began that the record has no room for more: nothing is
    /// written or shown, and the prompt begins when it comes to its turn.
    Unshown,
}

/// Refused prompts of which a record keeps the flags. Each has some 300 bytes, and an item has 400 KB (DynamoDB
/// quotas), which a Stop needs as well.
const REFUSED_MAX: usize = 100;

/// Judges an announcement by the record. `in_ledger`: the ledger knows its turn as ended.
#[must_use]
pub fn admit(
    session: Option<&Session>,
    flags: &ControlFlags,
    in_ledger: bool,
    announce: &Announce,
    limits: &RecordLimits,
) -> Admission {
    let turn = session.and_then(|session| session.turn.as_ref());
    // A reset has no turn, and the thread's messages wait behind it.
    let is_deleted = session.is_some_and(|it| it.sandbox.phase == Phase::Destroying);
    let running = usize::from(turn.is_some() || is_deleted);
    if turn.is_some_and(|turn| turn.covers(&announce.turn)) {
        return Admission::Over;
    }
    if let Some(queued) = flags.queued.get(&announce.turn) {
        let earlier = |one: &&Queued| !one.refused && one.accepted_at_ms < queued.accepted_at_ms;
        return Admission::Known {
            queued: queued.clone(),
            ahead: flags.queued.values().filter(earlier).count() + running,
        };
    }
    let ended = in_ledger
        || session.is_some_and(|session| session.ended.iter().any(|turn| turn.id == announce.turn));
    if ended {
        return Admission::Over;
    }
    let waiting = flags.queued.values().filter(|one| !one.refused).count();
    if waiting >= limits.thread_queue {
        let refused = flags.queued.len() - waiting;
        return if refused < REFUSED_MAX { Admission::Full } else { Admission::Unshown };
    }
    Admission::Waits { ahead: waiting + running }
}

/// Verdict on the card that announced a waiting prompt, now that it is posted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Announced {
    /// The turn has this card, or will show its end on it.
    Right,
    /// The card has to be noted beside the record, so that its waiting turn takes it over.
    Waits,
    /// As `Waits`, but the turn has begun: check later whether it took the card over.
    Begins,
    /// The turn made its own card meanwhile; this one points to it.
    Moved(PostRef),
    /// The turn is over and has no card; this one shows its outcome.
    Ended(Outcome),
}

/// Judges the card by the record. `entry`: the ledger's entry for its turn.
#[must_use]
pub fn announced(
    session: Option<&Session>,
    entry: Option<&LedgerEntry>,
    turn: &TurnId,
    at: &PostRef,
) -> Announced {
    let of = |card: Option<&PostRef>| match card {
        Some(card) if card == at => Some(Announced::Right),
        Some(card) => Some(Announced::Moved(card.clone())),
        None => None,
    };
    let running = session.and_then(|session| session.turn.as_ref());
    if let Some(running) = running.filter(|running| running.covers(turn)) {
        let mut steered = running.steered.iter();
        let own = match steered.find(|one| one.turn == *turn) {
            Some(steered) => steered.card.as_ref(),
            None => running.card.at.as_ref(),
        };
        return of(own).unwrap_or(Announced::Begins);
    }
    if let Some(entry) = entry {
        let over = || Announced::Ended(entry.outcome.clone());
        return of(entry.card.as_ref()).unwrap_or_else(over);
    }
    let mut ended = session.into_iter().flat_map(|session| &session.ended);
    match ended.find(|ended| ended.id == *turn) {
        Some(ended) => Announced::Ended(ended.outcome.clone()),
        None => Announced::Waits,
    }
}

/// The prompt as kept beside the record while it waits, so that it can be sent at once. `None` if it is too large,
/// alone or with what is kept already, or if its message did not fit its announcement.
#[must_use]
pub fn kept(
    flags: &ControlFlags,
    announce: &Announce,
    limits: &RecordLimits,
) -> Option<Box<Prompt>> {
    let prompt = announce.prompt.as_ref().filter(|prompt| prompt.is_plain())?;
    let bytes = prompt.bytes();
    let others = flags.queued.iter().filter(|(turn, _)| **turn != announce.turn);
    let before: usize =
        others.filter_map(|(_, queued)| Some(queued.prompt.as_ref()?.bytes())).sum();
    let fits = bytes <= limits.steer_bytes && before.saturating_add(bytes) <= limits.queued_bytes;
    fits.then(|| Box::new(prompt.clone()))
}

/// Verdict on the request to send a waiting prompt at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steering {
    /// It is marked: the delivery that follows the run sends it.
    Flag,
    /// It was sent already.
    Sent,
    /// Its turn has begun, or ended, or was withdrawn.
    Over,
    /// There is no run to send it into; it begins by itself.
    NothingRuns,
    /// Its text is not kept here.
    NotKept,
}

/// Judges the request by the record.
#[must_use]
pub fn steer(session: Option<&Session>, flags: &ControlFlags, turn: &TurnId) -> Steering {
    let running = session.and_then(|session| session.turn.as_ref());
    if running.is_some_and(|running| running.id != *turn && running.covers(turn)) {
        return Steering::Sent;
    }
    let waits = flags.queued.get(turn).filter(|queued| !queued.refused);
    match (waits, running) {
        (None, _) => Steering::Over,
        (Some(queued), _) if flags.cancelled_by(turn, queued.accepted_at_ms).is_some() => {
            Steering::Over
        }
        (Some(_), Some(running)) if running.id == *turn => Steering::Over,
        (Some(_), None) => Steering::NothingRuns,
        (Some(_), Some(running)) if running.stage.is_ending() => Steering::NothingRuns,
        (Some(queued), Some(_)) if queued.prompt.is_none() => Steering::NotKept,
        (Some(_), Some(_)) => Steering::Flag,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::ThreadKey;
    use crate::base::person::Person;
    use crate::protocol::decide::prompt::new_turn;
    use crate::records::flags::StoppedAll;
    use crate::records::turn::EndedTurn;
    use crate::tenant::selection::Selection;

    fn announce(turn: &str) -> Announce {
        Announce {
            turn: turn.into(),
            thread: ThreadKey::discord("1", "2").expect("valid"),
            by: Person::default(),
            accepted_at_ms: 1,
            prompt: None,
        }
    }

    fn flags(waiting: usize) -> ControlFlags {
        let mut flags = ControlFlags::default();
        for n in 0..waiting {
            let queued = Queued {
                by: Person::default(),
                accepted_at_ms: n as u64,
                card: None,
                refused: false,
                prompt: None,
            };
            flags.queued.insert(format!("w{n}").into(), queued);
        }
        flags
    }

    #[test]
    fn prompt_is_queued_once_in_order() {
        let limits = RecordLimits::DEFAULT;
        let judged =
            |flags: &ControlFlags, turn: &str| admit(None, flags, false, &announce(turn), &limits);
        assert_eq!(judged(&flags(0), "a"), Admission::Waits { ahead: 0 });
        assert_eq!(judged(&flags(3), "a"), Admission::Waits { ahead: 3 });
        assert!(matches!(judged(&flags(3), "w1"), Admission::Known { ahead: 1, .. }));
        assert_eq!(judged(&flags(limits.thread_queue), "a"), Admission::Full);
        let mut flooded = flags(limits.thread_queue + REFUSED_MAX);
        for refused in flooded.queued.values_mut().skip(limits.thread_queue) {
            refused.refused = true;
        }
        assert_eq!(judged(&flooded, "a"), Admission::Unshown);
        assert_eq!(admit(None, &flags(0), true, &announce("a"), &limits), Admission::Over);
    }

    #[test]
    fn prompt_behind_a_reset_is_shown() {
        let limits = RecordLimits::DEFAULT;
        let mut session = Session::new(ThreadKey::discord("1", "2").expect("valid"), 0);
        session.sandbox.phase = Phase::Destroying;
        let judged = admit(Some(&session), &flags(0), false, &announce("a"), &limits);
        assert_eq!(judged, Admission::Waits { ahead: 1 });
    }

    #[test]
    fn stop_all_ends_reached_prompts() {
        let thread = ThreadKey::discord("1", "2").expect("valid");
        let (prompt, selection) = (Prompt::default(), Selection::default());
        let mut session = Session::new(thread, 0);
        session.turn = Some(new_turn((&"running".into(), 1), &prompt, selection, None));
        let mut flags = flags(2);
        flags.queued.values_mut().for_each(|queued| queued.prompt = Some(Box::default()));
        let all = StoppedAll { by: Person::default(), until_ms: 0 };
        flags.stopped_all.insert("all".into(), all);
        let judged = |flags: &ControlFlags, turn: &str| steer(Some(&session), flags, &turn.into());
        assert_eq!(judged(&flags, "w0"), Steering::Over);
        assert_eq!(judged(&flags, "w1"), Steering::Flag);
        assert_eq!(flags.waiting().into_iter().map(|(turn, _)| turn).collect::<Vec<_>>(), ["w1"]);
    }

    #[test]
    fn announced_card_follows_its_turn() {
        let thread = ThreadKey::discord("1", "2").expect("valid");
        let post = |id: &str| PostRef { channel: "c".to_owned(), id: id.to_owned() };
        let (at, own) = (post("announced"), post("own"));
        let mut session = Session::new(thread, 0);
        let judged = |session: &Session| announced(Some(session), None, &"a".into(), &at);
        assert_eq!(judged(&session), Announced::Waits);
        let ended = EndedTurn { id: "a".into(), outcome: Outcome::Answered, at_ms: 1 };
        session.ended.push(ended);
        assert_eq!(judged(&session), Announced::Ended(Outcome::Answered));
        session.ended.clear();
        let prompt = Prompt::default();
        let selection = Selection::default();
        let mut turn = new_turn((&"a".into(), 1), &prompt, selection, None);
        for (card, expected) in [
            (None, Announced::Begins),
            (Some(at.clone()), Announced::Right),
            (Some(own.clone()), Announced::Moved(own)),
        ] {
            turn.card.at = card;
            session.turn = Some(turn.clone());
            assert_eq!(judged(&session), expected);
        }
    }
}
