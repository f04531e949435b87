//! The sweeper's tick.

use std::cmp::Reverse;

use bobbin_core::base::ids::{Ms, TurnId};
use bobbin_core::base::limits::{SWEEP_OUT_MS, SWEEP_UNSENT_MS};
use bobbin_core::protocol::decide::orphan::{Graces, RecordVerdict, fate};
use bobbin_core::protocol::drive::Verdict;
use bobbin_core::records::message::{Message, Work};

use super::home::Caller;
use super::plan::{Late, Out, Trouble};
use super::queue::{Entry, Group};
use super::state::Inner;
use super::task::{FUNCTION_MS, Task, Tasks};
use super::world::World;

/// The sweeper's tick.
pub(super) const TICK_MS: u64 = 60_000;

impl Inner {
    /// Sends a group a sweep, unless one is under way; the sweeper may crash between any two steps.
    fn sweep(&mut self, group: Group, due_ms: Ms) {
        let now_ms = self.now_ms;
        let thread = self.places[group.place].thread.clone();
        let thread = if group.of_sandbox { thread.sandbox().group() } else { thread };
        let mut sweep = Message::sweep(thread, now_ms);
        if !self.sweeps_each_time {
            if self.is_out(Out::Table) || self.is_out(Out::Writes) {
                return;
            }
            let times = (now_ms, now_ms + SWEEP_UNSENT_MS);
            let Some(id) = self.due(group).means(due_ms, sweep.id.clone(), times) else {
                return;
            };
            sweep.id = id;
            if self.sweeper_dies() {
                return;
            }
        }
        let id = sweep.id.clone();
        let copies = |inner: &mut Self| {
            let queue = inner.queue(group).iter();
            queue.filter(|entry| entry.message.id == id).count() as u64
        };
        let before = copies(self);
        self.send(sweep);
        let is_twice = before > 0 && copies(self) > before;
        let waiting = self.sweeps_that_wait(group);
        let here = &mut self.places[group.place];
        here.sweeps_unsure += u64::from(is_twice);
        self.sweeps_sent += u64::from(copies(self) > before);
        let here = &mut self.places[group.place];
        here.sweeps_most = here.sweeps_most.max(waiting);
        if !self.sweeps_each_time && !self.sweeper_dies() && !self.is_out(Out::Writes) {
            self.due(group).is_out(&id, now_ms + SWEEP_OUT_MS, now_ms);
        }
    }

    /// Sweeps in a group's queue that are not done.
    fn sweeps_that_wait(&mut self, group: Group) -> u64 {
        let marked = |entry: &Entry| entry.message.is_marked().then(|| entry.message.id.clone());
        let sent: Vec<TurnId> = self.queue(group).iter().filter_map(marked).collect();
        let due = self.due(group);
        sent.iter().filter(|sent| !due.has_done(sent)).count() as u64
    }

    fn sweeper_dies(&mut self) -> bool {
        let dies = self.troubled() && self.of_sweeper.falls(100);
        if dies {
            self.met.insert("sweeper died");
        }
        dies
    }
}

impl World {
    /// A thread's record whose sandbox the provider does not list gets a check when it is time.
    fn look(&self, inner: &mut Inner, place: usize) {
        let now_ms = inner.now_ms;
        let armed = inner.places[place].home.due.says(now_ms).is_some();
        if !inner.sweeps || !armed || now_ms % self.limits.sandbox.reconcile_ms >= TICK_MS {
            return;
        }
        inner.met.insert("look");
        Self::asks_to_look(inner, place);
    }

    fn asks_to_look(inner: &mut Inner, place: usize) {
        let now_ms = inner.now_ms;
        let thread = inner.places[place].thread.sandbox().group();
        let message = Message {
            id: format!("look-{}-{now_ms}", thread.short_hash()).into(),
            thread,
            accepted_at_ms: now_ms,
            work: Work::Reconcile,
        };
        inner.send(message);
    }

    /// A call of the orphan hunt, which may crash before or after it.
    async fn hunts(&self, token: u64, after: bool) {
        let dies = {
            let mut inner = self.lock();
            if !inner.hunts_crash {
                return;
            }
            inner.calls += u32::from(!after);
            let call = inner.calls;
            match &mut inner.trouble {
                Trouble::Crashes { at, hit } if at.contains(&(call, after)) => {
                    *hit += 1;
                    inner.kill(token);
                    true
                }
                _ => false,
            }
        };
        if dies {
            std::future::pending::<()>().await;
        }
    }

    /// The sweeper: sends messages for what the lagging index calls due; then hunts orphans.
    pub(super) fn tick(&self, tasks: &mut Tasks) {
        let mut inner = self.lock();
        let now_ms = inner.now_ms;
        for group in inner.groups().filter(|_| inner.sweeps).collect::<Vec<_>>() {
            let due_ms = inner.due(group).says(now_ms);
            if let Some(due_ms) = due_ms.filter(|due_ms| *due_ms <= now_ms) {
                inner.sweep(group, due_ms);
            }
        }
        for place in 0..inner.places.len() {
            inner.tell_dead(place);
            inner.places[place].home.shows_again(now_ms);
            // Another account lists none of these sandboxes.
            if inner.places[place].home.sandboxes.is_empty() || inner.is_out(Out::Account) {
                self.look(&mut inner, place);
                continue;
            }
            inner.tokens += 1;
            let (token, wait_ms) = (inner.tokens, inner.dice.below(20_000));
            let (world, graces) = (self.clone(), Graces::from(&self.limits.sandbox));
            let work = Box::pin(async move {
                // List first: later reads are at least as new.
                world.hunts(token, false).await;
                let listed: Vec<(u32, Ms)> = world.lock().places[place]
                    .home
                    .sandboxes
                    .iter()
                    .map(|(generation, sandbox)| (*generation, sandbox.created_ms))
                    .collect();
                world.hunts(token, true).await;
                world.pause(wait_ms).await;
                world.hunts(token, false).await;
                let record = {
                    let of_sandbox = true;
                    world.lock().stored(Group { place, of_sandbox })
                };
                world.hunts(token, true).await;
                for (generation, created_ms) in listed {
                    world.pause(wait_ms).await;
                    let now_ms = world.lock().now_ms;
                    let judged = record.as_ref().map(|session| &session.sandbox);
                    match fate(judged, generation, created_ms, now_ms, graces) {
                        RecordVerdict::Spared | RecordVerdict::Kept => continue,
                        RecordVerdict::TakenBack => {
                            let mut inner = world.lock();
                            inner.met.insert("asked to take back");
                            Self::asks_to_look(&mut inner, place);
                            continue;
                        }
                        RecordVerdict::Orphan => {}
                    }
                    world.hunts(token, false).await;
                    {
                        let mut inner = world.lock();
                        inner.met.insert("orphan");
                        inner.note(place, || format!("the hunt deletes generation {generation}"));
                        let by_person = false;
                        let delete = Late::Delete { generation, by_person };
                        let is_turn = false;
                        inner.land((Caller { place, is_turn }, place), delete);
                    }
                    world.hunts(token, true).await;
                }
                Verdict::Done
            });
            let dies_at_ms = now_ms + FUNCTION_MS;
            inner.wakes.push(Reverse((dies_at_ms, token)));
            tasks.begin(Task { work, token, group: None, dies_at_ms });
        }
    }
}
