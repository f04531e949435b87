//! A turn whose message waits in the queue: what the delivery that gave it back knew, kept beside the record for the next.
//!
//! It is no part of the record: a look that finds nothing new leaves that as it is. Whoever finds none looks as if for the
//! first time, so one that is lost costs an edit of a card and counts as a delivery that did not come back.

use serde::{Deserialize, Serialize};

use crate::ids::{Ms, TurnId};

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

impl Parked {
    /// Whether the delivery right before this one gave the message back.
    #[must_use]
    pub fn is_of_the_delivery_before(&self, turn: &TurnId, receive: u32) -> bool {
        self.turn == *turn && self.receive.checked_add(1) == Some(receive)
    }
}
