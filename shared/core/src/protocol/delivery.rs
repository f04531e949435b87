//! One delivery of a message, and its verdict.

use crate::base::failure::Failure;
use crate::base::ids::Ms;
use crate::base::limits::{Limits, RetryLimits};
use crate::records::message::{Message, Work};
use crate::schema::wait_ms;
use crate::tenant::repositories::BoundForge;
use crate::tenant::runtime_mode::RuntimeMode;

/// Acknowledge or retry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Acknowledge: the message ended, visibly.
    Done,
    /// Retry after the delay.
    Hold {
        /// Milliseconds until the next delivery.
        delay_ms: u64,
        /// The reason, for the log.
        why: String,
    },
    /// Retry, for a newer worker: the message or its thread's record has a format that this worker cannot read.
    Newer {
        /// Milliseconds until the next delivery.
        delay_ms: u64,
        /// What could not be read, for the log.
        seen: String,
    },
}

impl Verdict {
    /// The verdict on a message that this worker is too old for; `receive` counts its deliveries, from 1.
    #[must_use]
    pub fn newer(seen: String, receive: u32, limits: &RetryLimits) -> Self {
        Self::Newer { delay_ms: wait_ms(limits, receive), seen }
    }

    /// The verdict on a message whose needs could not be met. An outage is waited out, however long it takes; a newer
    /// format is left to a newer worker; a refusal ends by the queue's receive count.
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

    /// Caps the delay, in milliseconds from now. The delay was computed from the number of deliveries, but most
    /// deliveries of a turn may have been polls of its run; the turn's age bounds how long the obstacle can have
    /// lasted.
    #[must_use]
    pub fn within(mut self, most_ms: u64) -> Self {
        if let Self::Hold { delay_ms, .. } | Self::Newer { delay_ms, .. } = &mut self {
            *delay_ms = (*delay_ms).min(most_ms);
        }
        self
    }
}

/// One delivery of a message, with what is needed to drive it.
#[derive(Debug, Clone)]
pub struct Delivery<'a> {
    /// The message that was delivered.
    pub message: &'a Message,
    /// Names this delivery: message id and receive count.
    pub id: String,
    /// Counts the deliveries of this message, from 1.
    pub receive: u32,
    /// Latest time to stop following: the function's own time ends then.
    pub follow_until_ms: Ms,
    /// Default model, as provider/model.
    pub model: &'a str,
    /// Providers whose models can be chosen, because the stack has a key for them.
    pub providers: &'a [String],
    /// The stack's default runtime mode.
    pub runtime: RuntimeMode,
    /// The forge, if one is set up for the thread's tenant.
    pub forge: Option<&'a BoundForge>,
    /// Bounds of every wait, retry and size.
    pub limits: &'a Limits,
    /// Splits an answer into parts that fit this platform's messages.
    pub split: fn(&str) -> Vec<String>,
}

impl<'a> Delivery<'a> {
    /// The channel in which the message was written; empty for work that comes from none.
    #[must_use]
    pub fn channel(&self) -> &'a str {
        match &self.message.work {
            Work::Prompt(prompt) => &prompt.membership.channel,
            Work::Build(build) => &build.channel,
            Work::Reset { membership, .. }
            | Work::Name { membership, .. }
            | Work::Connect { membership, .. }
            | Work::Publish { membership, .. } => &membership.channel,
            _ => "",
        }
    }

    /// The tenant's forge, and the channel of the message: what is open there counts.
    #[must_use]
    pub fn place(&self) -> (Option<&'a BoundForge>, &'a str) {
        (self.forge, self.channel())
    }

    /// Time since the message was accepted, in milliseconds.
    #[must_use]
    pub const fn age_ms(&self, now_ms: Ms) -> u64 {
        now_ms.saturating_sub(self.message.accepted_at_ms)
    }

    /// Whether to give up if it cannot be done now: true for work that no person asked for, after some deliveries.
    #[must_use]
    pub const fn is_given_up(&self) -> bool {
        self.message.work.is_by_itself() && self.receive > self.limits.retry.attempts
    }
}
