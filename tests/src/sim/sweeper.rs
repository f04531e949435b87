//! The sweeper's tick.

use std::cmp::Reverse;

use bobbin_core::decide::orphan::{Fate, Graces, fate};
use bobbin_core::drive::Verdict;
use bobbin_core::ids::Ms;
use bobbin_core::message::{Message, Work};

use super::home::Caller;
use super::plan::{Late, Out, Trouble};
use super::queue::Group;
use super::state::Inner;
use super::task::{FUNCTION_MS, Task, Tasks};
use super::world::World;

/// The sweeper's tick.
pub(super) const TICK_MS: u64 = 60_000;

impl World {
    /// A record of a thread for which the provider lists nothing: it is asked to look, when it is time for that.
    fn look(&self, inner: &mut Inner, place: usize) {
        let now_ms = inner.now_ms;
        let armed = inner.places[place].home.index_says(now_ms).is_some();
        if !inner.sweeps || !armed || now_ms % self.limits.reconcile_ms >= TICK_MS {
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

    /// A call of the orphan hunt, before or after what it does: it may die there.
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

    /// The sweeper: what the index, which lags, calls due becomes a message; then the orphan hunt.
    pub(super) fn tick(&self, tasks: &mut Tasks) {
        let mut inner = self.lock();
        let sweeps = inner.sweeps;
        let now_ms = inner.now_ms;
        for group in inner.groups().filter(|_| sweeps) {
            let here = &mut inner.places[group.place];
            let due_ms = if group.of_sandbox {
                here.home.index_says(now_ms)
            } else {
                here.index_says(now_ms)
            };
            let Some(due_ms) = due_ms.filter(|due_ms| *due_ms <= now_ms) else {
                continue;
            };
            let thread = here.thread.clone();
            let thread = if group.of_sandbox {
                thread.sandbox().group()
            } else {
                thread
            };
            let id = format!("sweep-{}-{due_ms}", thread.short_hash());
            inner.send(Message {
                id: id.into(),
                thread,
                accepted_at_ms: now_ms,
                work: Work::Sweep,
            });
        }
        for place in 0..inner.places.len() {
            inner.tell_dead(place);
            inner.places[place].home.shows_again(now_ms);
            // Of another account nothing is listed that is here.
            if inner.places[place].home.sandboxes.is_empty() || inner.is_out(Out::Account) {
                self.look(&mut inner, place);
                continue;
            }
            inner.tokens += 1;
            let (token, wait_ms) = (inner.tokens, inner.dice.below(20_000));
            let (world, graces) = (self.clone(), Graces::from(&*self.limits));
            let work = Box::pin(async move {
                // List first; what is read afterwards is at least as new.
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
                        Fate::Spared | Fate::Kept => continue,
                        Fate::TakenBack => {
                            let mut inner = world.lock();
                            inner.met.insert("asked to take back");
                            Self::asks_to_look(&mut inner, place);
                            continue;
                        }
                        Fate::Orphan => {}
                    }
                    world.hunts(token, false).await;
                    {
                        let mut inner = world.lock();
                        inner.met.insert("orphan");
                        inner.note(place, || {
                            format!("the hunt deletes generation {generation}")
                        });
                        let by_person = false;
                        let delete = Late::Delete {
                            generation,
                            by_person,
                        };
                        let is_turn = false;
                        inner.land((Caller { place, is_turn }, place), delete);
                    }
                    world.hunts(token, true).await;
                }
                Verdict::Done
            });
            let dies_at_ms = now_ms + FUNCTION_MS;
            inner.wakes.push(Reverse((dies_at_ms, token)));
            tasks.begin(Task {
                work,
                token,
                group: None,
                dies_at_ms,
            });
        }
    }
}
