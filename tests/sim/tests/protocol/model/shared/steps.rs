//! One step of a worker: the world answers the product's machine.

use bobbin_core::protocol::delivery::Verdict;
use bobbin_core::protocol::machine::Step;
use bobbin_core::protocol::ports::ExpectedVersions;
use bobbin_core::records::session::Session;

use super::super::driver::{Asked, Item, PAST, PRESENT, START, StepResult, each_known, knows};
use super::super::faults::Fault;
use super::{Group, NOW, Shared, State, THREADS, Worker, group_key, thread};

impl Shared {
    pub(super) fn deliver(&self, s: &mut State, group: Group) {
        let Some(slot) = s.workers.iter().position(Option::is_none) else {
            return;
        };
        let item = s.queues[group][0];
        let others = s.workers.iter().flatten();
        let mut others = others.filter(|worker| worker.item == item);
        let other = others.next().map(|worker| worker.delivery);
        let at =
            if group < THREADS { Self::home_of(&self.record(s, group)) } else { group - THREADS };
        let delivery = self.driver.fresh_delivery(s.homes[at], item, other);
        s.workers[slot] = Some(Worker { item, group, delivery, lapsed: false, machine: START });
        s.in_flight[group] = true;
    }

    /// A group's stored state: a thread's record with its sandbox's, or only a sandbox's.
    fn stored(&self, s: &State, group: Group) -> Session {
        let Some(at) = group.checked_sub(THREADS) else {
            let record = self.record(s, group);
            let home = self.home(s, Self::home_of(&record));
            return Session { sandbox: home.sandbox.clone(), ..(*record).clone() };
        };
        (*self.home(s, at)).clone()
    }

    /// The same, as a worker with a fault sees it.
    fn seen(&self, s: &State, worker: &Worker) -> Session {
        let mut session = self.stored(s, worker.group);
        let id = self.driver.id_of(match worker.item {
            Item::Message(at) | Item::Aged(at) | Item::DeadLetter(at) => at,
            Item::Sweep => 0,
        });
        let sandbox = &mut session.sandbox;
        let is_foreign = |holder: &str| holder.split('#').next() != Some(id);
        match self.fault {
            Some(Fault::EndlessLease) => {
                if let Some(lease) = &mut sandbox.lease {
                    lease.until_ms = NOW + 1;
                }
            }
            Some(Fault::UnseenLease) => {
                sandbox.lease.take_if(|lease| is_foreign(&lease.holder));
            }
            Some(Fault::UncheckedWorkspace) if worker.group < THREADS => {
                sandbox.sharing.in_use.retain(|one| one.thread == thread(worker.group));
                sandbox.sharing.waiting.clear();
            }
            Some(Fault::UnseenUse) if worker.group >= THREADS => sandbox.sharing.in_use.clear(),
            _ => {}
        }
        session
    }

    fn give_back(&self, s: &mut State, slot: usize, done: bool) {
        let Some(worker) = s.workers[slot].take() else {
            return;
        };
        // An expired receipt is invalid: neither deleting nor retrying works with it.
        if worker.lapsed {
            return;
        }
        s.in_flight[worker.group] = false;
        if done {
            s.queues[worker.group].remove(0);
        }
    }

    /// Gives the machine the result of its step: it continues to the next one, or the delivery is over.
    fn then(&self, s: &mut State, slot: usize, came: StepResult) {
        let Some(worker) = s.workers[slot] else {
            return;
        };
        let message = match worker.item {
            Item::Message(at) | Item::Aged(at) | Item::DeadLetter(at) => usize::from(at),
            Item::Sweep => return,
        };
        let asked = Asked {
            item: worker.item,
            delivery: worker.delivery,
            lapsed: worker.lapsed,
            mints: s.known[message].mints,
        };
        let after = self.driver.after(worker.machine, came, asked);
        if after.minted {
            s.known[message].mints = s.known[message].mints.saturating_add(1).min(6);
        }
        s.workers[slot] = Some(Worker { machine: after.machine, ..worker });
        let machine = self.driver.machine(after.machine);
        if let Step::End(verdict) = self.driver.step(&machine, worker.item, false) {
            self.give_back(s, slot, verdict == Verdict::Done);
        }
    }

