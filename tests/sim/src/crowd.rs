//! Very many turns that run at the same time on few executions, in virtual time.

use bobbin_core::base::ids::Ms;
use bobbin_core::base::limits::{Limits, TenantLimits};
use bobbin_core::records::outcome::Outcome;

use super::plan::{PlannedEvent, START_MS, Trouble, prompt};
use super::state::{Looks, settled};
use super::world::World;
use crate::dice::Dice;
use crate::promises;

/// A new sandbox occupies an execution this long, so prompts arrive no faster than executions allow; polls are judged
/// once all turns run.
const BEGIN_MS: u64 = 12_000;
/// Time from the last prompt to Stop, of which half is for all turns to start; and from Stop to the end of the first
/// run.
const MORE_MS: u64 = 2 * 60_000;
/// One in this many turns is stopped, once all run.
const STOPPED_OF: usize = 50;
/// A Stop reports its turn's end within this time.
pub const STOP_MS_MAX: u64 = 2_000;

/// The numbers of a crowd.
#[derive(Debug, Clone, Copy)]
pub struct Crowd {
    /// Threads, each with one turn.
    pub turns: usize,
    /// Executions of the worker for messages.
    pub executions: usize,
    /// What every call takes, in milliseconds; a poll is three calls.
    pub call_ms: u64,
    pub seed: u64,
}

/// The result of a crowd.
#[derive(Debug, Clone, Copy)]
pub struct CrowdResult {
    /// Polls before all turns ran, and after.
    pub looks_before: Looks,
    pub looks: Looks,
    pub calls: u32,
    /// Longest time from a Stop to its turn's recorded end.
    pub stopped_ms: u64,
}

impl Crowd {
    /// Runs the crowd to its end.
    ///
    /// # Errors
    /// Broken promises: a poll that came later by more than its own interval, a lost turn, a Stop that waited.
    pub fn run(&self) -> Result<CrowdResult, String> {
        // All belong to two tenants.
        let tenant = TenantLimits { sandboxes: 0, ..TenantLimits::DEFAULT };
        let limits = Limits { tenant, ..Limits::DEFAULT };
        let world = World::new(self.turns, self.seed, Trouble::None, limits);
        let mut dice = Dice::new(self.seed);
        {
            let mut inner = world.lock();
            inner.call_ms = Some(self.call_ms);
            inner.executions = Some(self.executions);
            inner.at_work_ms = START_MS + self.begin_within_ms() + MORE_MS / 2;
            for place in &mut inner.places {
                place.next_run_takes_ms = Some(self.stopped_at_ms() + MORE_MS + dice.below(60_000));
            }
        }
        for place in 0..self.turns {
            let id = turn(place);
            let message = world.message(place, &id, prompt(&id));
            let at_ms = dice.below(self.begin_within_ms());
            world.plan(at_ms, place, PlannedEvent::Send(message));
        }
        for place in self.stopped() {
            world.plan(self.stopped_at_ms(), place, PlannedEvent::Stop(turn(place)));
        }
        world.run(settled)?;
        world.settle();
        self.judged(&world)
    }

    fn begin_within_ms(&self) -> u64 {
        self.turns as u64 * BEGIN_MS / self.executions as u64
    }

    fn stopped_at_ms(&self) -> u64 {
        self.begin_within_ms() + MORE_MS
    }

    fn stopped(&self) -> impl Iterator<Item = usize> {
        (0..self.turns).step_by(STOPPED_OF)
    }

    fn judged(&self, world: &World) -> Result<CrowdResult, String> {
        let inner = world.lock();
        let mut stopped_ms = 0;
        let mut last_prompted_ms: Ms = 0;
        for (place, here) in inner.places.iter().enumerate() {
            let in_words = |why: String| format!("{}: {why}", here.thread);
            promises::check(&here.history).map_err(in_words)?;
            let ended = here.record.iter().flat_map(|session| &session.ended);
            let Some(end) = ended.last() else {
                return Err(in_words("it has no end".to_owned()));
            };
            last_prompted_ms = last_prompted_ms.max(here.prompted_ms);
            let is_stopped = place % STOPPED_OF == 0;
            match &end.outcome {
                Outcome::Answered if !is_stopped => {}
                Outcome::Cancelled { .. } if is_stopped => {
                    let said_ms = START_MS + self.stopped_at_ms();
                    stopped_ms = stopped_ms.max(end.at_ms.saturating_sub(said_ms));
                }
                outcome => return Err(in_words(format!("it ended as {outcome:?}"))),
            }
        }
        let looks = inner.looks;
        if last_prompted_ms >= inner.at_work_ms {
            return Err("they did not all run at the same time".to_owned());
        }
        if looks.all == 0 || looks.too_late > 0 {
            return Err(format!("{looks:?}"));
        }
        if stopped_ms > STOP_MS_MAX {
            return Err(format!("a Stop took {stopped_ms} ms"));
        }
        Ok(CrowdResult { looks_before: inner.looks_before, looks, calls: inner.calls, stopped_ms })
    }
}

/// Each thread has one turn.
fn turn(place: usize) -> String {
    format!("t{place}")
}
