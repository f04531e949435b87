//! The course of time: deliveries, workers, and the sweeper, until nothing is under way any more.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bobbin_core::drive::{Delivery, Verdict, drive};
use bobbin_core::ids::Ms;
use bobbin_core::limits::HOLD_MS_MAX;
use bobbin_core::message::{Message, Work};
use bobbin_core::parked::Wish;

use super::plan::Deed;
use super::queue::{Entry, give_back};
use super::state::{Inner, Receipt};
use super::sweeper::TICK_MS;
use super::task::{FUNCTION_MS, Task};
use super::thread::SimThread;
use super::worker::Worker;
use super::world::World;

/// Rounds of the executor, so that a history ends.
const ROUNDS_MAX: u32 = 400_000;

impl World {
    /// Runs until nothing is under way or waits, and `done` says so too.
    ///
    /// # Errors
    /// When it does not come to that within its bound.
    pub fn run(&self, done: fn(&Inner) -> bool) -> Result<(), String> {
        let mut tasks: Vec<Task> = Vec::new();
        let mut tick_ms = self.lock().now_ms + TICK_MS;
        for _ in 0..ROUNDS_MAX {
            self.deeds();
            self.deliver(&mut tasks);
            self.poll(&mut tasks);
            let mut inner = self.lock();
            let idle = tasks.is_empty()
                && inner.deeds.is_empty()
                && inner.later.is_empty()
                && inner.places.iter().all(|place| {
                    place.queue.is_empty()
                        && place.home.queue.is_empty()
                        && place.letters.is_empty()
                });
            if idle && done(&inner) {
                return Ok(());
            }
            let mut next_ms = inner.next_wake_ms.min(tick_ms);
            inner.next_wake_ms = Ms::MAX;
            next_ms = next_ms.min(
                inner
                    .deeds
                    .iter()
                    .map(|deed| deed.0)
                    .min()
                    .unwrap_or(Ms::MAX),
            );
            next_ms = next_ms.min(
                inner
                    .later
                    .iter()
                    .map(|late| late.0)
                    .min()
                    .unwrap_or(Ms::MAX),
            );
            let ends = inner.places.iter();
            let ends = ends.filter_map(|place| place.home.next_end_ms());
            next_ms = next_ms.min(ends.min().unwrap_or(Ms::MAX));
            next_ms = next_ms.min(
                tasks
                    .iter()
                    .map(|task| task.dies_at_ms)
                    .min()
                    .unwrap_or(Ms::MAX),
            );
            let heads = inner
                .places
                .iter()
                .flat_map(|place| [place.queue.front(), place.home.queue.front()])
                .flatten()
                .filter(|entry| entry.holder.is_none());
            next_ms = next_ms.min(heads.map(|entry| entry.visible_ms).min().unwrap_or(Ms::MAX));
            inner.now_ms = inner.now_ms.max(next_ms);
            if inner.now_ms >= tick_ms {
                tick_ms += TICK_MS;
                drop(inner);
                self.tick(&mut tasks);
            }
        }
        Err(format!(
            "it did not come to rest: {:?}",
            self.lock()
                .places
                .iter()
                .map(SimThread::in_short)
                .collect::<Vec<_>>()
        ))
    }

