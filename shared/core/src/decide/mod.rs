//! One pure, total function over (session, event): what the session becomes, and the next step.

use crate::drive::Delivery;
use crate::effect::Effect;
use crate::event::Event;
use crate::ids::Ms;
use crate::session::{Marks, Session};

/// What a decision may look at besides session and event.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The present time.
    pub now_ms: Ms,
    /// Until when the message in hand stays invisible to others.
    pub visible_until_ms: Ms,
    /// The delivery in hand.
    pub delivery: &'a Delivery<'a>,
    /// What the control lane wrote beside the record.
    pub marks: &'a Marks,
}

/// The session as it shall be recorded, and what to do once it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The session'.
    pub session: Session,
    /// The next step.
    pub next: Next,
}

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Perform this, then decide on its outcome.
    Do(Effect),
    /// The message has ended.
    Done,
    /// Give the message back; it comes again after the delay.
    Hold {
        /// Milliseconds.
        delay_ms: u64,
        /// Why, for the log.
        why: String,
    },
}

/// Decides.
#[must_use]
pub fn decide(session: Session, _event: Event, _context: &Context<'_>) -> Decision {
    Decision { session, next: Next::Done }
}
