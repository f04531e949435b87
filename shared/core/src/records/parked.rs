//! A turn whose message waits in the queue: what the delivery that gave it back knew, kept beside the record for the next.
//!
//! It is no part of the record: a look that finds nothing new leaves that as it is. Whoever finds none looks as if for the
//! first time, so one that is lost costs an edit of a card and counts as a delivery that did not come back.

use serde::{Deserialize, Serialize};

use crate::base::ids::{Ms, TurnId};
use crate::base::limits::{LOOK_SOON_MS, LOOKS_EAGER, LOOKS_NUDGED, NUDGE_APART_MS};

/// What the last delivery of a turn's message left for the next one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Parked {
    /// The turn whose message waits.
    pub turn: TurnId,
    /// Which delivery of it gave it back, from 1.
    pub receive: u32,
    /// When that was.
    pub at_ms: Ms,
    /// When it comes again by itself.
    pub until_ms: Ms,
    /// What that delivery saw of the run.
    #[serde(default)]
    pub seen: Seen,
}

/// What was seen of a run that goes on, as far as the next look needs it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Seen {
    /// A digest of what the card shows; none where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<String>,
    /// A state that is believed only once it has lasted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<Doubt>,
}

/// A state that needs confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Doubt {
    /// What it looked like.
    pub about: Doubtful,
    /// Since when.
    pub since_ms: Ms,
}

/// What a run may look like for a moment without being so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubtful {
    /// It was broken off.
    Stopped,
    /// Nothing has come of the prompt.
    Pending,
}

/// Who wants the next look to come sooner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// A person has said something about the turn.
    Person,
    /// The daemon in the turn's sandbox, in which whatever runs may say so as often as it likes.
    Daemon,
}

/// What becomes of such a wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forward {
    /// The message is to come now.
    Now {
        /// How long it would have waited.
        waits_ms: u64,
    },
    /// It comes by its time: that is soon, or the turn has been looked at very often.
    ByItsTime,
    /// No message of this turn waits, or it is not certain that it does: somebody may be looking, or giving it back.
    NotWaiting,
}

impl Parked {
    /// What becomes of a wish for this turn. A daemon's wishes have bounds of their own: its looks lie apart, and leave enough
    /// of the quick ones for people's.
    #[must_use]
    pub fn forward(&self, turn: &TurnId, wish: Wish, now_ms: Ms) -> Forward {
        let waits_ms = self.until_ms.saturating_sub(now_ms);
        let (looks, apart_ms) = match wish {
            Wish::Person => (LOOKS_EAGER, 0),
            Wish::Daemon => (LOOKS_NUDGED, NUDGE_APART_MS),
        };
        if self.turn != *turn || waits_ms == 0 || now_ms < self.at_ms.saturating_add(apart_ms) {
            return Forward::NotWaiting;
        }
        if self.receive >= looks || waits_ms < LOOK_SOON_MS {
            return Forward::ByItsTime;
        }
        Forward::Now { waits_ms }
    }

    /// Whether the delivery right before this one gave the message back.
    #[must_use]
    pub fn is_of_the_delivery_before(&self, turn: &TurnId, receive: u32) -> bool {
        self.turn == *turn && self.receive.checked_add(1) == Some(receive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_MS: Ms = 1_000_000;

    fn forward(receive: u32, turn: &str, wish: Wish, after_ms: u64) -> Forward {
        let parked = Parked {
            turn: "1".into(),
            receive,
            at_ms: AT_MS,
            until_ms: AT_MS + 20_000,
            seen: Seen::default(),
        };
        parked.forward(&turn.into(), wish, AT_MS + after_ms)
    }

    #[test]
    fn waiting_message_is_brought_forward() {
        for wish in [Wish::Person, Wish::Daemon] {
            let waits_ms = 15_000;
            assert_eq!(forward(3, "1", wish, 5_000), Forward::Now { waits_ms });
            assert_eq!(forward(3, "2", wish, 5_000), Forward::NotWaiting);
            assert_eq!(forward(3, "1", wish, 19_600), Forward::ByItsTime);
            assert_eq!(forward(3, "1", wish, 20_000), Forward::NotWaiting);
        }
    }

    #[test]
    fn daemon_nudges_are_rate_limited() {
        let close = NUDGE_APART_MS - 1;
        assert_eq!(forward(1, "1", Wish::Daemon, close), Forward::NotWaiting);
        let now = |waits_ms| Forward::Now { waits_ms };
        assert_eq!(forward(1, "1", Wish::Person, close), now(20_000 - close));
        let late = |wish| forward(LOOKS_NUDGED, "1", wish, 5_000);
        assert_eq!(late(Wish::Daemon), Forward::ByItsTime);
        assert_eq!(late(Wish::Person), now(15_000));
        let last = forward(LOOKS_EAGER, "1", Wish::Person, 5_000);
        assert_eq!(last, Forward::ByItsTime);
    }
}
