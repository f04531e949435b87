//! How the time from a message to its prompt is shared.
//!
//! The provider's is the time in which the sandbox is asked for and not up yet, or one of its calls is under way; the
//! agent's that from the start of its server until it listens, and each of its calls. Ours is what is left: computing,
//! and waiting between two looks when there would have been something to see. The round trips to AWS and the chat are
//! counted and their time is nobody's: what they take here says nothing about what they take elsewhere.

use std::time::Duration;

use crate::trips::{Call, Peer, first};

/// The name of the call that sends a prompt.
pub const PROMPT_SENT: &str = "send the prompt";
/// The names of the calls after which a sandbox is not up yet.
pub const CREATE: &str = "create sandbox";
/// See [`CREATE`].
pub const START: &str = "start sandbox";

/// A message until its prompt was sent, as recorded.
#[derive(Debug)]
pub struct Delivery {
    pub calls: Vec<Call>,
    /// When the worker received the message.
    pub given: Duration,
    /// When the sandbox was up.
    pub up: Duration,
    /// When the agent's server was started, and when it listened.
    pub boot: (Duration, Duration),
}

/// Milliseconds from the message until the prompt was sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shares {
    pub whole: f64,
    pub provider: f64,
    pub agent: f64,
    pub ours: f64,
}

type Span = (Duration, Duration);

impl Delivery {
    /// The call that sent the prompt.
    ///
    /// # Errors
    /// A sentence, if there is none.
    pub fn sent(&self) -> Result<usize, String> {
        first(&self.calls, PROMPT_SENT).ok_or_else(|| "nobody sent the prompt".to_owned())
    }

    /// From the request for the sandbox until it was up; `None` if the place does nothing after a call has ended.
    pub fn making(&self) -> Option<Span> {
        let asked = [CREATE, START].map(|name| first(&self.calls, name));
        let asked = asked.into_iter().flatten();
        let begun = asked.map(|index| self.calls[index].begun).min()?;
        Some((begun, self.up))
    }

    /// The shares of the time.
    ///
    /// # Errors
    /// As [`Delivery::sent`].
    pub fn shares(&self) -> Result<Shares, String> {
        let end = self.calls[self.sent()?].ended;
        let of = |peer: Peer, from: Duration| {
            let calls = self.calls.iter();
            calls
                .filter(move |call| call.peer == peer && call.begun >= from && call.begun < end)
                .map(|call| (call.begun, call.ended))
        };
        // Polls of a server that does not listen yet are ours.
        let agent: Vec<Span> = of(Peer::Agent, self.boot.1).chain([self.boot]).collect();
        let provider = of(Peer::Provider, self.given).chain(self.making());
        let theirs: Vec<Span> = provider.chain(agent.iter().copied()).collect();
        let around = of(Peer::Aws, self.given).chain(of(Peer::Chat, self.given));
        let taken: Vec<Span> = around.chain(theirs.iter().copied()).collect();
        let covered = |spans: &[Span]| ms(covered(spans, (self.given, end)));
        let whole = ms(end.saturating_sub(self.given));
        Ok(Shares {
            whole,
            provider: covered(&theirs) - covered(&agent),
            agent: covered(&agent),
            ours: whole - covered(&taken),
        })
    }
}

/// The time that spans cover within a time; overlaps count once.
fn covered(spans: &[Span], (from, until): Span) -> Duration {
    let mut spans = spans.to_vec();
    spans.sort();
    let (mut sum, mut counted) = (Duration::ZERO, from);
    for (begin, end) in spans {
        let end = end.min(until);
        sum += end.saturating_sub(begin.max(counted));
        counted = counted.max(end);
    }
    sum
}

/// Milliseconds of a time.
pub fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
