//! The course of time: deliveries, workers and the sweeper, until nothing is under way.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bobbin_core::base::limits::HOLD_MS_MAX;
use bobbin_core::protocol::drive::{Delivery, Verdict, drive};
use bobbin_core::records::message::{Message, Work};
use bobbin_core::records::parked::PollRequester;

use super::plan::PlannedEvent;
use super::queue::{Entry, Group, give_back};
use super::state::{Inner, Receipt};
use super::sweeper::TICK_MS;
use super::task::{FUNCTION_MS, Task, Tasks};
use super::thread::SimThread;
use super::tools::Use;
use super::worker::Worker;
use super::world::World;

/// Bound on the executor's rounds, so that a history ends.
const ROUNDS_MAX: usize = 400_000;
/// Additional rounds for each thread.
const ROUNDS_A_THREAD: usize = 1_000;

impl World {
    /// Runs until nothing is under way or waits, and `done` agrees.
    ///
    /// # Errors
    /// When it does not come to that within its bound.
    pub fn run(&self, done: fn(&Inner) -> bool) -> Result<(), String> {
        let mut tasks = Tasks::default();
        let mut tick_ms = self.lock().now_ms + TICK_MS;
        let (rounds_max, clocked) = {
            let inner = self.lock();
            let clocked = inner.places.iter().filter(|place| place.home.is_clocked());
            let clocked: Vec<usize> = clocked.map(|place| place.place).collect();
            (ROUNDS_MAX + ROUNDS_A_THREAD * inner.places.len(), clocked)
        };
        for _ in 0..rounds_max {
            self.deeds(&clocked);
            self.deliver(&mut tasks);
            let has_ended = self.poll(&mut tasks);
            let mut guard = self.lock();
            let inner = &mut *guard;
            let next_head_ms = inner.next_head_ms();
            let idle = tasks.is_empty()
                && inner.deeds.is_empty()
                && inner.later.is_empty()
                && next_head_ms.is_none()
                && inner.crowd.is_empty()
                && inner.places.iter().all(|place| place.letters.is_empty());
            if idle && done(inner) {
                return Ok(());
            }
            // Skips wake-ups of tasks that have ended.
            while let Some(Reverse((_, token))) = inner.wakes.peek()
                && !tasks.has(*token)
            {
                inner.wakes.pop();
            }
            let ends = clocked.iter();
            let ends = ends.filter_map(|place| inner.places[*place].home.next_end_ms());
            let next_ms = [
                Some(tick_ms),
                (has_ended && !inner.crowd.is_empty()).then_some(inner.now_ms),
                inner.wakes.peek().map(|Reverse((at_ms, _))| *at_ms),
                inner.deeds.first_key_value().map(|((at_ms, _), _)| *at_ms),
                inner.later.iter().map(|late| late.0).min(),
                ends.min(),
                next_head_ms,
            ];
            let next_ms = next_ms.into_iter().flatten().min().unwrap_or(tick_ms);
            inner.now_ms = inner.now_ms.max(next_ms);
            if inner.now_ms >= tick_ms {
                tick_ms += TICK_MS;
                drop(guard);
                self.tick(&mut tasks);
            }
        }
        Err(format!(
            "it did not come to rest: {:?}",
            self.lock().places.iter().map(SimThread::in_short).collect::<Vec<_>>()
        ))
    }

