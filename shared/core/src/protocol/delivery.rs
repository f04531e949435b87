//! One delivery of a message, and what becomes of it.

use crate::base::failure::Failure;
use crate::base::ids::Ms;
use crate::base::limits::{Limits, RetryLimits};
use crate::records::message::Message;
use crate::schema::wait_ms;
use crate::tenant::runtime_mode::RuntimeMode;

/// What to do with the message.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Delete it: it ended, visibly.
    Done,
    /// Give it back: it comes again after the delay.
    Hold {
        /// Milliseconds from now until it comes again.
        delay_ms: u64,
        /// Why, for the log.
        why: String,
    },
    /// Give it back for a newer worker: something of it, or of its thread, is of a shape that this one does not read.
    Newer {
        /// Milliseconds from now until it comes again.
        delay_ms: u64,
        /// What, for the log.
        seen: String,
    },
}

impl Verdict {
    /// What becomes of a message that this worker is too old for; `receive` counts its deliveries, from 1.
    #[must_use]
    pub fn newer(seen: String, receive: u32, limits: &RetryLimits) -> Self {
        Self::Newer { delay_ms: wait_ms(limits, receive), seen }
    }

    /// What becomes of a message when what it needs was not to be had: what passes is waited out for as long as that takes,
    /// a shape of a newer worker is left to that one, and what is refused comes to its end by the queue's count.
    #[must_use]
    pub fn given_back(failure: &Failure, why: String, receive: u32, limits: &RetryLimits) -> Self {
        let delay_ms = match failure {
            Failure::Newer { seen } => return Self::newer(seen.clone(), receive, limits),
            Failure::Outage { after_ms, .. } | Failure::Wait { after_ms, .. } => {
                limits.outage_backoff(receive).max(*after_ms)
            }
            _ => limits.backoff(receive),
        };
        Self::Hold { delay_ms, why }
    }

    /// The same, but so many milliseconds from now at the latest. Of a turn's deliveries, which the delay was made of, most
    /// may have been looks at its run; its age says how long what stands in its way can have lasted.
    #[must_use]
    pub fn within(mut self, most_ms: u64) -> Self {
        if let Self::Hold { delay_ms, .. } | Self::Newer { delay_ms, .. } = &mut self {
            *delay_ms = (*delay_ms).min(most_ms);
        }
        self
    }
}

/// One delivery of a message, and how it is driven.
#[derive(Debug, Clone)]
pub struct Delivery<'a> {
    /// The message that was delivered.
    pub message: &'a Message,
    /// Names this delivery: message id and receive count.
    pub id: String,
    /// Counts the deliveries of this message, from 1.
    pub receive: u32,
    /// Stop following at this time at the latest: the function has no more.
    pub follow_until_ms: Ms,
    /// Model of turns for which none is chosen, as provider/model.
    pub model: &'a str,
    /// Providers whose models can be chosen: there is a key for them.
    pub providers: &'a [String],
    /// How agents are run in the stack, where nobody chose.
    pub runtime: RuntimeMode,
    /// The bounds of every wait, retry and size.
    pub limits: &'a Limits,
    /// Cuts an answer into parts that fit this platform's messages.
    pub split: fn(&str) -> Vec<String>,
}

impl Delivery<'_> {
    /// How long ago the message was accepted, in milliseconds.
    #[must_use]
    pub const fn age_ms(&self, now_ms: Ms) -> u64 {
        now_ms.saturating_sub(self.message.accepted_at_ms)
    }

    /// Whether it is given up where it cannot be done now: what nobody said, after some deliveries.
    #[must_use]
    pub const fn is_given_up(&self) -> bool {
        self.message.work.is_by_itself() && self.receive > self.limits.retry.attempts
    }
}