    pub(super) fn step(&self, s: &mut State, slot: usize) {
        let Some(worker) = s.workers[slot] else {
            return;
        };
        let machine = self.driver.machine(worker.machine);
        match self.driver.step(&machine, worker.item, worker.lapsed) {
            Step::Read => {
                let record = self.driver.session_no(self.seen(s, &worker));
                let came = StepResult::Read { record, flags: 0, parked: false };
                self.then(s, slot, came);
            }
            Step::Write { write, .. } => self.write(s, slot, write.session, write.expected),
            // The other model covers what is left for the next delivery.
            Step::Park(_) => self.then(s, slot, StepResult::Parked { flags: 0 }),
            Step::Perform(effect) => {
                let known = knows(&machine).cloned();
                let event = self.perform(s, &worker, known.as_ref(), &effect);
                self.then(s, slot, StepResult::Done(self.driver.event_no(event)));
            }
            // Neither sees the other; the other model covers what comes between them.
            Step::PerformBoth { work, card } => {
                let known = knows(&machine).cloned();
                let [work, card] = [work, card].map(|effect| {
                    let event = self.perform(s, &worker, known.as_ref(), &effect);
                    self.driver.event_no(event)
                });
                self.then(s, slot, StepResult::Both(work, card));
            }
            Step::End(verdict) => self.give_back(s, slot, verdict == Verdict::Done),
        }
    }

    /// Writes if the versions are still the expected ones; everyone else's copy is stale from then on.
    fn write(&self, s: &mut State, slot: usize, session: &Session, expected: ExpectedVersions) {
        let Some(worker) = s.workers[slot] else {
            return;
        };
        let home = Self::home_of(session);
        let stands = |expected: Option<u64>, stored: u64| expected.is_none_or(|it| it == stored);
        let thread_stands = worker.group >= THREADS
            || stands(expected.thread, self.record(s, worker.group).version);
        let sandbox = self.home(s, home).sandbox.version;
        if !thread_stands || !stands(expected.sandbox, sandbox) {
            return self.then(s, slot, StepResult::Conflict);
        }
        if let Some(used) = self.change_sums(s, &session.observed.writes.budgets) {
            return self.then(s, slot, StepResult::OverBudget { used });
        }
        let written = Session { observed: Default::default(), ..session.clone() };
        if expected.sandbox.is_some() {
            let mut sandbox = written.sandbox.clone();
            sandbox.version = PRESENT;
            s.homes[home] = self
                .driver
                .session_no(Session { sandbox, ..Session::new(group_key(THREADS + home), NOW) });
        }
        if expected.thread.is_some() && worker.group < THREADS {
            s.threads[worker.group] = self.driver.session_no(Session {
                version: PRESENT,
                sandbox: Default::default(),
                ..written
            });
        }
        self.then(s, slot, StepResult::Written { flags: 0 });
        let of_thread = expected.thread.map(|_| worker.group);
        let of_home = expected.sandbox.map(|_| home);
        // The writer knows the new state under the versions after those that it read.
        if let Some(worker) = &mut s.workers[slot] {
            let mut machine = (*self.driver.machine(worker.machine)).clone();
            each_known(&mut machine, |known| {
                if expected.thread.is_some() {
                    known.version = PRESENT;
                }
                if expected.sandbox.is_some() {
                    known.sandbox.version = PRESENT;
                }
            });
            worker.machine = self.driver.machine_no(machine);
        }
        self.outdate(s, Some(slot), (of_thread, of_home));
    }

    /// Other workers' copies of this thread and sandbox become stale.
    pub(super) fn outdate(
        &self,
        s: &mut State,
        writer: Option<usize>,
        (of_thread, of_home): (Option<Group>, Option<usize>),
    ) {
        for (slot, worker) in s.workers.iter_mut().enumerate() {
            let Some(worker) = worker.as_mut().filter(|_| Some(slot) != writer) else {
                continue;
            };
            let mut machine = (*self.driver.machine(worker.machine)).clone();
            let group = worker.group;
            each_known(&mut machine, |known| {
                if of_thread == Some(group) && known.version == PRESENT {
                    known.version = PAST;
                }
                let home = Self::home_of(known);
                if of_home == Some(home) && known.sandbox.version == PRESENT {
                    known.sandbox.version = PAST;
                }
            });
            worker.machine = self.driver.machine_no(machine);
        }
    }
}
