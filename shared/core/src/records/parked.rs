//! State that one delivery saves beside the record for the next, when it returns the turn's message to the queue.
//!
//! It is not part of the record: a poll that finds nothing new leaves the record as it is. Without it, the next
//! delivery polls as if for the first time, so losing it costs an edit of a card, and counts as a delivery that did not
//! come back.

use serde::{Deserialize, Serialize};

use crate::base::ids::{Ms, TurnId};
use crate::base::limits::{LOOK_SOON_MS, LOOKS_EAGER, LOOKS_NUDGED, NUDGE_APART_MS};
use crate::tenant::budgets::MicroUsd;

/// State that the last delivery of a turn's message left for the next one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Parked {
    /// The turn whose message waits.
    pub turn: TurnId,
    /// Receive count of the delivery that returned the message, from 1.
    pub receive: u32,
    /// When it was returned.
    pub at_ms: Ms,
    /// When it comes back by itself.
    pub until_ms: Ms,
    /// State of the run as that delivery saw it.
    #[serde(default)]
    pub seen: Seen,
}

/// State of a run that goes on, as far as the next poll needs it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Seen {
    /// A digest of what the card shows; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<String>,
    /// What the run has spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<MicroUsd>,
    /// A state that is believed only once it has lasted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<Doubt>,
}

/// A state that needs confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Doubt {
    /// The state.
    pub about: Doubtful,
    /// When it was first seen.
    pub since_ms: Ms,
}

/// States that a run may appear to be in for a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubtful {
    /// The run was broken off.
    Stopped,
    /// The agent has not begun the prompt.
    Pending,
}

/// Who requests an earlier poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollRequester {
    /// A person has acted on the turn.
    Person,
    /// The daemon in the turn's sandbox. Any program in there may request it as often as it likes.
    Daemon,
}

/// Verdict on a request for an earlier poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forward {
    /// Make the message visible now.
    Now {
        /// Milliseconds that it would still have waited.
        waits_ms: u64,
    },
    /// Leave the message to its delay: that ends soon, or the turn has been polled very often.
    ByItsTime,
    /// No message of this turn waits, or that is not certain: a delivery may be polling, or returning it.
    NotWaiting,
}

impl Parked {
    /// Judges a request for this turn. A daemon's requests have bounds of their own: its polls are spaced apart, and
    /// leave enough of the quick ones for people's requests.
    #[must_use]
    pub fn forward(&self, turn: &TurnId, wish: PollRequester, now_ms: Ms) -> Forward {
        let waits_ms = self.until_ms.saturating_sub(now_ms);
        let (looks, apart_ms) = match wish {
            PollRequester::Person => (LOOKS_EAGER, 0),
            PollRequester::Daemon => (LOOKS_NUDGED, NUDGE_APART_MS),
        };
        if self.turn != *turn || waits_ms == 0 || now_ms < self.at_ms.saturating_add(apart_ms) {
            return Forward::NotWaiting;
        }
        if self.receive >= looks || waits_ms < LOOK_SOON_MS {
            return Forward::ByItsTime;
        }
        Forward::Now { waits_ms }
    }

    /// Whether the delivery right before this one returned the message.
    #[must_use]
    pub fn is_of_the_delivery_before(&self, turn: &TurnId, receive: u32) -> bool {
        self.turn == *turn && self.receive.checked_add(1) == Some(receive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_MS: Ms = 1_000_000;

    fn forward(receive: u32, turn: &str, wish: PollRequester, after_ms: u64) -> Forward {
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
        for wish in [PollRequester::Person, PollRequester::Daemon] {
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
        assert_eq!(forward(1, "1", PollRequester::Daemon, close), Forward::NotWaiting);
        let now = |waits_ms| Forward::Now { waits_ms };
        assert_eq!(forward(1, "1", PollRequester::Person, close), now(20_000 - close));
        let late = |wish| forward(LOOKS_NUDGED, "1", wish, 5_000);
        assert_eq!(late(PollRequester::Daemon), Forward::ByItsTime);
        assert_eq!(late(PollRequester::Person), now(15_000));
        let last = forward(LOOKS_EAGER, "1", PollRequester::Person, 5_000);
        assert_eq!(last, Forward::ByItsTime);
    }
}
