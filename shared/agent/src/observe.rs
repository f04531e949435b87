//! Observing a run: the caller's request for each poll, and the result.
//!
//! How a runtime learns about its run (a stream, lists, pages of events) is its own business: it keeps that state in
//! the [`RunCursor`], which the caller only holds.

use std::any::Any;
use std::time::Duration;

use bobbin_core::base::ids::{AgentSessionId, AskId};
use bobbin_core::records::ask::About;
use bobbin_core::records::run::RunAnswer;
use bobbin_core::tenant::budgets::MicroUsd;
use tokio::time::Instant;

use crate::fold::Fold;
use crate::runtime::{AgentError, AgentResult};

/// An agent sends something at least every 10 s; a longer silence than this means a dead connection.
const SILENCE_MS_MAX: u64 = 30_000;

/// The run of a prompt, into which other prompts may have been sent later.
#[derive(Debug, Clone, Copy)]
pub struct RunRef<'a> {
    /// The agent's session.
    pub session: &'a AgentSessionId,
    /// The prompt that began it.
    pub message: &'a str,
    /// The prompts that were sent into it, oldest first.
    pub further: &'a [String],
}

/// How to observe a run.
#[derive(Debug, Clone, Copy)]
pub enum Observe {
    /// Reads everything that is available now, including the record, without listening.
    Once,
    /// Listens for news for a limited time, without reading the record.
    Listen {
        /// Longest time to listen.
        within: Duration,
    },
    /// Listens too, then reads the record if an event suggests that the run is over, or if the last read is long ago.
    Follow {
        /// Longest time to listen.
        within: Duration,
        /// Age after which the record is read again.
        record_after: Duration,
    },
}

/// State of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunState {
    /// The agent works, or waits for an ask.
    Busy,
    /// Broken off: its server went away. Believe it only when observed twice, some seconds apart.
    Stopped,
    /// Broken off, as reported by the program that runs the agent: certain at once.
    Lost,
    /// The agent has not begun the prompt, or does not have it. Believe it only when observed twice, some seconds
    /// apart.
    Pending,
    /// It has ended, with this answer.
    Done(RunAnswer),
}

/// Result of observing a run.
#[derive(Debug)]
pub struct Observation<'a> {
    /// State by the agent's record, never by its events; `None`: the record was not read.
    pub state: Option<RunState>,
    /// The asks that wait for a person.
    pub asks: Vec<(AskId, About)>,
    /// What the run has spent so far, with its subagents, in millionths of a US dollar.
    pub spent: MicroUsd,
    /// State folded from the agent's events.
    pub told: &'a Fold,
    /// Whether the events are complete: false while a new connection has not caught up.
    pub is_whole: bool,
}

/// State that a runtime keeps between two observations of a run. After a failed one the next one reconnects.
#[derive(Default)]
pub struct RunCursor {
    kept: Option<Box<dyn Any + Send>>,
    is_whole: bool,
}

impl std::fmt::Debug for RunCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunCursor").field("is_whole", &self.is_whole).finish_non_exhaustive()
    }
}

impl RunCursor {
    /// Whether the last connection had caught up, even if the observation failed after that.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// For a runtime: its state, created by `begin` if missing, and the flag whether that has caught up.
    pub fn kept<T: Send + 'static>(&mut self, begin: impl FnOnce() -> T) -> (&mut T, &mut bool) {
        if !self.kept.as_ref().is_some_and(|kept| kept.is::<T>()) {
            self.kept = Some(Box::new(begin()));
        }
        let kept = self.kept.as_mut().and_then(|kept| kept.downcast_mut());
        (kept.expect("it was put there"), &mut self.is_whole)
    }
}

/// For a runtime: decides when its connection counts as dead, and when its run's record has to be read.
#[derive(Debug)]
pub struct Pulse {
    heard: Instant,
    looked: Instant,
}

impl Default for Pulse {
    fn default() -> Self {
        let now = Instant::now();
        Self { heard: now, looked: now }
    }
}

impl Pulse {
    /// Records that a connection was made.
    pub fn connected(&mut self) {
        self.heard = Instant::now();
    }

    /// Records that the connection was read, and whether it sent anything.
    ///
    /// # Errors
    /// It has been silent for too long.
    pub fn listened(&mut self, something_came: bool) -> AgentResult<()> {
        if something_came {
            self.heard = Instant::now();
        } else if self.heard.elapsed() > Duration::from_millis(SILENCE_MS_MAX) {
            let seen = "the agent fell silent".to_owned();
            return Err(AgentError {
                seen,
                ..AgentError::unreachable("the event stream fell silent")
            });
        }
        Ok(())
    }

    /// Whether the record has to be read now; if so, it counts as read.
    pub fn is_due(&mut self, end_is_suggested: bool, after: Duration) -> bool {
        let is_due = end_is_suggested || self.looked.elapsed() >= after;
        if is_due {
            self.looked = Instant::now();
        }
        is_due
    }
}