    fn deeds(&self, clocked: &[usize]) {
        let mut inner = self.lock();
        let now_ms = inner.now_ms;
        let later = inner.deeds.split_off(&(now_ms + 1, 0));
        let due = std::mem::replace(&mut inner.deeds, later);
        for (place, deed) in due.into_values() {
            inner.note(place, || format!("{deed:?}"));
            match deed {
                PlannedEvent::Send(message) => inner.send(message),
                PlannedEvent::Stop(turn) => inner.stop(place, &turn.as_str().into()),
                PlannedEvent::StopAll => {
                    let all = inner.places[place].all_turns();
                    if all.len() > 1 {
                        inner.met.insert("stop all");
                    }
                    inner.stop_all(place);
                }
                PlannedEvent::Now(turn) => {
                    if inner.places[place].now(&turn.as_str().into()) {
                        inner.places[place].wish_for_running(now_ms);
                        let of_sandbox = false;
                        inner.touch(Group { place, of_sandbox });
                        inner.met.insert("wanted now");
                    }
                }
                PlannedEvent::Nudge(turn) => {
                    let turn = turn.as_str().into();
                    if inner.places[place].bring_forward(&turn, PollRequester::Daemon, now_ms) {
                        let of_sandbox = false;
                        inner.touch(Group { place, of_sandbox });
                        inner.met.insert("nudged");
                    }
                }
                PlannedEvent::Lose => inner.places[place].home.lose(),
                PlannedEvent::Hides(for_ms) => {
                    inner.places[place].home.hides(now_ms, now_ms + for_ms);
                    inner.met.insert("hidden");
                }
                PlannedEvent::ServerDies => inner.places[place].home.server_dies(now_ms),
                PlannedEvent::Hangs => {
                    inner.places[place].home.hangs();
                    inner.met.insert("hung");
                }
                PlannedEvent::Cut(for_ms) => {
                    inner.places[place].home.cut(now_ms + for_ms);
                    inner.met.insert("cut");
                }
                PlannedEvent::StopsByItself => inner.places[place].home.stops_by_itself(now_ms),
                PlannedEvent::Crowded(for_ms) => inner.crowded_until_ms = now_ms + for_ms,
                PlannedEvent::Idle(for_ms) => inner.idle_until_ms = now_ms + for_ms,
                PlannedEvent::Out(what, for_ms) => inner.goes_out(what, for_ms),
                PlannedEvent::Mode(mode) => inner.runtime = mode,
                PlannedEvent::Tools => {
                    inner.tools(place, Use::Calls, self.limits.sandbox.idle_pause_ms)
                }
                PlannedEvent::Chooses(mode) => {
                    let name = mode.map(|mode| mode.name().to_owned());
                    inner.places[place].settings.defaults.runtime = name;
                }
                PlannedEvent::Announce(at) => inner.announces(place, at),
                PlannedEvent::Press { id, is_oldest } => inner.press(place, &id, is_oldest),
                PlannedEvent::AtForge(what) => inner.at_forge(place, what),
                PlannedEvent::FilesChange => inner.files_change(place),
                PlannedEvent::Opens(are_open) => inner.opens(place, are_open),
                PlannedEvent::Rest => {}
            }
        }
        for place in clocked.iter().copied() {
            if inner.places[place].home.time_is_over(now_ms) {
                inner.met.insert("time over");
                inner.note(place, || "the sandbox's time is over".to_owned());
            }
        }
        let mut woken = BTreeSet::new();
        while let Some(Reverse((at_ms, place))) = inner.wake_ups.peek().copied()
            && inner.sweeps
            && at_ms <= now_ms
        {
            inner.wake_ups.pop();
            woken.insert(place);
        }
        for place in woken {
            let here = &mut inner.places[place];
            let Some(at_ms) = here.home.wake_ms.take_if(|at_ms| *at_ms <= now_ms) else {
                continue;
            };
            let thread = here.thread.sandbox().group();
            let message = Message {
                id: format!("wake-{}-{at_ms}", thread.short_hash()).into(),
                thread,
                accepted_at_ms: at_ms,
                work: Work::Sweep,
            };
            inner.met.insert("wake-up");
            inner.send(message);
        }
        let late: Vec<_> = inner.later.extract_if(.., |late| late.0 <= now_ms).collect();
        for (_, spot, late) in late {
            inner.met.insert("late");
            inner.note(spot.1, || format!("arrives late: {late:?}"));
            inner.land(spot, late);
        }
    }

