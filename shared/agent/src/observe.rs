//! Following a run: what a caller asks for with each look, and what it is told.
//!
//! How a runtime hears of its run (a stream, lists, pages of events) is its own business: it keeps that in the
//! [`RunCursor`], which the caller only holds.

use std::any::Any;
use std::time::Duration;

use bobbin_core::base::ids::{AgentSessionId, AskId};
use bobbin_core::records::ask::About;
use bobbin_core::records::run::Answer;
use tokio::time::Instant;

use crate::fold::Fold;
use crate::runtime::{AgentError, AgentResult};

/// An agent says something at least every 10 s; longer silence than this is a dead connection.
const SILENCE_MS_MAX: u64 = 30_000;

/// The run of a prompt, into which others may have been sent after it.
#[derive(Debug, Clone, Copy)]
pub struct RunRef<'a> {
    /// The agent's session.
    pub session: &'a AgentSessionId,
    /// The prompt that began it.
    pub message: &'a str,
    /// The prompts that were sent into it, oldest first.
    pub further: &'a [String],
}

/// How a run is looked at.
#[derive(Debug, Clone, Copy)]
pub enum Observe {
    /// Reads all that there is to know now, the record too, and listens to nothing.
    Once,
    /// Listens for news for so long at most, and leaves the record alone.
    Listen {
        /// The time.
        within: Duration,
    },
    /// Listens as well, then reads the record if something suggests that the run is over, or if the last such look is long ago.
    Follow {
        /// How long it listens at most.
        within: Duration,
        /// How long ago is long.
        record_after: Duration,
    },
}

/// How a run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunState {
    /// The agent works, or waits for an ask.
    Busy,
    /// It was broken off: its server went away. Believe it only when observed twice, some seconds apart.
    Stopped,
    /// It was broken off, as what runs the agent says itself: certain at once.
    Lost,
    /// The agent has not begun with the prompt, or does not have it. Believe it only when observed twice, some seconds apart.
    Pending,
    /// It has ended, with this answer.
    Done(Answer),
}

/// What a look at a run has found.
#[derive(Debug)]
pub struct Observation<'a> {
    /// How the run stands, by what the agent has on record and never by what it told; none: the record was not read.
    pub state: Option<RunState>,
    /// The asks that wait for a person.
    pub asks: Vec<(AskId, About)>,
    /// What the agent has told of the run.
    pub told: &'a Fold,
    /// Nothing is missing of what it told: false while a new connection has not caught up.
    pub is_whole: bool,
}

/// What a runtime keeps from one look at a run to the next. After a look that failed the next one connects anew.
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
    /// Whether the last connection had caught up, also where the look failed after that.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// For a runtime: what it keeps, which this begins, and where it notes whether that has caught up.
    pub fn kept<T: Send + 'static>(&mut self, begin: impl FnOnce() -> T) -> (&mut T, &mut bool) {
        if !self.kept.as_ref().is_some_and(|kept| kept.is::<T>()) {
            self.kept = Some(Box::new(begin()));
        }
        let kept = self.kept.as_mut().and_then(|kept| kept.downcast_mut());
        (kept.expect("it was put there"), &mut self.is_whole)
    }
}

/// For a runtime: when its connection counts as dead, and when the record of its run is due.
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
    /// A connection has been made.
    pub fn connected(&mut self) {
        self.heard = Instant::now();
    }

    /// It was listened to, and something came or not.
    ///
    /// # Errors
    /// Nothing has come for too long.
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

    /// Whether the record is to be read now; then it is taken to have been.
    pub fn is_due(&mut self, end_is_suggested: bool, after: Duration) -> bool {
        let is_due = end_is_suggested || self.looked.elapsed() >= after;
        if is_due {
            self.looked = Instant::now();
        }
        is_due
    }
}