    fn deeds(&self) {
        let mut inner = self.lock();
        let now_ms = inner.now_ms;
        let mut due: Vec<_> = inner
            .deeds
            .extract_if(.., |deed| deed.0 <= now_ms)
            .collect();
        due.sort_by_key(|deed| deed.0);
        for (_, place, deed) in due {
            inner.note(place, || format!("{deed:?}"));
            match deed {
                Deed::Send(message) => inner.send(message),
                Deed::Stop(turn) => inner.stop(place, &turn.as_str().into()),
                Deed::StopAll => {
                    let all = inner.places[place].all_turns();
                    if all.len() > 1 {
                        inner.met.insert("stop all");
                    }
                    all.iter().for_each(|turn| inner.stop(place, turn));
                }
                Deed::Now(turn) => {
                    if inner.places[place].now(&turn.as_str().into()) {
                        inner.places[place].wish_for_running(now_ms);
                        inner.met.insert("wanted now");
                    }
                }
                Deed::Nudge(turn) => {
                    let turn = turn.as_str().into();
                    if inner.places[place].bring_forward(&turn, Wish::Daemon, now_ms) {
                        inner.met.insert("nudged");
                    }
                }
                Deed::Lose => inner.places[place].home.lose(),
                Deed::ServerDies => inner.places[place].home.server_dies(now_ms),
                Deed::Hangs => {
                    inner.places[place].home.hangs();
                    inner.met.insert("hung");
                }
                Deed::Cut(for_ms) => {
                    inner.places[place].home.cut(now_ms + for_ms);
                    inner.met.insert("cut");
                }
                Deed::StopsByItself => inner.places[place].home.stops_by_itself(now_ms),
                Deed::Out(what, for_ms) => inner.goes_out(what, for_ms),
                Deed::Mode(mode) => inner.runtime = mode,
                Deed::Rest => {}
            }
        }
        for place in 0..inner.places.len() {
            if inner.places[place].home.time_is_over(now_ms) {
                inner.met.insert("time over");
                inner.note(place, || "the sandbox's time is over".to_owned());
            }
        }
        let sweeps = inner.sweeps;
        for place in (0..inner.places.len()).filter(|_| sweeps) {
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
        let late: Vec<_> = inner
            .later
            .extract_if(.., |late| late.0 <= now_ms)
            .collect();
        for (_, spot, late) in late {
            inner.met.insert("late");
            inner.note(spot.1, || format!("arrives late: {late:?}"));
            inner.land(spot, late);
        }
    }

    /// Gives each group's head to a worker, once it is visible.
    fn deliver(&self, tasks: &mut Vec<Task>) {
        let mut inner = self.lock();
        for group in inner.groups() {
            let now_ms = inner.now_ms;
            let place = group.place;
            // A receipt whose heartbeat stopped is worth nothing after its time.
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
            let token = inner.tokens + 1;
            let Some(entry) = inner.queue(group).front_mut() else {
                continue;
            };
            if entry.holder.is_some() || entry.visible_ms > now_ms {
                continue;
            }
            entry.receives += 1;
            (entry.holder, entry.last) = (Some(token), token);
            let (message, receives) = (entry.message.clone(), entry.receives);
            inner.tokens = token;
            let most = inner.places[place].deliveries_most.max(receives);
            inner.places[place].deliveries_most = most;
            inner.receipts.insert(
                token,
                Receipt {
                    group,
                    began_ms: now_ms,
                    frozen_ms: None,
                },
            );
            let skew_ms = if inner.troubled() {
                inner.dice.below(10_000)
            } else {
                0
            };
            if skew_ms > 0 {
                inner.met.insert("clock skew");
            }
            inner.note(place, || {
                format!("delivers {} for the {receives}. time", message.id)
            });
            let hand = Worker::new(self.clone(), group, token, skew_ms, &message.work);
            let limits = Arc::clone(&self.limits);
            let runtime = inner.runtime;
            let work = Box::pin(async move {
                let delivery = Delivery {
                    id: format!("{}#{receives}", message.id),
                    receive: u32::try_from(receives).unwrap_or(u32::MAX),
                    message: &message,
                    follow_until_ms: now_ms + HOLD_MS_MAX,
                    model: "m",
                    providers: &[],
                    runtime,
                    limits: &limits,
                    split: |text| text.split(' ').map(str::to_owned).collect(),
                };
                drive(&hand, &delivery).await
            });
            tasks.push(Task {
                work,
                token,
                group: Some(group),
                dies_at_ms: now_ms + FUNCTION_MS,
            });
        }
    }

    fn poll(&self, tasks: &mut Vec<Task>) {
        let mut at = 0;
        while at < tasks.len() {
            let verdict = match tasks[at]
                .work
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
            {
                Poll::Ready(verdict) => Some(verdict),
                Poll::Pending => None,
            };
            let mut inner = self.lock();
            let Task {
                token,
                group,
                dies_at_ms,
                ..
            } = tasks[at];
            let dies = inner.dying.remove(&token) || inner.now_ms >= dies_at_ms;
            if verdict.is_none() && !dies {
                at += 1;
                continue;
            }
            let until_ms = inner.visible_until_ms(token, &self.limits);
            let holds = inner.holds(token);
            let now_ms = inner.now_ms;
            let (true, Some(group)) = (inner.receipts.remove(&token).is_some(), group) else {
                drop(inner);
                drop(tasks.swap_remove(at));
                continue;
            };
            inner.note(group.place, || {
                format!("ends: {verdict:?} (its receipt is good: {holds})")
            });
            if holds {
                let queue = inner.queue(group);
                match verdict {
                    Some(Verdict::Done) => drop(queue.pop_front()),
                    Some(Verdict::Hold { delay_ms, .. } | Verdict::Newer { delay_ms, .. }) => {
                        give_back(queue, now_ms + delay_ms);
                    }
                    None => give_back(queue, until_ms),
                }
            }
            drop(inner);
            drop(tasks.swap_remove(at));
        }
    }
}