    /// Gives each group's visible head to a worker.
    fn deliver(&self, tasks: &mut Tasks) {
        let mut inner = self.lock();
        for group in inner.visible(&self.limits) {
            let now_ms = inner.now_ms;
            let place = group.place;
            // A receipt whose heartbeat stopped is invalid after its time.
            if let Some(token) = inner.queue(group).front().and_then(|entry| entry.holder)
                && inner.visible_until_ms(token, &self.limits) <= now_ms
            {
                inner.met.insert("zombie");
                inner.note(place, || {
                    "the message is visible again while its worker still lives".to_owned()
                });
                if let Some(entry) = inner.queue(group).front_mut() {
                    (entry.holder, entry.visible_ms) = (None, now_ms);
                }
            }
            let is_held = |entry: &Entry| entry.holder.is_some() || entry.visible_ms > now_ms;
            if !inner.queue(group).front().is_none_or(is_held) {
                inner.gives_up(group);
            }
            let is_full = now_ms < inner.idle_until_ms
                || inner.executions.is_some_and(|most| tasks.workers() >= most);
            let token = inner.tokens + 1;
            let Some(entry) = inner.queue(group).front_mut() else {
                continue;
            };
            if is_held(entry) {
                inner.touch(group);
                continue;
            }
            let visible_ms = entry.visible_ms;
            if is_full {
                inner.crowd.insert((visible_ms, group));
                continue;
            }
            entry.receives += 1;
            (entry.holder, entry.last) = (Some(token), token);
            let (message, receives) = (entry.message.clone(), entry.receives);
            inner.tokens = token;
            if receives > 1 && !group.of_sandbox {
                inner.came(place, visible_ms);
            }
            let most = inner.places[place].deliveries_most.max(receives);
            inner.places[place].deliveries_most = most;
            inner.receipts.insert(token, Receipt { group, began_ms: now_ms, frozen_ms: None });
            let skew_ms = if inner.troubled() { inner.dice.below(10_000) } else { 0 };
            if skew_ms > 0 {
                inner.met.insert("clock skew");
            }
            inner.note(place, || format!("delivers {} for the {receives}. time", message.id));
            let hand = Worker::new(self.clone(), group, token, skew_ms, &message.work);
            let limits = Arc::clone(&self.limits);
            let (runtime, forge) = (inner.runtime, inner.forge.clone());
            let work = Box::pin(async move {
                let delivery = Delivery {
                    id: format!("{}#{receives}", message.id),
                    receive: u32::try_from(receives).unwrap_or(u32::MAX),
                    message: &message,
                    follow_until_ms: now_ms + HOLD_MS_MAX,
                    model: "m",
                    providers: &[],
                    runtime,
                    forge: forge.as_ref(),
                    limits: &limits,
                    split: |text| text.split(' ').map(str::to_owned).collect(),
                };
                drive(&hand, &delivery, None).await.verdict
            });
            let dies_at_ms = now_ms + FUNCTION_MS;
            inner.wakes.push(Reverse((dies_at_ms, token)));
            tasks.begin(Task { work, token, group: Some(group), dies_at_ms });
        }
    }

    /// Polls every task that can continue. True: one ended.
    fn poll(&self, tasks: &mut Tasks) -> bool {
        let mut has_ended = false;
        {
            let mut inner = self.lock();
            while let Some(Reverse((at_ms, token))) = inner.wakes.peek().copied()
                && at_ms <= inner.now_ms
            {
                inner.wakes.pop();
                tasks.wake(token);
            }
        }
        while let Some((at, task)) = tasks.next() {
            let Task { token, group, dies_at_ms, .. } = *task;
            self.lock().working = token;
            let verdict = match task.work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(verdict) => Some(verdict),
                Poll::Pending => None,
            };
            let mut inner = self.lock();
            let dies = inner.dying.remove(&token) || inner.now_ms >= dies_at_ms;
            if verdict.is_none() && !dies {
                continue;
            }
            has_ended = true;
            let until_ms = inner.visible_until_ms(token, &self.limits);
            let holds = inner.holds(token);
            let now_ms = inner.now_ms;
            inner.frozen.remove(&token);
            let (true, Some(group)) = (inner.receipts.remove(&token).is_some(), group) else {
                drop(inner);
                tasks.end(at);
                continue;
            };
            inner.note(group.place, || format!("ends: {verdict:?} (its receipt is good: {holds})"));
            if holds {
                let queue = inner.queue(group);
                match verdict {
                    Some(Verdict::Done) => drop(queue.pop_front()),
                    Some(Verdict::Hold { delay_ms, .. } | Verdict::Newer { delay_ms, .. }) => {
                        give_back(queue, now_ms + delay_ms);
                    }
                    None => give_back(queue, until_ms),
                }
                inner.touch(group);
            }
            drop(inner);
            tasks.end(at);
        }
        has_ended
    }
}
